"""TLS, WebSockets and bearer tokens, with azure-eventhub aio and sync as the clients."""

import asyncio
import time

import aiohttp
import pytest
from azure.core.credentials import AccessToken
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient, TransportType
from azure.eventhub import aio as eventhub
from azure.eventhub.exceptions import AuthenticationError, ConnectError

from service.local.certificates import make_certificate
from service.local.event_hubs.server import EventHubsServer
from service.local.tokens import TokenIssuer
from tests.contract.event_hubs.conftest import Reader, until


@pytest.fixture(scope="module")
def issuer():
    return TokenIssuer()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def secure(certificate, issuer):
    """A server with TLS, WebSockets and a token issuer."""
    server = EventHubsServer(ssl_context=certificate.server_context(), token_issuer=issuer)
    server.add_hub("hub", 2)
    await server.start()
    server.websocket_port = await server.start_websocket()
    yield server
    await server.stop()


class Credential:
    """An identity whose tokens live as long as the test says; it counts how often it was asked."""

    def __init__(self, issuer, audience="https://eventhubs.azure.net", lifetime=3600.0):
        self.issuer, self.audience, self.lifetime = issuer, audience, lifetime
        self.asked = 0

    def _token(self):
        self.asked += 1
        return AccessToken(self.issuer.issue(self.audience, self.lifetime), int(time.time() + self.lifetime))


class AsyncCredential(Credential):
    async def get_token(self, *_scopes, **_options):
        return self._token()

    async def close(self):
        pass

    async def __aexit__(self, *_):
        pass


def secure_producer(server, certificate, credential, **options):
    return eventhub.EventHubProducerClient(
        "localhost",
        "hub",
        credential,
        custom_endpoint_address=f"sb://localhost:{server.port}",
        transport_type=TransportType.Amqp,
        connection_verify=str(certificate.cert),
        **({"retry_total": 0} | options),
    )


async def test_tls_with_a_key_aio(secure, certificate):
    options = {
        "custom_endpoint_address": f"sb://localhost:{secure.port}",
        "transport_type": TransportType.Amqp,
        "connection_verify": str(certificate.cert),
    }
    connection = secure.connection_string().replace(f"127.0.0.1:{secure.port}", "localhost")
    async with eventhub.EventHubProducerClient.from_connection_string(
        connection, eventhub_name="hub", **options
    ) as producer:
        await producer.send_batch([EventData("over tls")], partition_id="0")
    async with Reader(connection, options=options, partition_id="0") as reader:
        await reader.take(1)
    assert reader.bodies() == ["over tls"]


async def test_tls_with_a_bearer_token_which_is_refreshed_in_the_middle(secure, certificate, issuer):
    credential = AsyncCredential(issuer, lifetime=2.0)
    async with secure_producer(secure, certificate, credential) as producer:
        deadline = time.monotonic() + 3.0
        sent = 0
        while time.monotonic() < deadline:
            await producer.send_batch([EventData("x")], partition_id="0")
            sent += 1
            await asyncio.sleep(0.1)
    assert credential.asked > 1
    assert secure.hub("hub").partition("0").log.end == sent


async def test_a_bearer_token_for_another_or_of_yesterday_is_refused(secure, certificate, issuer):
    async def send_with(credential):
        async with secure_producer(secure, certificate, credential) as producer:
            with pytest.raises((AuthenticationError, ConnectError)):
                await producer.send_batch([EventData("x")], partition_id="0")

    other, old = AsyncCredential(issuer, "https://cosmos.azure.com"), AsyncCredential(issuer, lifetime=-30.0)
    await asyncio.gather(send_with(other), send_with(old))
    assert secure.hub("hub").partition("0").log.end == 0


@pytest.mark.parametrize(("path", "protocol"), [("", "AMQPWSB10"), ("/", "AMQPWSB10"), ("/", "amqp")])
async def test_websockets_are_opened_as_the_sdks_and_the_standard_name_them(secure, certificate, path, protocol):
    url = f"https://localhost:{secure.websocket_port}/$servicebus/websocket{path}"
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, protocols=[protocol], ssl=certificate.client_context()) as socket,
    ):
        assert socket.protocol == protocol
        await socket.send_bytes(b"AMQP\x03\x01\x00\x00")
        assert (await socket.receive_bytes(timeout=5)).startswith(b"AMQP\x03\x01\x00\x00")


async def test_websockets_aio(secure, certificate, issuer):
    options = {
        "custom_endpoint_address": f"sb://localhost:{secure.websocket_port}",
        "transport_type": TransportType.AmqpOverWebsocket,
        "connection_verify": str(certificate.cert),
        "retry_total": 0,
    }
    credential = AsyncCredential(issuer)
    async with eventhub.EventHubProducerClient("localhost", "hub", credential, **options) as producer:
        await producer.send_batch([EventData("x" * 200_000)] * 4, partition_id="1")
        assert (await producer.get_partition_properties("1"))["last_enqueued_sequence_number"] == 3
    connection = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"
    async with Reader(connection, options=options, partition_id="1") as reader:
        events = await reader.take(4)
    assert [len(event.body_as_str()) for event in events] == [200_000] * 4
    await until(lambda: not secure.namespace.connections)


async def test_websockets_sync(secure, certificate):
    connection = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"

    def send():
        with EventHubProducerClient.from_connection_string(
            connection,
            eventhub_name="hub",
            custom_endpoint_address=f"sb://localhost:{secure.websocket_port}",
            transport_type=TransportType.AmqpOverWebsocket,
            connection_verify=str(certificate.cert),
        ) as producer:
            producer.send_batch([EventData("sync")], partition_id="0")

    await asyncio.to_thread(send)
    assert secure.hub("hub").partition("0").log.end == 1


async def test_plain_tcp_sync(server):
    connection = server.connection_string("hub")

    def send_and_receive():
        with EventHubProducerClient.from_connection_string(connection) as producer:
            producer.send_batch([EventData(str(number)) for number in range(500)], partition_id="2")
            assert producer.get_partition_properties("2")["last_enqueued_sequence_number"] == 499
        events = []
        consumer = EventHubConsumerClient.from_connection_string(connection, "$Default")

        def on_batch(_, batch):
            events.extend(batch)
            if len(events) >= 500:
                consumer.close()

        consumer.receive_batch(on_batch, partition_id="2", starting_position="-1", max_batch_size=500)
        return events

    events = await asyncio.to_thread(send_and_receive)
    assert [event.body_as_str() for event in events] == [str(number) for number in range(500)]
