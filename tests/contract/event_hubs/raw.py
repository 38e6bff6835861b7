"""A small AMQP client made of `service.amqp`: it says exactly what a test wants said, right or wrong."""

import asyncio
import socket
import ssl
from dataclasses import dataclass

from service.amqp.frames import AMQP_HEADER, SASL_HEADER, Frame, FrameReader, ProtocolHeader, frame, sasl_frame
from service.amqp.messages import DATA, Message, section
from service.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Transfer,
)
from service.amqp.types import Described, Symbol, ULong
from service.local.event_hubs.access import DEFAULT_KEY, DEFAULT_KEY_NAME

PLAIN = SaslInit("PLAIN", f"\0{DEFAULT_KEY_NAME}\0{DEFAULT_KEY}".encode())
SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Received:
    """A frame from the server."""

    channel: int
    body: Performative
    payload: bytes = b""


class RawClient:
    def __init__(self, port: int, tls: ssl.SSLContext | None = None, receive_buffer: int | None = None):
        self.port = port
        self.tls = tls
        self.receive_buffer = receive_buffer
        self.frames = FrameReader(2**20)
        self.next_id = 0

    async def __aenter__(self):
        connecting = socket.socket()
        connecting.setblocking(False)
        if self.receive_buffer is not None:
            connecting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        await asyncio.get_running_loop().sock_connect(connecting, ("127.0.0.1", self.port))
        name = "localhost" if self.tls else None
        self.reader, self.writer = await asyncio.open_connection(sock=connecting, ssl=self.tls, server_hostname=name)
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    def write(self, raw: bytes) -> None:
        self.writer.write(raw)

    def send(self, body: Performative, channel: int = 0, payload: bytes = b"") -> None:
        self.write(frame(channel, body, payload))

    async def item(self) -> ProtocolHeader | Frame | None:
        """The next header or frame; None when the server has closed the socket."""
        async with asyncio.timeout(SECONDS):
            while (item := self.frames.next()) is None:
                try:
                    data = await self.reader.read(2**16)
                except ConnectionError:
                    return None
                if not data:
                    return None
                self.frames.feed(data)
        return item

    async def receive(self) -> Received | None:
        while (item := await self.item()) is not None:
            if isinstance(item, Frame) and item.body:
                body, payload = item.open()
                return Received(item.channel, body, payload)
        return None

    async def expect(self, kind: type[Performative], passing: tuple[type[Performative], ...] = (Flow,)) -> Received:
        """The next frame of this kind; others than `passing` before it are a fault."""
        while True:
            got = await self.receive()
            assert got is not None, f"the server closed the socket before any {kind.__name__}"
            if isinstance(got.body, kind):
                return got
            assert isinstance(got.body, passing), got

    async def handshake(self, init: SaslInit = PLAIN) -> SaslOutcome:
        self.write(SASL_HEADER)
        assert await self.item() == ProtocolHeader(SASL_HEADER)
        assert isinstance((await self.receive()).body, SaslMechanisms)
        self.write(sasl_frame(init))
        return (await self.receive()).body

    async def open(self, init: SaslInit = PLAIN, **fields: object) -> Open:
        """Through SASL and open to a first session."""
        assert (await self.handshake(init)).code == 0
        self.frames.expect_header()
        self.write(AMQP_HEADER)
        assert await self.item() == ProtocolHeader(AMQP_HEADER)
        self.send(Open("raw", **fields))
        opened = (await self.expect(Open)).body
        self.send(Begin(None, 0, 2048, 2048))
        await self.expect(Begin)
        return opened

    async def attach_receiver(self, address: str, handle: int = 0, *, selector: str | None = None, **fields: object):
        filters = {Symbol("apache.org:selector-filter:string"): Described(Symbol("x"), selector)} if selector else None
        source = Described(ULong(0x28), [address, None, None, None, None, None, None, filters])
        self.send(
            Attach(f"r{handle}", handle, role=True, source=source, target=Described(ULong(0x29), ["t"]), **fields)
        )
        return (await self.expect(Attach)).body

    async def attach_sender(self, address: str, handle: int = 0):
        source, target = Described(ULong(0x28), ["s"]), Described(ULong(0x29), [address])
        self.send(Attach(f"s{handle}", handle, role=False, source=source, target=target, initial_delivery_count=0))
        return (await self.expect(Attach)).body

    def credit(self, credit: int, handle: int = 0, *, count: int = 0, incoming: int = 0, **fields: object) -> None:
        self.send(Flow(incoming, 2048, 0, 2048, handle, count, credit, **fields))

    async def publish(self, body: bytes, handle: int = 0) -> Disposition:
        self.send(Transfer(handle, self.next_id, b"t", 0), payload=section(DATA, body))
        self.next_id += 1
        return (await self.expect(Disposition)).body

    async def request(self, node: str, message: Message) -> Message:
        """One request to `$cbs` or `$management` over fresh links."""
        await self.attach_sender(node, 10)
        await self.attach_receiver(node, 11)
        self.credit(10, 11)
        self.send(Transfer(10, self.next_id, b"t", 0), payload=message.encode())
        self.next_id += 1
        reply = await self.expect(Transfer, (Flow, Disposition))
        for handle in (10, 11):
            self.send(Detach(handle, closed=True))
            await self.expect(Detach, (Flow, Disposition))
        return Message.decode(reply.payload)


__all__ = ["PLAIN", "Close", "End", "RawClient", "Received"]
