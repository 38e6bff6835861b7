"""The local Cosmos DB server: an account behind an HTTP port."""

import asyncio
import ssl
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from service.local.cosmos.account import Account
from service.local.cosmos.auth import EMULATOR_KEY, Authorizer, Verifier
from service.local.cosmos.binary_json import is_binary, to_text
from service.local.cosmos.container import Container
from service.local.cosmos.control import Control
from service.local.cosmos.disk import DiskAccount
from service.local.cosmos.errors import CosmosError
from service.local.cosmos.faults import Fault, Faults
from service.local.cosmos.item_rules import LOGICAL_PARTITION_BYTES
from service.local.cosmos.items import kind_of
from service.local.cosmos.listener import Listener
from service.local.cosmos.offers import Throughput
from service.local.cosmos.resources import serve
from service.local.cosmos.wire import Request, Response, error_response

DEFAULT_KEY: Final = EMULATOR_KEY


class CosmosServer:
    """A Cosmos DB account on loopback, for real SDKs over the wire and for tests in process.

    Without `data` it lives in memory. It throttles, splits and fails on demand through its containers.
    """

    def __init__(
        self,
        *,
        key: str = DEFAULT_KEY,
        ssl_context: ssl.SSLContext | None = None,
        issuer: Verifier | None = None,
        ranges: int = 1,
        throttle_offers: bool = True,
        partition_limit_bytes: int = LOGICAL_PARTITION_BYTES,
        data: Path | str | None = None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.key = key
        self.faults = Faults()
        """For requests to anything but documents; operations are Account, Database, Container, Ranges and Offer."""
        self.requests = 0
        """How many requests came in, refused ones included."""
        options: dict[str, Any] = {
            "ranges": ranges,
            "throttle_offers": throttle_offers,
            "partition_limit_bytes": partition_limit_bytes,
            "now": now,
            "clock": clock,
        }
        self.account = Account(**options) if data is None else DiskAccount(Path(data), **options)
        self._kept = data is not None
        self._control = Control(self.account)
        self._ssl_context = ssl_context
        self._authorizer = Authorizer(key, issuer, now)
        self._listener = Listener(self._answer)
        self._host = "127.0.0.1"

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listen on host and port (0: any that is free); the port that was taken."""
        self._host = host
        return await self._listener.start(host, port, self._ssl_context)

    async def stop(self) -> None:
        """Close the port and every connection."""
        await self._control.stop()
        await self._listener.stop()
        self.account.close()

    async def start_control(self, port: int = 0) -> int:
        """Open the control port on loopback (see `control`); the port that was taken."""
        return await self._control.start(port)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        scheme = "https" if self._ssl_context else "http"
        return f"{scheme}://{self._host}:{self._listener.port}/"

    def connection_string(self) -> str:
        """Endpoint and key as SDKs take them."""
        return f"AccountEndpoint={self.endpoint};AccountKey={self.key};"

    def add_container(
        self,
        database: str,
        container: str,
        *,
        partition_key: str | Sequence[str] = "/id",
        ranges: int = 1,
        throughput: int = 0,
        key_version: int = 2,
        default_ttl: int | None = None,
        unique_keys: Sequence[Sequence[str]] = (),
        indexing_policy: dict[str, Any] | None = None,
    ) -> Container:
        """Make a container, and its database if there is none; throughput 0 never throttles."""
        single = isinstance(partition_key, str)
        paths = [partition_key] if single else list(partition_key)
        keys = {"paths": paths, "kind": "Hash" if single else "MultiHash", "version": key_version}
        properties: dict[str, Any] = {"id": container, "partitionKey": keys, "indexingPolicy": indexing_policy}
        if default_ttl is not None:
            properties["defaultTtl"] = default_ttl
        if unique_keys:
            properties["uniqueKeyPolicy"] = {"uniqueKeys": [{"paths": list(paths)} for paths in unique_keys]}
        owner = self.account.databases.get(database) or self.account.create_database(database)
        made = self.account.create_container(owner, properties, ranges=ranges)
        if throughput:
            self.account.set_offer(
                made, Throughput(throughput) if throughput >= 400 and throughput % 100 == 0 else None
            )
            made.set_throughput(throughput)
        return made

    def container(self, database: str, container: str) -> Container:
        """A container that is there, by whomever it was made."""
        return self.account.container(database, container)

    async def _answer(self, request: Request) -> Response | None:
        """Answer a request from the wire, with the fault that is due to it, if any."""
        self.requests += 1
        activity = request.header("x-ms-activity-id") or str(uuid.uuid4())
        fault = None
        try:
            self._authorizer.check(request)
            if is_binary(request.body):
                request = replace(request, body=to_text(request.body))
            fault = self._fault(request)
            if fault is not None and fault.drop == "before":
                return None
            error = fault.error() if fault else None
            if error is not None:
                raise error
            response = serve(self.account, request)
        except CosmosError as error:
            response = error_response(error)
        except RecursionError:
            response = error_response(CosmosError(400, "The request is nested too deeply."))
        if self._kept:
            self.account.flush()
        if fault is not None and fault.delay_seconds:
            await asyncio.sleep(fault.delay_seconds)
        if fault is not None and fault.drop == "after":
            return None
        headers = {"x-ms-activity-id": activity, **response.headers}
        if len(request.path) > 2:
            headers["x-ms-alt-content-path"] = _owner(request.path)
        return Response(response.status, headers, response.body, response.charge)

    def _fault(self, request: Request) -> Fault | None:
        path = request.path
        if len(path) > 4 and path[4] == "docs":
            database = self.account.databases.get(path[1])
            container = database.containers.get(path[3]) if database else None
            if container is None or not container.faults.armed:
                return None
            return container.faults.take(
                "request", kind_of(request), _range_of(container, request), path[5] if len(path) > 5 else None
            )
        return self.faults.take("request", _resource(path)) if self.faults.armed else None


def _owner(path: Sequence[str]) -> str:
    """The path by names of what a resource or a feed lies in. Java's change feed addresses the container by it."""
    return quote("/".join(path[: -2 if len(path) % 2 == 0 else -1]))


def _resource(path: Sequence[str]) -> str:
    """What a request that is not about documents is about, by the words that faults are armed with."""
    if not path:
        return "Account"
    if path[-1] == "pkranges":
        return "Ranges"
    if path[0] == "offers":
        return "Offer"
    return "Container" if len(path) > 2 else "Database"


def _range_of(container: Container, request: Request) -> str | None:
    """The range that a request goes to, if it names one or a whole partition key."""
    named = request.range_id
    text = request.header("x-ms-documentdb-partitionkey")
    if named is not None or text is None:
        return named
    try:
        return container.route(container.rules.keys.parse(text)).id
    except CosmosError:
        return None
