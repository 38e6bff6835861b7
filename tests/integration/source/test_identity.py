"""A host with an identity instead of keys: tokens over TLS to hub and blobs, and the hub through a WebSocket."""

import asyncio
import time
from random import Random

import pytest
from azure.core.credentials import AccessToken

from service.clock import uptime
from service.errors import SetupFault
from service.local.azurite import Azurite, Certificate
from service.local.certificates import make_certificate
from service.local.event_hubs.server import EventHubsServer
from service.local.tokens import TokenIssuer
from service.source.blob_leases import BlobLeases
from service.source.connect import HubAddress, connect_blobs, connect_hub
from service.source.processor import Processor, ProcessorOptions
from service.source.receiver import ReceiverOptions
from tests.integration.source.kit import HUB, Recorder, publish, until

AUDIENCES = {"https://eventhubs.azure.net//.default": "https://eventhubs.azure.net"}


class Identity:
    """Gets tokens as azure-identity does, from a local issuer."""

    def __init__(self, issuer, audience=None):
        self.issuer = issuer
        self.audience = audience

    async def get_token(self, *scopes, **_options):
        audience = self.audience or scopes[0].removesuffix("/.default").rstrip("/")
        return AccessToken(self.issuer.issue(audience), int(time.time() + 3600))

    async def close(self):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def secure(certificate):
    issuer = TokenIssuer()
    server = EventHubsServer(ssl_context=certificate.server_context(), token_issuer=issuer)
    server.add_hub(HUB, 2)
    await server.start()
    server.websocket_port = await server.start_websocket()
    server.issuer = issuer
    yield server
    await server.stop()


def _hub(server, certificate, identity, transport):
    port = server.port if transport == "amqp" else server.websocket_port
    address = HubAddress(
        HUB,
        namespace="localhost",
        transport=transport,
        endpoint=f"sb://localhost:{port}",
        ca_file=str(certificate.cert),
    )
    return connect_hub(address, ReceiverOptions(), identity)


@pytest.mark.parametrize("transport", ["amqp", "websocket"])
async def test_a_host_reads_and_checkpoints_with_tokens_over_tls(secure, certificate, transport):
    identity = Identity(secure.issuer)
    tls = Certificate(certificate.cert, certificate.key)
    async with Azurite(certificate=tls, oauth=True) as azurite:
        client = _hub(secure, certificate, identity, transport)
        blobs = connect_blobs("leases", account_url=azurite.url, credential=identity, ca_file=str(certificate.cert))
        recorder = Recorder()
        processor = Processor(
            client,
            BlobLeases(blobs, 15),
            recorder,
            ProcessorOptions(lease_seconds=15, renew_seconds=2),
            host="with-identity",
            namespace="localhost",
            hub_name=HUB,
            group="$Default",
            clock=uptime,
            random=Random(1),
        )
        task = asyncio.create_task(processor.run())
        for partition in range(2):
            publish(secure, partition, 100)
        await until(lambda: recorder.total == 200)
        await processor.stop(asyncio.get_running_loop().time() + 10)
        await task
        assert processor.statistics().last_fault == ""
        assert recorder.checkpoints == {"0": 99, "1": 99}
        await client.close()
        await blobs.close()


async def test_an_identity_that_is_not_accepted_is_a_set_up_fault(secure, certificate):
    client = _hub(secure, certificate, Identity(secure.issuer, "https://cosmos.azure.com"), "amqp")
    with pytest.raises(SetupFault, match="Azure Event Hubs Data Receiver"):
        await client.describe()
    await client.close()
