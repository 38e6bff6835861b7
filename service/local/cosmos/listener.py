"""The HTTP port: bytes to requests, answers to bytes.

aiohttp's low-level server, which the SDKs bring along anyway. What it cannot parse gets the service's own form of an
error, and no request is taken in beyond MAX_REQUEST_BYTES.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import unquote

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from service.local.cosmos.errors import BadRequest, CosmosError
from service.local.cosmos.wire import Request, Response, error_response

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024  # twice the limit of an item, so that its own error can be given
MAX_HEADER_BYTES: Final = 32 * 1024  # session and continuation tokens are long
IDLE_SECONDS: Final = 120.0
LINGER_SECONDS: Final = 2.0
TOO_LARGE: Final = CosmosError(413, "Request size is too large")
_quiet = logging.getLogger("service.local.cosmos.http")
_quiet.addHandler(logging.NullHandler())
_quiet.setLevel(logging.CRITICAL)
_quiet.propagate = False  # what strangers send is their matter: they get it told, the log does not

Answer = Callable[[Request], Awaitable[Response | None]]
"""Gives the answer to a request; None closes the socket without one."""


class Listener:
    """A port that hands each request to `answer`."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._runner: web.ServerRunner | None = None
        self._secure = False
        self.port = 0

    async def start(self, host: str, port: int, ssl_context: ssl.SSLContext | None = None) -> int:
        """Listen; the port that was taken."""
        self._secure = ssl_context is not None
        self._runner = web.ServerRunner(_Server(self._serve), handle_signals=False, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, ssl_context=ssl_context).start()
        self.port = int(self._runner.addresses[0][1])
        return self.port

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _serve(self, raw: web.BaseRequest) -> web.StreamResponse:
        close = False
        try:
            close = (raw.content_length or 0) > MAX_REQUEST_BYTES
            body = await _body(raw) if raw.body_exists and not close else b""
            response = error_response(TOO_LARGE) if close else await self._answer(self._request(raw, body))
        except CosmosError as error:
            response = error_response(error)
        except ConnectionError:
            response = None  # the client is gone: nobody is there to answer
        except web.RequestPayloadError as error:
            close = True
            response = error_response(BadRequest(f"The body of the request cannot be read. {str(error)[:100]}"))
        except web.HTTPRequestEntityTooLarge:
            close = True
            response = error_response(TOO_LARGE)
        if response is None:
            if raw.transport is not None:
                raw.transport.abort()
            return web.Response(status=500)
        return _answer(response, close)

    def _request(self, raw: web.BaseRequest, body: bytes) -> Request:
        path = raw.raw_path.partition("?")[0].strip("/")
        segments = tuple(unquote(part) for part in path.split("/")) if path else ()
        if not all(_is_text(segment) and "\x00" not in segment for segment in segments):
            raise BadRequest("The path of the request is invalid.")
        if not all(_is_text(value) for value in raw.headers.values()):
            raise BadRequest("A header of the request is not valid UTF-8.")
        scheme = "https" if self._secure else "http"
        host = raw.headers.get("Host") or f"127.0.0.1:{self.port}"
        return Request(raw.method, segments, raw.headers, body, f"{scheme}://{host}/", self._secure)


async def _body(raw: web.BaseRequest) -> bytes:
    """The whole body. (aiohttp's own way of reading it copies it twice more.)"""
    parts: list[bytes] = []
    left = MAX_REQUEST_BYTES
    while part := await raw.content.readany():
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise web.HTTPRequestEntityTooLarge(MAX_REQUEST_BYTES, MAX_REQUEST_BYTES - left)
    return b"".join(parts)


def _is_text(value: str) -> bool:
    """Whether it can be written as UTF-8 again: aiohttp keeps other bytes as lone surrogates."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Server(web.Server):
    """aiohttp's server with our limits and our form of errors."""

    def __call__(self) -> RequestHandler:
        return _Connection(
            self,
            loop=asyncio.get_running_loop(),
            access_log=_quiet,
            logger=_quiet,
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=LINGER_SECONDS,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )


class _Connection(RequestHandler):
    """One connection; bytes that are no HTTP get a 400 as JSON, and faults of our own a 500."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status >= 500 and exc is not None:
            logging.getLogger(__name__).error("A request failed inside the local Cosmos server", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("An answer was already on its way.")
        text = (
            "The server met an error of its own." if status >= 500 else f"The request is no valid HTTP. {message or ''}"
        )
        return _answer(error_response(CosmosError(status, text[:300])), close=True)


def _answer(response: Response, close: bool) -> web.Response:
    headers: dict[str, Any] = {"x-ms-request-charge": f"{response.charge:.2f}"}
    if response.body or response.status not in {204, 304}:
        headers["Content-Type"] = "application/json"
    answer = web.Response(status=response.status, headers=headers | dict(response.headers), body=response.body or None)
    if close:
        answer.force_close()
    return answer
