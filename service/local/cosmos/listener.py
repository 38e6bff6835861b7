"""The HTTP port: bytes to requests, answers to bytes.

HTTP/1.1 over httptools (Node's parser), of which only what the service itself offers: no upgrades, no compressed
bodies; HTTP/2 is refused in its own words. What cannot be parsed gets the service's own form of an error, and no
request is taken in beyond MAX_REQUEST_BYTES. Requests that come one behind the other are answered in their order.
"""

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import unquote

import httptools

from service.local.cosmos.errors import BadRequest, CosmosError
from service.local.cosmos.http2 import PREFACE, Http2Refusal
from service.local.cosmos.wire import Request, Response, error_response
from service.local.ports import stop_accepting

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024  # twice the limit of an item, so that its own error can be given
MAX_HEADER_BYTES: Final = 32 * 1024  # session and continuation tokens are long
MAX_SILENT_BYTES: Final = 2 * MAX_HEADER_BYTES + 256 * 1024  # and what may come in one piece
MAX_WAITING: Final = 8  # requests of one connection that are read before the first of them is answered
IDLE_SECONDS: Final = 120.0
LINGER_SECONDS: Final = 2.0
TOO_LARGE: Final = CosmosError(413, "Request size is too large")
LONG_HEAD: Final = BadRequest(f"The head of the request is longer than {MAX_HEADER_BYTES} bytes.")
UPGRADING: Final = frozenset({"connection", "upgrade"})
PHRASES: Final = {status.value: status.phrase for status in HTTPStatus} | {449: "Retry With"}
log = logging.getLogger(__name__)

Answer = Callable[[Request], Awaitable[Response | None]]
"""Gives the answer to a request; None closes the socket without one."""


class Listener:
    """A port that hands each request to `answer`."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.secure = False
        self.port = 0
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, ssl_context: ssl.SSLContext | None = None) -> int:
        """Listen; the port that was taken."""
        self.secure = ssl_context is not None
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host, port, ssl=ssl_context, backlog=128)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def stop(self) -> None:
        """Close the port and every connection; answers that are being made are not waited for."""
        if self._server is not None:
            await stop_accepting(self._server)
            self._server = None
        await asyncio.gather(*(connection.cut() for connection in list(self.connections)))


class _Incoming:
    """A request while it is being read. What is wrong with it is its answer."""

    __slots__ = ("body", "fault", "header_bytes", "headers", "keep_alive", "left", "method", "url")

    def __init__(self) -> None:
        self.url = b""
        self.method = ""
        self.headers: dict[str, str] = {}
        self.header_bytes = 0
        self.body: list[bytes] = []
        self.left = MAX_REQUEST_BYTES
        self.keep_alive = False
        self.fault: CosmosError | None = None

    def to_request(self, base_url: str, secure: bool) -> Request:
        """The whole request. Raises BadRequest."""
        try:
            path = self.url.partition(b"?")[0].decode().strip("/")
            segments = tuple(unquote(part, errors="strict") for part in path.split("/")) if path else ()
        except UnicodeDecodeError:
            raise BadRequest("The path of the request is invalid.") from None
        if any("\x00" in segment for segment in segments):
            raise BadRequest("The path of the request is invalid.")
        return Request(self.method, segments, self.headers, b"".join(self.body), base_url, secure)


class _Connection(asyncio.Protocol):
    """One connection: httptools calls back with the parts of requests; one task at a time answers them."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._parser = httptools.HttpRequestParser(self)
        self._incoming = _Incoming()
        self._waiting: deque[_Incoming] = deque()
        self._answering: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport
        self._room = asyncio.Event()
        self._gone = asyncio.Event()
        self._closing = False
        self._paused = False
        self._ended = False
        self._silent_bytes = 0  # read since the parser last called back: it keeps a field until it is whole
        self._heard_at = 0.0
        self._http2: Http2Refusal | None = None
        self._timer: asyncio.TimerHandle

    # From the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._room.set()
        self._listener.connections.add(self)
        self._look_after_idling()

    def connection_lost(self, _: Exception | None) -> None:
        self._closing = True
        self._room.set()
        self._gone.set()
        self._timer.cancel()
        self._waiting.clear()
        self._listener.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        if not self._heard_at and data.startswith(PREFACE):
            self._http2 = Http2Refusal(self._transport.write, self._transport.close)
        self._heard_at = asyncio.get_running_loop().time()
        if self._http2 is not None:
            self._http2.feed(data)
            if not self._room.is_set():  # it asks and does not read: nothing is kept for it
                self._transport.abort()
            return
        self._silent_bytes += len(data)
        while data and not self._closing:
            data = self._feed(data)
        if self._silent_bytes > MAX_SILENT_BYTES:
            self._refuse(LONG_HEAD)

    def eof_received(self) -> bool:
        self._ended = True
        return self._answering is not None and not self._listener.secure  # what was asked is still answered

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    # From the parser

    def on_url(self, url: bytes) -> None:
        self._silent_bytes = 0
        self._incoming.url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        incoming = self._incoming
        self._silent_bytes = 0
        self._count_head(len(name) + len(value))
        try:
            incoming.headers.setdefault(name.decode("ascii").lower(), value.decode())
        except UnicodeDecodeError:
            incoming.fault = incoming.fault or BadRequest("A header of the request is not valid UTF-8.")

    def on_headers_complete(self) -> None:
        incoming, headers = self._incoming, self._incoming.headers
        incoming.method = self._parser.get_method().decode()
        if self._parser.should_upgrade():
            return
        incoming.keep_alive = self._parser.should_keep_alive()
        if headers.get("content-encoding", "identity") != "identity":
            incoming.fault = incoming.fault or CosmosError(415, "Bodies are not taken in compressed form.")
        if int(headers.get("content-length") or 0) > MAX_REQUEST_BYTES:
            self._refuse(TOO_LARGE)
        elif headers.get("expect", "").lower() == "100-continue" and not self._waiting and self._answering is None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, part: bytes) -> None:
        self._silent_bytes = 0
        self._incoming.left -= len(part)
        if self._incoming.left < 0:
            self._refuse(TOO_LARGE)
        elif not self._closing:
            self._incoming.body.append(part)

    def on_message_complete(self) -> None:
        if not self._closing and not self._parser.should_upgrade():
            self._take_in()

    # Its own

    def _feed(self, data: bytes) -> bytes:
        """Parse; gives what has to be parsed now."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            return self._without_upgrade() + data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            self._refuse(BadRequest(f"The request is no valid HTTP. {str(error)[:200]}"))
        return b""

    def _without_upgrade(self) -> bytes:
        """The head of the last request once more, asking for no upgrade: a server may pass that over (RFC 9110, 7.8).

        The parser leaves all that follows such a head, its body too, to another protocol; hence a new parser.
        """
        asked, self._incoming = self._incoming, _Incoming()
        self._incoming.fault = asked.fault
        self._parser = httptools.HttpRequestParser(self)
        if asked.method == "CONNECT":
            self._refuse(CosmosError(405, "The requested verb is not supported."))
        kept = "".join(f"{name}: {value}\r\n" for name, value in asked.headers.items() if name not in UPGRADING)
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (asked.method.encode(), asked.url, kept.encode())

    async def cut(self) -> None:
        """End it at once."""
        self._transport.abort()
        if self._answering is not None:
            self._answering.cancel()
        await self._gone.wait()

    def _count_head(self, count: int) -> None:
        self._incoming.header_bytes += count
        if self._incoming.header_bytes > MAX_HEADER_BYTES:
            self._refuse(LONG_HEAD)

    def _refuse(self, fault: CosmosError) -> None:
        """Answer before the request is read to its end, and read no more."""
        if self._closing:
            return
        self._incoming.fault = self._incoming.fault or fault
        self._incoming.keep_alive = False
        self._incoming.body.clear()
        self._take_in()

    def _take_in(self) -> None:
        """The request is whole, or will get no better."""
        incoming, self._incoming = self._incoming, _Incoming()
        self._closing = not incoming.keep_alive
        self._waiting.append(incoming)
        if len(self._waiting) >= MAX_WAITING and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        if self._answering is None:
            self._answering = asyncio.get_running_loop().create_task(self._answer_all())

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                incoming = self._waiting.popleft()
                if self._paused and len(self._waiting) < MAX_WAITING:
                    self._paused = False
                    self._transport.resume_reading()
                await self._answer(incoming)
        finally:
            self._answering = None
        if self._ended:
            self._transport.close()

    async def _answer(self, incoming: _Incoming) -> None:
        response = await self._response(incoming)
        if response is None or self._transport.is_closing():
            self._transport.abort()
            return
        body = b"" if incoming.method == "HEAD" else response.body
        self._transport.writelines([_head(response, incoming.keep_alive), body])
        if incoming.keep_alive:
            await self._room.wait()
        else:
            self._close()

    async def _response(self, incoming: _Incoming) -> Response | None:
        if incoming.fault is not None:
            return error_response(incoming.fault)
        listener = self._listener
        host = incoming.headers.get("host") or f"127.0.0.1:{listener.port}"
        base_url = f"{'https' if listener.secure else 'http'}://{host}/"
        try:
            return await listener.answer(incoming.to_request(base_url, listener.secure))
        except CosmosError as error:
            return error_response(error)
        except Exception as error:  # a fault of ours: the client is told, and the log
            log.error("A request failed inside the local Cosmos server", exc_info=error)
            incoming.keep_alive = False
            return error_response(CosmosError(500, "The server met an error of its own."))

    def _close(self) -> None:
        """Say that no more comes, and wait for the client to end: what it is still sending would undo the answer."""
        if self._transport.can_write_eof():
            self._transport.write_eof()
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.abort)
        else:
            self._transport.close()

    def _look_after_idling(self) -> None:
        loop = asyncio.get_running_loop()
        left = (self._heard_at or loop.time()) + IDLE_SECONDS - loop.time()
        if left <= 0 and self._answering is None:
            self._transport.abort()
            return
        self._timer = loop.call_later(max(left, 1.0), self._look_after_idling)


def _head(response: Response, keep_alive: bool) -> bytes:
    status = response.status
    lines = [
        f"HTTP/1.1 {status} {PHRASES.get(status, '')}",
        f"Date: {_date(int(time.time()))}",
        f"x-ms-request-charge: {response.charge:.2f}",
    ]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    if response.body or status not in {204, 304}:
        lines += ["Content-Type: application/json", f"Content-Length: {len(response.body)}"]
    lines.append("Connection: keep-alive\r\n\r\n" if keep_alive else "Connection: close\r\n\r\n")
    return "\r\n".join(lines).encode()


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
