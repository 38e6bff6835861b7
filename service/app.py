"""The service as a process: signals, ops pages, and the worker or workers between them."""

import asyncio
import contextlib
import gc
import sys
from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import structlog

from service import options
from service.config import Settings, load
from service.endpoints import AzureEndpoints
from service.errors import BadSettings
from service.ops.http import OpsPages
from service.ops.telemetry import Telemetry
from service.ops.traces import start_traces
from service.signals import stop_signals
from service.supervisor import Supervisor
from service.worker import WHOLE, Worker

log = structlog.get_logger()


async def run(settings: Settings, env_file: Path | None = None) -> None:
    """One replica, until SIGTERM or SIGINT. Raises Fatal when it must end for another reason."""
    _spare_the_collector()
    allowed = options.backlog_bytes(settings)
    if allowed < settings.allow_backlog_bytes:
        log.info("ALLOW_BACKLOG_BYTES is more than the memory here allows; intake pauses sooner", backlog_bytes=allowed)
    if settings.workers == 1:
        await _run_alone(settings, env_file)
    else:
        await _run_workers(settings, env_file)


async def _run_alone(settings: Settings, env_file: Path | None) -> None:
    async with (
        _worker(settings, env_file, WHOLE) as (worker, pages, stop),
        pages.serving(settings.http_host, settings.http_port) as port,
    ):
        log.info("started", host=worker.host, status=f"http://{settings.http_host}:{port}/status")
        await worker.run(stop)
        log.info("stopped", host=worker.host)


async def _run_workers(settings: Settings, env_file: Path | None) -> None:
    supervisor = Supervisor(settings, env_file)
    pages = OpsPages(status=supervisor.status, not_ready=supervisor.not_ready, metrics=supervisor.metrics)
    with stop_signals(supervisor.reload) as stop:
        async with pages.serving(settings.http_host, settings.http_port) as port:
            log.info("started", workers=settings.workers, status=f"http://{settings.http_host}:{port}/status")
            await supervisor.run(stop)
            log.info("stopped")


async def run_worker(settings: Settings, env_file: Path | None = None) -> None:
    """One of several workers: told its share by the supervisor through standard input; see `supervisor.py`."""
    _spare_the_collector()
    async with _worker(settings, env_file, Fraction(0)) as (worker, pages, stop), pages.serving("127.0.0.1", 0) as port:
        print(f"port {port}", flush=True)  # noqa: T201 - the supervisor waits for it
        listening = asyncio.create_task(_take_shares(worker, stop))
        try:
            await worker.run(stop)
        finally:
            listening.cancel()


async def _take_shares(worker: Worker, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        worker.set_share(Fraction(line.decode().strip()))
    log.warning("the supervisor is gone; draining")
    stop.set()


@contextlib.asynccontextmanager
async def _worker(
    settings: Settings, env_file: Path | None, share: Fraction
) -> AsyncIterator[tuple[Worker, OpsPages, asyncio.Event]]:
    """A worker with its instruments, its pages, and the event that signals set."""
    worker = Worker(settings, AzureEndpoints(settings), share=share)
    telemetry = Telemetry(worker.status, host=worker.host)
    worker.watched_by(telemetry)
    end_traces = start_traces(worker.host)

    async def status() -> dict[str, Any]:
        return worker.status()

    async def metrics() -> tuple[bytes, str]:
        return telemetry.prometheus()

    with stop_signals(lambda: _reload(worker, env_file)) as stop:
        try:
            yield worker, OpsPages(status=status, not_ready=worker.not_ready, metrics=metrics), stop
        finally:
            await asyncio.to_thread(telemetry.close)
            await asyncio.to_thread(end_traces)


def _spare_the_collector() -> None:
    """Records make no reference cycles, and a backlog of them is searched for some at every collection: look seldom."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _reload(worker: Worker, env_file: Path | None) -> None:
    """SIGHUP: read the settings again. Only the rate can change under way; a bad file changes nothing."""
    try:
        rate = load(env_file).eventhub_ratelimit
    except BadSettings as error:
        log.error("settings not reloaded", faults=list(error.faults))
        return
    worker.set_rate_limit(rate)
    log.info("rate limit set", records_per_second=rate)
