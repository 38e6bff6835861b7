"""The service as a process: signals, ops pages, and the worker between them."""

import asyncio
import signal
from pathlib import Path

import structlog

from service.config import Settings, load
from service.errors import BadSettings
from service.ops.http import OpsPages
from service.worker import Worker

log = structlog.get_logger()


async def run(settings: Settings, env_file: Path | None = None) -> None:
    """Consume until SIGTERM or SIGINT. Raises Fatal when the process must end for another reason."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    worker = Worker(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, worker, env_file)
    pages = OpsPages(status=worker.status, not_ready=worker.not_ready)
    async with pages.serving(settings.http_host, settings.http_port) as port:
        log.info("started", host=worker.host, status=f"http://{settings.http_host}:{port}/status")
        await worker.run(stop)
        log.info("stopped", host=worker.host)


def _reload(worker: Worker, env_file: Path | None) -> None:
    """SIGHUP: read the settings again. Only the rate can change under way; a bad file changes nothing."""
    try:
        rate = load(env_file).eventhub_ratelimit
    except BadSettings as error:
        log.error("settings not reloaded", faults=list(error.faults))
        return
    worker.set_rate(rate)
    log.info("rate limit set", records_per_second=rate)
