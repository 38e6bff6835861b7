"""The control port: what `control.Control` does, over HTTP with JSON bodies, on loopback only.

GET  /state                       all there is to see
POST /drop     {hub?, partition?, group?, role?}                          -> {"count": n}
POST /detach   {hub?, partition?, group?, role?, condition?, description?} -> {"count": n}
POST /busy     {hub?, on?}        POST /delay {seconds}
POST /freeze   {hub, partition?}  POST /thaw  {hub, partition?}
POST /hubs     {name, partitions?}            DELETE /hubs/{name}
POST /hubs/{name}/partitions      {count}     POST /hubs/{name}/consumer-groups {name}
POST /hubs/{name}/trim            {partition, first}
POST /hubs/{name}/retention       {seconds?, size_bytes?}
POST /capture/flush               ends every Capture window now           -> {"files": [...]}
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from aiohttp import web
from azure.core.exceptions import AzureError

from service.amqp.errors import DETACH_FORCED, NOT_FOUND, AmqpError
from service.local.event_hubs.control import Scope
from service.local.event_hubs.partition import Retention

if TYPE_CHECKING:
    from service.local.event_hubs.server import EventHubsServer

MAX_BODY_BYTES = 64 * 1024


class BadRequestError(Exception):
    """A request that cannot be understood; the text goes to the client."""


class Fields:
    """A JSON object whose fields are asked for by name and type."""

    def __init__(self, values: object) -> None:
        if not isinstance(values, dict):
            raise BadRequestError("The body must be a JSON object.")
        self._values: dict[str, object] = values

    def text(self, name: str) -> str:
        """A string that must be there."""
        value = self.maybe_text(name)
        if value is None:
            raise BadRequestError(f"{name} is missing.")
        return value

    def maybe_text(self, name: str) -> str | None:
        """A string, if it is there."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, str):
            raise BadRequestError(f"{name} must be a string.")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A number that must be there, or its default."""
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadRequestError(f"{name} must be a number.")
        return value

    def maybe_number(self, name: str) -> float | None:
        """A number, if it is there."""
        return None if self._values.get(name) is None else self.number(name)

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean, or its default."""
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise BadRequestError(f"{name} must be true or false.")
        return value

    def scope(self) -> Scope | None:
        """Which links are meant, if the body says so."""
        scope = Scope(*(self.maybe_text(name) for name in ("hub", "partition", "group", "role")))
        return None if scope == Scope() else scope


class ControlPort:
    """The HTTP side of a server's control."""

    def __init__(self, server: EventHubsServer) -> None:
        self._server = server
        self._runner: web.AppRunner | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listens; the port that it got. Anyone who can reach it can break the server, so only loopback is allowed."""
        if not ipaddress.ip_address(host).is_loopback:
            raise ValueError("The control port listens on loopback only.")
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.add_routes(
            [
                web.get("/state", self._state),
                web.delete("/hubs/{name}", self._delete_hub),
                web.post("/capture/flush", self._flush_capture),
                *(web.post(path, self._post(act)) for path, act in self._actions().items()),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stops listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _actions(self) -> dict[str, Callable[[str, Fields], object]]:
        server, control = self._server, self._server.control
        return {
            "/drop": lambda _, body: {"count": control.drop(body.scope())},
            "/detach": lambda _, body: {
                "count": control.detach(
                    body.scope(),
                    body.maybe_text("condition") or DETACH_FORCED,
                    body.maybe_text("description") or "The link is force detached by the broker.",
                )
            },
            "/busy": lambda _, body: control.busy(body.maybe_text("hub"), on=body.flag("on", default=True)),
            "/delay": lambda _, body: control.delay(body.number("seconds")),
            "/freeze": lambda _, body: control.freeze(body.text("hub"), body.maybe_text("partition")),
            "/thaw": lambda _, body: control.thaw(body.text("hub"), body.maybe_text("partition")),
            "/hubs": lambda _, body: _nothing(server.add_hub(body.text("name"), int(body.number("partitions", 4)))),
            "/hubs/{name}/partitions": lambda name, body: server.hub(name).add_partitions(int(body.number("count"))),
            "/hubs/{name}/consumer-groups": lambda name, body: server.hub(name).add_consumer_group(body.text("name")),
            "/hubs/{name}/trim": lambda name, body: (
                server.hub(name).partition(body.text("partition")).log.trim(int(body.number("first")))
            ),
            "/hubs/{name}/retention": self._retention,
        }

    def _retention(self, name: str, body: Fields) -> None:
        hub, size_bytes = self._server.hub(name), body.maybe_number("size_bytes")
        hub.retention = Retention(body.maybe_number("seconds"), None if size_bytes is None else int(size_bytes))
        hub.retain()

    def _post(self, act: Callable[[str, Fields], object]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            raw = await request.read()
            return _answer(lambda: act(request.match_info.get("name", ""), Fields(json.loads(raw or b"{}"))))

        return handle

    async def _state(self, _: web.Request) -> web.Response:
        return web.json_response(self._server.control.state())

    async def _flush_capture(self, _: web.Request) -> web.Response:
        capture = self._server.capture
        if capture is None:
            return web.json_response({"error": "Capture is not on."}, status=404)
        try:
            return web.json_response({"files": await capture.flush()})
        except AzureError as error:
            return web.json_response({"error": str(error)}, status=502)

    async def _delete_hub(self, request: web.Request) -> web.Response:
        return _answer(lambda: self._server.delete_hub(request.match_info["name"]))


def _nothing(_: object) -> None:
    return None


def _answer(act: Callable[[], object]) -> web.Response:
    try:
        result = act()
    except AmqpError as error:
        status = 404 if error.condition == NOT_FOUND else 400
        return web.json_response({"error": error.description}, status=status)
    except (BadRequestError, ValueError, OverflowError, RecursionError) as error:
        return web.json_response({"error": str(error)}, status=400)
    return web.json_response(result if result is not None else {})
