"""Ten thousand hostile inputs on each of the other ports: TLS, WebSockets, and the control ports of both servers."""

import asyncio
import gc
import random

import aiohttp
import psutil
import pytest

from service.local.certificates import make_certificate
from service.local.cosmos.server import CosmosServer
from service.local.event_hubs.server import EventHubsServer
from tests.contract.cosmos.test_hostile import hostile, throw
from tests.contract.event_hubs.test_hostile import mutated

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1200)]

INPUTS = 10_000
AT_A_TIME = 50
SEED = 4


async def bombard(port, make):
    """Send them all; memory must not grow with their number."""
    before = 0
    for _ in range(INPUTS // AT_A_TIME):
        await asyncio.gather(*(throw(port, make(), 0.05) for _ in range(AT_A_TIME)))
        gc.collect()
        before = before or psutil.Process().memory_info().rss
    assert psutil.Process().memory_info().rss - before < 80 * 1024 * 1024


async def test_the_tls_port(tmp_path, caplog):
    made = make_certificate(tmp_path)
    server = EventHubsServer(ssl_context=made.server_context())
    port = await server.start()
    choose = random.Random(SEED)
    await bombard(port, lambda: mutated(choose))
    _, writer = await asyncio.open_connection("localhost", port, ssl=made.client_context())
    writer.close()
    await writer.wait_closed()
    await server.stop()
    assert not [record for record in caplog.records if record.name.startswith("service")]


async def test_the_websocket_port():
    server = EventHubsServer()
    port = await server.start_websocket()
    choose = random.Random(SEED)
    await bombard(port, lambda: mutated(choose))
    url = f"http://127.0.0.1:{port}/$servicebus/websocket"
    async with aiohttp.ClientSession() as session:
        for _ in range(INPUTS // 10):
            async with session.ws_connect(url, protocols=["AMQPWSB10"]) as socket:
                await socket.send_bytes(mutated(choose))
    await server.stop()


@pytest.mark.parametrize("make_server", [EventHubsServer, CosmosServer])
async def test_the_control_ports(make_server):
    server = make_server()
    await server.start()
    port = await server.start_control()
    choose = random.Random(SEED)
    headers = {"Content-Type": "application/json"}
    await bombard(port, lambda: hostile(choose, headers))
    answer = await throw(port, b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 404")
    await server.stop()
