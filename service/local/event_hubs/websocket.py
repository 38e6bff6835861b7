"""AMQP over WebSockets (OASIS "AMQP over WebSocket Binding"): for clients behind proxies that let only HTTPS through.

The path and the subprotocol are those that the SDKs use (SDK: `_configuration`, `_pyamqp.constants`).
"""

import asyncio
import ssl
from collections import deque

from aiohttp import WSCloseCode, WSMsgType, web

from service.local.event_hubs.connection import Connection
from service.local.event_hubs.namespace import Namespace

PATH = "/$servicebus/websocket"
SUBPROTOCOLS = ("AMQPWSB10", "amqp")
MAX_MESSAGE_BYTES = 4 * 1024 * 1024


class WebSocketListener:
    """Accepts WebSockets, and gives each a connection."""

    def __init__(self, namespace: Namespace, ssl_context: ssl.SSLContext | None = None) -> None:
        self._namespace = namespace
        self._ssl_context = ssl_context
        self._runner: web.AppRunner | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listens; the port that it got."""
        application = web.Application()
        application.router.add_get(PATH, self._serve)
        application.router.add_get(f"{PATH}/", self._serve)  # as the SDK for Rust writes it
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, ssl_context=self._ssl_context).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stops listening and closes what is open."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=SUBPROTOCOLS, max_msg_size=MAX_MESSAGE_BYTES, timeout=1.0)
        await socket.prepare(request)
        wire = WebSocketWire(socket, request.transport, self._namespace.limits.write_buffer_bytes)
        connection = Connection(self._namespace, wire)
        wire.connection = connection
        writer = asyncio.create_task(wire.write_all())
        try:
            if socket.ws_protocol is None:
                await socket.close(code=WSCloseCode.PROTOCOL_ERROR)
            async for message in socket:
                if message.type is not WSMsgType.BINARY:
                    await socket.close(code=WSCloseCode.UNSUPPORTED_DATA)
                    break
                await wire.may_read.wait()
                connection.feed(message.data)
        finally:
            connection.lost()
            wire.close()
            await writer
        return socket


class WebSocketWire:
    """A WebSocket under a connection. Its frames go out one after another, from a task of their own."""

    def __init__(
        self, socket: web.WebSocketResponse, transport: asyncio.Transport | None, high_water_bytes: int
    ) -> None:
        self.connection: Connection | None = None
        self.may_read = asyncio.Event()
        self.may_read.set()
        self._socket = socket
        self._transport = transport
        self._high_water_bytes = high_water_bytes
        self._queue: deque[bytes] = deque()
        self._unsent = 0
        self._paused = False
        self._ended = False
        self._more = asyncio.Event()

    def write(self, data: bytes) -> None:
        """Sends bytes as one binary message."""
        self._queue.append(data)
        self._unsent += len(data)
        self._more.set()
        if self._unsent > self._high_water_bytes and not self._paused and self.connection is not None:
            self._paused = True
            self.connection.writing_paused()

    def close(self) -> None:
        """Closes after what is queued."""
        self._ended = True
        self._more.set()
        self.may_read.set()

    def abort(self) -> None:
        """Closes at once."""
        self._queue.clear()
        if self._transport is not None:
            self._transport.abort()
        self.close()

    def unsent_bytes(self) -> int:
        """How much is queued."""
        return self._unsent

    def pause_reading(self) -> None:
        """Takes no more messages."""
        self.may_read.clear()

    def resume_reading(self) -> None:
        """Takes messages again."""
        self.may_read.set()

    async def write_all(self) -> None:
        """Sends what is queued until the connection ends."""
        try:
            while True:
                while self._queue:
                    data = self._queue.popleft()
                    await self._socket.send_bytes(data)
                    self._unsent -= len(data)
                if self._ended:
                    break
                if self._paused and self.connection is not None:
                    self._paused = False
                    self.connection.writing_resumed()
                self._more.clear()
                await self._more.wait()
        except ConnectionError:
            pass
        await self._socket.close()
