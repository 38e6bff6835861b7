"""Bytes made to hurt, on every port: no crash, no hang, no effect on others, and memory that stays bounded."""

import asyncio
import contextlib
import random
import socket

import aiohttp
import psutil
import pytest

from service.amqp.frames import AMQP_HEADER, SASL_HEADER, ProtocolHeader, frame, sasl_frame
from service.amqp.messages import DATA, section
from service.amqp.performatives import Attach, Begin, Close, Disposition, Flow, Open, SaslInit, Transfer
from service.amqp.types import Described, Symbol, ULong
from service.local.certificates import make_certificate
from service.local.event_hubs.namespace import Limits
from service.local.event_hubs.server import EventHubsServer
from tests.contract.event_hubs.raw import RawClient
from tests.contract.event_hubs.test_wire import EARLIEST, PARTITION, sequence

SEED = 20161116


def conversation():
    """A whole and right conversation, as a list of the client's writes."""
    source = Described(ULong(0x28), [PARTITION, None, None, None, None, None, None, {Symbol("selector"): EARLIEST}])
    target = Described(ULong(0x29), ["hub/Partitions/0"])
    return [
        SASL_HEADER,
        sasl_frame(SaslInit("PLAIN", b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE")),
        AMQP_HEADER,
        frame(0, Open("hostile", max_frame_size=512)),
        frame(0, Begin(None, 0, 100, 100)),
        frame(0, Attach("r", 0, role=True, source=source, target=target)),
        frame(0, Attach("s", 1, role=False, source=source, target=target, initial_delivery_count=0)),
        frame(0, Attach("c", 2, role=False, target=Described(ULong(0x29), ["$cbs"]))),
        frame(0, Attach("m", 3, role=False, target=Described(ULong(0x29), ["$management"]))),
        frame(0, Flow(0, 100, 0, 100, 0, 0, 10)),
        frame(0, Transfer(1, 0, b"t", 0), section(DATA, b"x")),
        frame(0, Transfer(2, 1, b"t", 0), b"junk"),
        frame(0, Disposition(role=True, first=0, last=5, settled=True)),
        frame(0, Close()),
    ]


def mutated(choose):
    """One hostile input: random bytes, or a right conversation that is cut, changed, repeated or out of order."""
    parts = conversation()
    match choose.randrange(6):
        case 0:
            return choose.randbytes(choose.randrange(1, 300))
        case 1:
            return b"".join(parts)[: choose.randrange(1, 900)]
        case 2:
            raw = bytearray(b"".join(parts))
            for _ in range(choose.randrange(1, 8)):
                raw[choose.randrange(8, len(raw))] = choose.randrange(256)
            return bytes(raw)
        case 3:
            return b"".join(parts[:4]) + b"".join(choose.choices(parts[4:], k=12))
        case 4:
            keep = choose.randrange(4, len(parts))
            return b"".join(parts[:keep]) + choose.randbytes(choose.randrange(1, 2000))
        case _:
            size = choose.choice([0, 7, 9, 65_537, 2**31, 2**32 - 1])
            return b"".join(parts[: choose.randrange(3, 9)]) + size.to_bytes(4, "big") + b"\x02\x00\x00\x00" + bytes(64)


async def say(port, raw):
    """Says it, closes its own side, and reads until the server has closed too."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(10):
            writer.write(raw)
            await writer.drain()
            writer.write_eof()
            while await reader.read(2**16):
                pass
    except ConnectionError:
        pass
    finally:
        writer.close()


@pytest.mark.parametrize("inputs", [2_000, pytest.param(12_000, marks=pytest.mark.proof)])
async def test_hostile_bytes_hurt_nobody(server, caplog, inputs):
    hub = server.hub("hub")
    hub.append("0", [b"x"])
    choose = random.Random(SEED + inputs)
    process = psutil.Process()
    async with RawClient(server.port) as good:
        await good.open()
        await good.attach_receiver("hub/ConsumerGroups/$Default/Partitions/1", selector=EARLIEST)
        good.credit(1000)
        before = 0
        for start in range(0, inputs, 50):
            await asyncio.gather(*(say(server.port, mutated(choose)) for _ in range(50)))
            hub.append("1", [b"still here"])
            assert sequence(await good.expect(Transfer)) == start // 50
            before = before or process.memory_info().rss
    assert process.memory_info().rss - before < 50_000_000
    assert not [record for record in caplog.records if record.name.startswith("service")]


async def test_hostile_bytes_on_the_websocket_and_the_control_port(server):
    websocket, control = await server.start_websocket(), await server.start_control()
    choose = random.Random(SEED)
    for port in (websocket, control):
        for _ in range(4):
            await asyncio.gather(*(say(port, mutated(choose)) for _ in range(25)))
    url = f"http://127.0.0.1:{websocket}/$servicebus/websocket"
    async with aiohttp.ClientSession() as session:
        for _ in range(100):
            async with session.ws_connect(url, protocols=["AMQPWSB10"]) as socket:
                await socket.send_bytes(mutated(choose))
                await socket.close()
        async with session.ws_connect(url, protocols=["AMQPWSB10"]) as socket:
            await socket.send_str("text")
            assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
        async with session.get(f"http://127.0.0.1:{control}/state") as response:
            assert response.status == 200
        async with session.post(f"http://127.0.0.1:{control}/drop", data=b"x" * 200_000) as response:
            assert response.status == 413
    async with RawClient(server.port) as client:
        await client.open()


async def test_a_client_that_asks_and_never_reads_is_not_read_any_more():
    limit = 200_000
    server = EventHubsServer(limits=Limits(write_buffer_bytes=100_000, max_unread_bytes=limit))
    server.add_hub("hub", 1)
    await server.start()
    async with RawClient(server.port, receive_buffer=8192) as client:
        await client.open()
        await client.attach_sender("hub/Partitions/0")
        echo = frame(0, Flow(0, 2048, 0, 2048, 0, 0, 0, echo=True)) * 1000
        (connection,) = server.namespace.connections
        connection._wire._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        with contextlib.suppress(TimeoutError):
            for _ in range(1000):  # 41 MB of questions; once the server stops reading, the sockets fill
                client.write(echo)
                await asyncio.wait_for(client.writer.drain(), 0.5)
        assert limit < connection._wire.unsent_bytes() < 3 * limit
        assert client.writer.transport.get_write_buffer_size() > 0
        client.writer.transport.abort()
    await server.stop()


async def test_half_messages_on_many_links_cannot_fill_the_memory(server):
    async with RawClient(server.port) as client:
        await client.open()
        for handle in range(40):
            await client.attach_sender("hub/Partitions/0", handle)
        with contextlib.suppress(ConnectionError):
            for handle in range(40):
                for _ in range(16):
                    client.send(Transfer(handle, handle, b"t", 0, more=True), payload=bytes(60_000))
                await client.writer.drain()
        closed = (await client.expect(Close)).body
        assert closed.error.value[0] == "amqp:resource-limit-exceeded"


async def test_hostile_bytes_on_the_tls_port(tmp_path, caplog):
    made = make_certificate(tmp_path)
    server = EventHubsServer(ssl_context=made.server_context())
    await server.start()
    choose = random.Random(SEED)
    for _ in range(4):
        await asyncio.gather(*(say(server.port, mutated(choose)) for _ in range(50)))
    async with RawClient(server.port, tls=made.client_context()) as client:
        await client.open()
        client.send(Close())
        await client.expect(Close)
    await server.stop()
    assert not [record for record in caplog.records if record.name.startswith("service")]


async def test_half_an_open_waits_without_holding_more_than_a_frame(server):
    async with RawClient(server.port) as client:
        client.write(SASL_HEADER[:5])
        async with RawClient(server.port) as other:
            await other.open()
        client.write(SASL_HEADER[5:])
        assert await client.item() == ProtocolHeader(SASL_HEADER)
