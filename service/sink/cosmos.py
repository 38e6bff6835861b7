"""A container of Azure Cosmos DB, through public names of azure-cosmos only.

The SDK has no bulk. Its transactional batch goes to the same address in nearly the same words, so a bulk request is
such a batch whose body and headers are replaced just before it is sent (see wire.py). What stays the SDK's:
authorization, endpoints and their failover. It retries nothing that it can be told not to retry.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
from azure.core import MatchConditions
from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.transport import AioHttpTransport
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosBatchOperationError

from service.errors import SetupFault
from service.sink.container import Refused, Result, SingleOperation
from service.sink.outcomes import NO_ANSWER, Step
from service.sink.provisioned import Content, Throughput, read_contents, read_throughput
from service.sink.routing import PartitionKeyDefinition
from service.sink.wire import LARGE_BODY_BYTES, MAX_AGE_SECONDS, Captured, Template, Wire, as_bulk, as_data, message_of

# Any batch will do: the hook replaces all of it.
_STAND_IN: Final = [("read", ("-",))]
_CONNECT_SECONDS: Final = 5.0
# Failures that the SDK may know a remedy for: another region, another token.
_SUSPICIOUS: Final = frozenset({NO_ANSWER, 401, 403, 404, 503})


@dataclass(frozen=True, slots=True)
class CosmosAccess:
    """Which container, and how to get there (settings COSMOS_*)."""

    endpoint: str
    credential: str | AsyncTokenCredential = field(repr=False)
    """The account's key, or an identity."""
    database: str
    container: str
    pinned: bool = False
    """Use the endpoint as it is given, instead of those that the account names."""

    @classmethod
    def from_connection_string(
        cls, text: str, database: str, container: str, *, pinned: bool = False
    ) -> "CosmosAccess":
        """Raises ValueError if it is none; the message does not hold the text, which has the key in it."""
        parts = dict(part.split("=", 1) for part in text.strip().strip(";").split(";") if "=" in part)
        if not parts.get("AccountEndpoint") or not parts.get("AccountKey"):
            raise ValueError("not a Cosmos connection string: AccountEndpoint=...;AccountKey=... is wanted")
        return cls(parts["AccountEndpoint"], parts["AccountKey"], database, container, pinned)

    @property
    def host(self) -> str:
        """For messages."""
        return urlsplit(self.endpoint).netloc or self.endpoint


class CosmosContainer:
    """The container as the sink needs it. Connects with the first `describe`; close it at the end."""

    def __init__(self, access: CosmosAccess) -> None:
        self._access = access
        self._client: CosmosClient | None = None
        self._proxy: ContainerProxy | None = None
        self._wire: Wire | None = None
        self._template: Template | None = None
        self._suspect = False
        """The last failure may be one that the SDK knows a remedy for."""

    async def describe(self) -> PartitionKeyDefinition:
        """Ask for the container anew, over a new connection if the last attempt failed."""
        try:
            if self._client is None:
                await self._connect()
            self._template = None  # it names the container that was there before
            properties = await self._container.read()
        except Exception as fault:  # noqa: BLE001 - translated, or raised again
            await self.close()
            raise self._set_up_fault(fault) from None
        return PartitionKeyDefinition.from_properties(properties["partitionKey"])

    async def read_ranges(self) -> list[tuple[str, str, str]]:
        """The ranges as they are now."""
        found: list[dict[str, Any]] = []

        def note(response: PipelineResponse[Any, Any]) -> None:
            if response.http_response.status_code == 200 and "/pkranges" in response.http_request.url:
                found.extend(orjson.loads(response.http_response.body())["PartitionKeyRanges"])

        try:
            async for _ in self._container.read_feed_ranges(force_refresh=True, raw_response_hook=note):
                pass
        except Exception as fault:  # noqa: BLE001 - translated, or raised again
            raise _refused(fault) from None
        parents = {parent for one in found for parent in one.get("parents") or ()}
        ranges = {one["id"]: (one["id"], one["minInclusive"], one["maxExclusive"]) for one in found}
        return [one for name, one in ranges.items() if name not in parents]

    async def read_throughput(self) -> Throughput | None:
        """What it is sold; None if nothing is. Raises Refused: a data role alone may not ask."""
        container = self._container
        try:
            return await read_throughput(self._database, container)
        except Exception as fault:  # noqa: BLE001 - translated, or raised again
            raise _refused(fault) from None

    async def read_contents(self) -> dict[str, Content]:
        """What each range holds. Raises Refused."""
        try:
            return await read_contents(self._container)
        except Exception as fault:  # noqa: BLE001 - translated, or raised again
            raise _refused(fault) from None

    async def send_bulk(self, range_id: str, payload: bytes, *, minimal: bool) -> Sequence[Result]:
        """Non-atomic, going on after an error: every operation gets its own answer."""
        now = asyncio.get_running_loop().time()
        template = self._template
        if template is None or self._wire is None or now - template.at > MAX_AGE_SECONDS:
            if self._suspect and len(payload) < LARGE_BODY_BYTES:
                return await self._send_through_sdk(range_id, payload, minimal=minimal)
            template = await self._capture(now)
        if self._wire is None:
            raise Refused("not connected")
        try:
            return await self._wire.post(template, range_id, payload, minimal=minimal)
        except Refused as refused:
            if refused.status in _SUSPICIOUS:
                self._template, self._suspect = None, True
            raise

    async def _capture(self, now: float) -> Template:
        """What the SDK would send now, without sending it."""

        def keep(request: PipelineRequest[Any]) -> None:
            as_bulk(request.http_request.headers, "", minimal=False)
            self._template = Template.of(request, now)
            raise Captured

        try:
            await self._container.execute_item_batch(_STAND_IN, "-", raw_request_hook=keep)
        except Captured:
            pass
        except Exception as fault:  # noqa: BLE001 - translated, or raised again
            raise _refused(fault) from None
        if self._template is None:
            raise Refused(
                "the SDK did not show its request: this version of azure-cosmos is not the one that was tried"
            )
        return self._template

    async def _send_through_sdk(self, range_id: str, payload: bytes, *, minimal: bool) -> Sequence[Result]:
        """The whole way, with all that the SDK does about regions and tokens after a failure."""

        def replace(request: PipelineRequest[Any]) -> None:
            request.http_request.data = payload
            request.http_request.headers["Content-Length"] = str(len(payload))
            as_bulk(request.http_request.headers, range_id, minimal=minimal)

        try:
            answers: Sequence[Result] = await self._container.execute_item_batch(
                _STAND_IN, "-", raw_request_hook=replace
            )
        except CosmosBatchOperationError as mixed:
            answers = list(mixed.operation_responses)
        except Exception as fault:  # noqa: BLE001 - translated, or raised again
            raise _refused(fault) from None
        self._suspect = False
        return answers

    async def send_single(self, operation: SingleOperation) -> Result:
        """The plain item operations of the SDK."""

        def as_is(request: PipelineRequest[Any]) -> None:
            request.http_request.data = as_data(operation.body)
            request.http_request.headers["Content-Length"] = str(len(operation.body))

        try:
            answer = await self._single(operation, {"raw_request_hook": as_is, "no_response": True})
        except HttpResponseError as fault:
            refused = _refused(fault)
            result = {"statusCode": refused.status, "subStatusCode": refused.sub_status, "message": str(refused)}
            if refused.retry_after_seconds is not None:
                result["retryAfterMilliseconds"] = refused.retry_after_seconds * 1000
            return result
        except Exception as fault:  # noqa: BLE001 - translated, or raised again
            raise _refused(fault) from None
        headers = answer.get_response_headers() if answer is not None else {}
        return {
            "statusCode": 200,
            "requestCharge": float(headers.get("x-ms-request-charge") or 0.0),
            "eTag": headers.get("etag"),
            "resourceBody": answer,
        }

    async def close(self) -> None:
        """Close every connection."""
        client, self._client, self._proxy, self._wire, self._template = self._client, None, None, None, None
        if client is not None:
            with contextlib.suppress(AzureError, aiohttp.ClientError, OSError):
                await client.close()

    @property
    def _container(self) -> ContainerProxy:
        if self._proxy is None:
            raise Refused("not connected")
        return self._proxy

    @property
    def _database(self) -> DatabaseProxy:
        if self._client is None:
            raise Refused("not connected")
        return self._client.get_database_client(self._access.database)

    async def _single(self, operation: SingleOperation, extra: dict[str, Any]) -> Any:  # noqa: ANN401 - the SDK's own
        container, step = self._container, operation.step
        guard: dict[str, Any] = {}
        if operation.etag and step in {Step.REPLACE, Step.DELETE}:
            guard = {"etag": operation.etag, "match_condition": MatchConditions.IfNotModified}
        if step in {Step.READ, Step.DELETE}:
            key: Any = orjson.loads(orjson.loads(operation.key))
            key = key[0] if len(key) == 1 else key
            if step is Step.READ:
                return await container.read_item(operation.id, key)
            return await container.delete_item(operation.id, key, **guard)
        document = orjson.loads(operation.body)  # only for the key that the SDK takes out of it; the text goes as it is
        if step is Step.UPSERT:
            return await container.upsert_item(document, **extra)
        if step is Step.CREATE:
            return await container.create_item(document, **extra)
        return await container.replace_item(operation.id, document, **guard, **extra)

    async def _connect(self) -> None:
        access = self._access
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0
            ),  # the lanes limit themselves; a second limit would hide behind theirs
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,  # or each request looks up the environment and .netrc in a thread
        )
        proxies = _proxies(access.host)
        self._wire = Wire(session, proxies)
        self._client = CosmosClient(
            access.endpoint,
            access.credential,
            transport=AioHttpTransport(session=session, use_env_settings=False),
            proxies=proxies,
            enable_endpoint_discovery=not access.pinned,
            connection_timeout=_CONNECT_SECONDS,
            retry_throttle_total=-1,  # 0 would mean the default of nine
            retry_total=0,
            retry_connect=0,
            retry_read=0,
            retry_status=0,
        )
        await self._client.__aenter__()  # it stays open until `close`
        self._proxy = self._database.get_container_client(access.container)

    def _set_up_fault(self, fault: BaseException) -> BaseException:
        if isinstance(fault, SetupFault):
            return fault
        try:
            refused = _refused(fault)
        except Exception:  # noqa: BLE001 - not one that can be translated: a fault of ours
            return fault
        place = f"container {self._access.container} in database {self._access.database}"
        text = {
            401: f"refuses the key or token ({refused})."
            " Check COSMOS_CONNSTRING, or the identity of this process, and the machine's clock.",
            403: f"forbids access (403/{refused.sub_status})."
            " Check the account's firewall, and that the identity has a data role on the account.",
            404: f"has no {place}. Check COSMOS_DATABASE and COSMOS_CONTAINER, or create it; it is looked for again.",
            0: f"cannot be reached ({refused}). Check the endpoint and the network; it is tried again.",
        }.get(refused.status, f"does not answer as it should ({refused.status}: {refused}); it is tried again.")
        return SetupFault(f"Cosmos at {self._access.host} {text}")


def _proxies(host: str) -> dict[str, str]:
    """The environment's proxies, looked up once."""
    name = host.partition(":")[0]
    return {} if proxy_bypass(name) or name in {"127.0.0.1", "localhost"} else getproxies()


def _refused(fault: BaseException) -> Refused:
    """An exception of the SDK as what it means. Raises it again if it is none of those."""
    match fault:
        case Refused():
            return fault
        case ClientAuthenticationError():
            return Refused(_first_line(fault), 401)
        case HttpResponseError():
            headers = getattr(fault.response, "headers", None) or {}
            wait = headers.get("x-ms-retry-after-ms")
            return Refused(
                _message(fault),
                fault.status_code or 0,
                int(getattr(fault, "sub_status", None) or headers.get("x-ms-substatus") or 0),
                float(wait) / 1000 if wait else None,
            )
        case AzureError() | aiohttp.ClientError() | OSError() | TimeoutError():
            return Refused(_first_line(fault))
        case KeyError() | TypeError() | ValueError() | AttributeError():
            # The SDK stumbled over an answer that is not of the shape it expects.
            return Refused(f"an odd answer ({type(fault).__name__})", 200)
        case _:
            raise fault


def _message(fault: HttpResponseError) -> str:
    return (
        message_of(str(getattr(fault, "http_error_message", None) or fault.message or ""))
        or f"status {fault.status_code}"
    )


def _first_line(fault: BaseException) -> str:
    return (str(fault) or type(fault).__name__).splitlines()[0][:300]
