"""The ops pages: / (for people), /healthz, /readyz, /metrics, /status. Read only; on loopback unless told otherwise."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web

from service.errors import SetupFault
from service.ops import dashboard

HEARTBEAT_SECONDS = 1.0
STUCK_SECONDS = 30.0
"""A loop that has not turned for this long is stuck: no single step of ours takes a tenth of it."""


class OpsPages:
    """Serves what the process knows about itself. The callables are asked anew for each request."""

    def __init__(
        self,
        *,
        status: Callable[[], Awaitable[dict[str, Any]]],
        not_ready: Callable[[], str | None],
        metrics: Callable[[], Awaitable[tuple[bytes, str]]],
    ) -> None:
        self._status = status
        self._not_ready = not_ready
        self._metrics = metrics
        self._beat_at = 0.0
        self._page, self._page_headers = dashboard.load()

    @asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator[int]:
        """Listen; gives the port that was bound. Raises SetupFault when the address is taken."""
        runner = web.AppRunner(self._application(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, host, port)
        beating = asyncio.create_task(self._beat())
        try:
            try:
                await site.start()
            except OSError as error:
                raise SetupFault(
                    f"the ops pages cannot listen on {host}:{port} ({error.strerror}). "
                    "Set HTTP_PORT to a free port, or to 0 for any."
                ) from None
            yield runner.addresses[0][1]
        finally:
            beating.cancel()
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/", self._get_page)
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/status", self._get_status)
        application.router.add_get("/metrics", self._get_metrics)
        return application

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._beat_at = loop.time()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _get_page(self, _: web.Request) -> web.Response:
        return web.Response(body=self._page, headers=self._page_headers)

    async def _healthz(self, _: web.Request) -> web.Response:
        """The loop turns. Throttling, pauses and set-up faults do not change that: a restart would not mend them."""
        late = asyncio.get_running_loop().time() - self._beat_at
        if late > STUCK_SECONDS:
            return _json({"status": "stuck", "seconds": late}, status=503)
        return _json({"status": "ok"})

    async def _readyz(self, _: web.Request) -> web.Response:
        why = self._not_ready()
        return _json({"status": "ready"}) if why is None else _json({"status": "not ready", "why": why}, status=503)

    async def _get_status(self, _: web.Request) -> web.Response:
        return _json({**await self._status(), "not_ready": self._not_ready()})

    async def _get_metrics(self, _: web.Request) -> web.Response:
        body, content_type = await self._metrics()
        return web.Response(body=body, headers={"Content-Type": content_type})


def _json(content: dict[str, Any], status: int = 200) -> web.Response:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json", headers=headers)
