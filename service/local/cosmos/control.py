"""Control over loopback HTTP: what tests in other processes do to the server.

All under `/containers/<database>/<container>/`, JSON in and out:

    POST   faults      {"status": 503, "count": 2, "scope": "request"}, {"drop": "after"}, {"delay_seconds": 1.5}
    DELETE faults
    POST   split       {"into": 6} or {"range_id": "0"}
    POST   throttle    {"range_id": "0", "on": true, "retry_after_ms": 1000}
    POST   throughput  {"request_units": 4000}
    GET    ranges      ids, bounds and what each has spent
    GET    writes      the write log, the last 1000 entries
    DELETE writes

`GET /` lists the containers. There is no authorization: it listens on loopback only, and only for names of loopback.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final
from urllib.parse import urlsplit

from service.local.cosmos.account import Account
from service.local.cosmos.container import Container
from service.local.cosmos.errors import BadRequest, CosmosError, NotFound
from service.local.cosmos.faults import MAX_DELAY_SECONDS, Fault
from service.local.cosmos.listener import Listener
from service.local.cosmos.wire import Request, Response, json_response, parse_object

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_WRITES: Final = 1000


class Control:
    """The control port of a server."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._listener = Listener(self._answer)

    async def start(self, port: int = 0) -> int:
        """Listen on loopback; the port that was taken."""
        return await self._listener.start("127.0.0.1", port)

    async def stop(self) -> None:
        """Close the port."""
        await self._listener.stop()

    async def _answer(self, request: Request) -> Response:
        if urlsplit(request.base_url).hostname not in LOOPBACK:
            raise CosmosError(403, "The control port answers to names of loopback only.")
        match request.path:
            case ():
                return json_response(self._listing())
            case ("containers", database, container, action):
                wanted = _ACTIONS.get((request.method, action))
                if wanted is None:
                    raise CosmosError(405, f"{request.method} {action[:50]} is not one of the actions of control.")
                given = parse_object(request.body) if request.method == "POST" else {}
                return json_response(wanted(self._account.container(database, container), given))
            case _:
                raise NotFound("Control knows / and /containers/<database>/<container>/<action>.")

    def _listing(self) -> list[dict[str, Any]]:
        return [
            {"database": database.id, "container": container.id, "documents": container.count()}
            for database in self._account.databases.values()
            for container in database.containers.values()
        ]


_FAULT_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "count": int,
    "scope": str,
    "status": int,
    "sub_status": int,
    "retry_after_ms": int,
    "drop": str,
    "delay_seconds": (int, float),
    "range_id": str,
    "operation": str,
    "id": str,
    "skip": int,
}


def _arm(container: Container, given: dict[str, Any]) -> object:
    options = {"count": 1} | given
    known = {field.name for field in fields(Fault)}
    for name, value in options.items():
        if name not in known or not isinstance(value, _FAULT_TYPES[name]) or isinstance(value, bool):
            raise BadRequest(f"A fault has no {name[:50]!r}, or not of this type. It has: {', '.join(sorted(known))}.")
    if options.get("scope", "request") not in {"request", "operation"} or options.get("drop", "before") not in {
        "before",
        "after",
    }:
        raise BadRequest("The scope of a fault is request or operation; its drop is before or after.")
    if options["count"] < 1 or not 0 <= options.get("delay_seconds", 0) <= MAX_DELAY_SECONDS:
        raise BadRequest(f"A fault happens at least once, and delays by 0 to {MAX_DELAY_SECONDS:.0f} seconds.")
    container.faults.arm(Fault(**options))
    return {"armed": len(container.faults.pending)}


def _disarm(container: Container, given: dict[str, Any]) -> object:  # noqa: ARG001 - one of a table
    happened = container.faults.happened
    container.faults.clear()
    return {"happened": happened}


def _split(container: Container, given: dict[str, Any]) -> object:
    into, range_id = given.get("into"), given.get("range_id")
    if (into is None) == (range_id is None) or not isinstance(into if range_id is None else 0, int):
        raise BadRequest("A split needs either into (a number) or range_id.")
    return {"ranges": container.split(into, None if range_id is None else str(range_id))}


def _throttle(container: Container, given: dict[str, Any]) -> object:
    wait = given.get("retry_after_ms", 1000)
    if isinstance(wait, bool) or not isinstance(wait, int):
        raise BadRequest("The wait, retry_after_ms, is a whole number.")
    container.throttle_range(str(given.get("range_id")), on=bool(given.get("on", True)), retry_after_ms=wait)
    return {}


def _throughput(container: Container, given: dict[str, Any]) -> object:
    units = given.get("request_units")
    if isinstance(units, bool) or not isinstance(units, int | float) or units < 0:
        raise BadRequest("The throughput needs request_units: 0 (never throttle) or more.")
    container.set_throughput(units)
    return {"request_units": units}


def _ranges(container: Container, given: dict[str, Any]) -> object:  # noqa: ARG001
    return [
        {"id": r.id, "low": r.low, "high": r.high, "rate": r.budget.rate, "spent": round(r.budget.total, 2)}
        for r in container.ranges.ranges
    ]


def _writes(container: Container, given: dict[str, Any]) -> object:  # noqa: ARG001
    entries = list(container.write_log)[-MAX_WRITES:]
    names = ("number", "operation", "id", "partition_key", "status", "sub_status", "lsn", "range_id")
    return {
        "total": container.write_log.total,
        "writes": [{name: getattr(entry, name) for name in names} for entry in entries],
    }


def _forget_writes(container: Container, given: dict[str, Any]) -> object:  # noqa: ARG001
    container.write_log.clear()
    return {}


_ACTIONS: Final[dict[tuple[str, str], Callable[[Container, dict[str, Any]], object]]] = {
    ("POST", "faults"): _arm,
    ("DELETE", "faults"): _disarm,
    ("POST", "split"): _split,
    ("POST", "throttle"): _throttle,
    ("POST", "throughput"): _throughput,
    ("GET", "ranges"): _ranges,
    ("GET", "writes"): _writes,
    ("DELETE", "writes"): _forget_writes,
}
