"""Bulk requests on the wire: the SDK's own request, taken just before it leaves, and sent with our bodies.

azure-cosmos spends about 1.2 ms on the way of one request through its layers; the request itself costs a quarter of
that. What those layers produce - address, authorization, the headers of a batch - stays true for a while: a signature
is accepted for 15 minutes, a token is renewed five minutes before it ends. So they are asked for it every few seconds,
and the requests between go straight to aiohttp. After a failure the next request goes the whole way through the SDK,
which looks after regions and tokens.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson
from azure.core.pipeline import PipelineRequest
from multidict import CIMultiDict
from yarl import URL

from service.sink.container import Refused, Result

MAX_AGE_SECONDS: Final = 10.0
# aiohttp warns of larger bodies given as bytes, because it would copy them at once.
LARGE_BODY_BYTES: Final = 1024 * 1024
# The sender limits the whole of it; a second timer for each request would cost more than it tells.
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5.0)


class Captured(Exception):
    """Raised by the hook that only wanted to see the request. It ends the SDK's call before anything is sent."""


@dataclass(frozen=True, slots=True)
class Template:
    """A batch request as the SDK would send it, without its body."""

    url: URL
    headers: CIMultiDict[str]
    at: float

    @classmethod
    def of(cls, request: PipelineRequest[Any], at: float) -> "Template":
        """Of a request that has passed `as_bulk`."""
        headers = CIMultiDict({name: str(value) for name, value in request.http_request.headers.items()})
        for name in ("Content-Length", "Prefer", "x-ms-documentdb-partitionkeyrangeid"):
            headers.pop(name, None)
        headers["Accept-Encoding"] = "identity"  # answers are short; unpacking them costs more than it saves
        return cls(URL(request.http_request.url, encoded=True), headers, at)


def as_bulk(headers: Any, range_id: str, *, minimal: bool) -> None:  # noqa: ANN401 - any mutable mapping of headers
    """Turn the headers of a transactional batch into those of a bulk request."""
    headers["x-ms-cosmos-batch-atomic"] = "False"
    headers["x-ms-cosmos-batch-continue-on-error"] = "True"
    headers["x-ms-documentdb-partitionkeyrangeid"] = range_id
    if minimal:
        headers["Prefer"] = "return=minimal"
    headers.pop("x-ms-documentdb-partitionkey", None)


def as_data(payload: bytes) -> bytes | io.BytesIO:
    """The payload in the form in which aiohttp takes it without a warning."""
    return io.BytesIO(payload) if len(payload) >= LARGE_BODY_BYTES else payload


class Wire:
    """Sends bodies after a template."""

    def __init__(self, session: aiohttp.ClientSession, proxies: Mapping[str, str]) -> None:
        self._session = session
        self._proxies = proxies

    async def post(self, template: Template, range_id: str, payload: bytes, *, minimal: bool) -> list[Result]:
        """The answers to a bulk request. Raises Refused."""
        headers = template.headers.copy()
        as_bulk(headers, range_id, minimal=minimal)
        url = template.url
        local = url.host in {"127.0.0.1", "localhost"}  # as the SDK does: a local endpoint has no certificate to check
        try:
            async with self._session.post(
                url,
                data=as_data(payload),
                headers=headers,
                ssl=not local,
                proxy=self._proxies.get(url.scheme),
                allow_redirects=False,
                timeout=_TIMEOUT,
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as fault:
            raise Refused((str(fault) or type(fault).__name__).splitlines()[0][:300]) from None
        if response.status >= 300:
            raise _refused(response, body)
        try:
            answers = orjson.loads(body)
        except orjson.JSONDecodeError:
            answers = None
        if not isinstance(answers, list) or not {dict}.issuperset(map(type, answers)):
            raise Refused("an odd answer", response.status)
        return answers


def _refused(response: aiohttp.ClientResponse, body: bytes) -> Refused:
    wait = response.headers.get("x-ms-retry-after-ms")
    return Refused(
        message_of(body.decode(errors="replace")) or f"status {response.status}",
        response.status,
        int(response.headers.get("x-ms-substatus") or 0),
        float(wait) / 1000 if wait else None,
    )


def message_of(text: str) -> str:
    """The service's own words: `message` of its JSON, if there is one. First line only: the rest are activity ids."""
    start = text.find("{")
    if start >= 0:
        try:
            found = orjson.loads(text[start:])
            text = str(found.get("message") or text) if isinstance(found, dict) else text
        except orjson.JSONDecodeError:
            pass
    lines = text.strip().splitlines()
    return lines[0][:300] if lines else ""
