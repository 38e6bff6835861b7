"""`sluice local up` with the ports that not everybody needs: WebSockets, and control from another process."""

import asyncio
import json
import urllib.request
from urllib.parse import urlsplit

import pytest
from azure.eventhub import EventData, TransportType
from azure.eventhub.aio import EventHubProducerClient

from tests.support.stack import Process, until


@pytest.fixture(params=[[], ["--tls"]], ids=["plain", "tls"])
def lines(request, tmp_path):
    """What FILE says."""
    file = tmp_path / "stack.env"
    arguments = ["local", "up", "--env-file", str(file), "--control", "--websocket-port", "0", *request.param]
    with Process(*arguments, folder=tmp_path) as stack:
        until(file.exists, 60, "the file of settings", process=stack)
        yield dict(line.split("=", 1) for line in file.read_text().splitlines())
        assert stack.stop() == 0


def ask(url, body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


async def send_over_websockets(lines):
    address = urlsplit(lines["SLUICE_LOCAL_WEBSOCKET"])
    producer = EventHubProducerClient.from_connection_string(
        lines["EVENTHUB_CONNSTRING"],
        eventhub_name=lines["EVENTHUB_NAME"],
        transport_type=TransportType.AmqpOverWebsocket,
        custom_endpoint_address=f"sb://localhost:{address.port}",
        **({"connection_verify": lines["SLUICE_CA_FILE"]} if address.scheme == "wss" else {}),
    )
    async with producer:
        await producer.send_batch([EventData("over a web socket")], partition_id="0")
        return (await producer.get_partition_properties("0"))["last_enqueued_sequence_number"]


# The SDK says so to aiohttp where there is no TLS.
@pytest.mark.filterwarnings("ignore:ssl=None is deprecated:DeprecationWarning")
def test_both_are_there_and_the_file_names_them(lines):
    assert asyncio.run(send_over_websockets(lines)) == 0
    hub, cosmos = lines["SLUICE_LOCAL_EVENTHUB_CONTROL"], lines["SLUICE_LOCAL_COSMOS_CONTROL"]
    assert ask(f"{hub}/freeze", {"hub": lines["EVENTHUB_NAME"], "partition": "0"}) is not None
    assert lines["EVENTHUB_NAME"] in json.dumps(ask(f"{hub}/state"))
    here = f"{cosmos}/containers/{lines['COSMOS_DATABASE']}/{lines['COSMOS_CONTAINER']}"
    assert len(ask(f"{here}/split", {"into": 5})["ranges"]) == 5
