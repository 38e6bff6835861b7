"""The demo: stack, producer and consumer as separate processes, live figures, and a sum that must add up."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp
from azure.cosmos.aio import CosmosClient
from rich.console import Console
from rich.live import Live
from rich.table import Table

from service.config import Settings, load
from service.errors import SetupFault
from service.local.azurite import free_port
from service.local.children import end_with_parent
from service.local.produce import Load, bodies, client, produce

START_SECONDS = 120
DRAIN_SECONDS = 120
REFRESH_SECONDS = 0.5
PLAIN_SECONDS = 5.0
PRODUCING_SHARE = 0.75
"""Of the demo's time; the rest is left to the consumer to catch up."""


@dataclass(slots=True)
class Figures:
    """What the demo knows at a time."""

    produced: int = 0
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def completed(self) -> int:
        """Records that went one of the four ways."""
        records = self.status.get("records", {})
        return sum(records.get(name, 0) for name in ("committed", "superseded", "dropped", "failed"))


async def demo(seconds: float, rate: int) -> int:
    """Run it; 0 when every record produced is accounted for, else 1."""
    console = Console()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    with tempfile.TemporaryDirectory(prefix="sluice-demo-") as folder:
        env_file = Path(folder) / "stack.env"
        port = free_port()
        async with AsyncExitStack() as parts:
            console.print("starting Event Hubs, Cosmos and Azurite on loopback")
            stack = ["local", "up", "--env-file", str(env_file), "--partitions", "4", "--physical-partitions", "4"]
            await parts.enter_async_context(_child(stack, {}))
            await _until_written(env_file)
            consuming = {"EVENTHUB_RATELIMIT": str(rate), "HTTP_PORT": str(port), "LOG_LEVEL": "warning"}
            consuming["CHECKPOINT_INTERVAL"] = "1s"
            consumer = await parts.enter_async_context(
                _child(["run", "--env-file", str(env_file)], consuming, folder=Path(folder))
            )
            console.print(f"consumer: {rate or 'unlimited'} records/s; its page: http://127.0.0.1:{port}/")
            settings = load(env_file)
            figures = Figures()
            # A little below what the consumer takes, so that it catches up with what it could not take at the start.
            sending = min(rate, 4000) * 9 // 10 if rate else 3000
            count = max(100, int(sending * seconds * PRODUCING_SHARE))
            plan = Load(count, sending, keys=2000, seed=1, updates=0.2, poison=5)
            await _watch(console, settings, plan, figures, port, stop, consumer)
            await _stop(consumer)
            return await _summary(console, settings, plan, figures)


async def _watch(
    console: Console,
    settings: Settings,
    plan: Load,
    figures: Figures,
    port: int,
    stop: asyncio.Event,
    consumer: asyncio.subprocess.Process,
) -> None:
    """Produce and show until everything is consumed; Ctrl-C ends the producing, not the consuming."""

    def sent(count: int) -> None:
        figures.produced += count

    async def producing() -> None:
        async with client(settings) as producer:
            await produce(producer, plan, sent)

    work = asyncio.create_task(producing())
    stopped = asyncio.create_task(stop.wait())
    try:
        async with aiohttp.ClientSession() as session:
            with _Screen(console, plan) as screen:
                give_up = None
                while True:
                    await asyncio.wait({work, stopped}, timeout=REFRESH_SECONDS)
                    if stopped.done() and not work.done():
                        work.cancel()
                        await asyncio.wait({work})
                    if consumer.returncode is not None:
                        raise SetupFault(f"the consumer ended with exit code {consumer.returncode}")
                    figures.status = await _status(session, port) or figures.status
                    screen.show(figures)
                    if not work.done():
                        continue
                    if figures.completed >= figures.produced:
                        return
                    now = asyncio.get_running_loop().time()
                    give_up = give_up or now + DRAIN_SECONDS
                    if now > give_up:
                        return
                    await asyncio.sleep(REFRESH_SECONDS)
    finally:
        stopped.cancel()
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


class _Screen:
    """A live table on a terminal, else a line every few seconds."""

    def __init__(self, console: Console, plan: Load) -> None:
        self._console = console
        self._plan = plan
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._said_at = 0.0

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, figures: Figures) -> None:
        """The figures as of now."""
        status = figures.status
        records = status.get("records", {})
        now = asyncio.get_running_loop().time()
        if self._live is None:
            if now - self._said_at >= PLAIN_SECONDS:
                self._said_at = now
                self._console.print(
                    f"produced {figures.produced}, committed {records.get('committed', 0)}, "
                    f"dead-lettered {records.get('failed', 0)}, {status.get('rate', 0):g} records/s, "
                    f"backlog {status.get('backlog', {}).get('items', 0)}"
                )
            return
        table = Table(title=f"produced {figures.produced} of {self._plan.count}")
        for name in ("partition", "epoch", "checkpoint", "lag", "backlog", "done ahead"):
            table.add_column(name, justify="right")
        for row in status.get("partitions", []):
            checkpoint = (row["checkpoint"] or {}).get("sequence", "-")
            cells = (row["id"], row["epoch"], checkpoint, row["lag"], row["backlog"], row["done_ahead"])
            table.add_row(*map(str, cells))
        table.caption = (
            f"committed {records.get('committed', 0)}  superseded {records.get('superseded', 0)}  "
            f"dead-lettered {records.get('failed', 0)}  retried {records.get('retried', 0)}  "
            f"{status.get('rate', 0):g} records/s  {status.get('ru', 0):,.0f} RU"
        )
        self._live.update(table, refresh=True)


async def _summary(console: Console, settings: Settings, plan: Load, figures: Figures) -> int:
    """The books: what was produced against what became of it, and against what Cosmos itself says."""
    records = figures.status.get("records", {})
    parts = {name: records.get(name, 0) for name in ("committed", "superseded", "dropped")}
    parts["dead-lettered"] = records.get("failed", 0)
    adds_up = figures.produced == sum(parts.values())
    expected = len({body.split(b'"', 4)[3] for _, body in _taken(plan, figures.produced) if body.endswith(b"}")})
    found = await _count(settings)
    console.print(f"\nproduced {figures.produced} = " + " + ".join(f"{value} {name}" for name, value in parts.items()))
    console.print(f"documents in Cosmos: {found} of {expected}")
    if adds_up and found == expected:
        console.print("it adds up: nothing lost, nothing twice")
        return 0
    console.print("IT DOES NOT ADD UP")
    return 1


def _taken(plan: Load, count: int) -> list[tuple[str, bytes]]:
    """The events that were sent before the producer was stopped: the same seed gives the same ones."""
    return [event for event, _ in zip(bodies(plan), range(count), strict=False)]


async def _count(settings: Settings) -> int:
    assert settings.cosmos_connstring is not None  # noqa: S101 - the local stack gives one
    async with CosmosClient.from_connection_string(settings.cosmos_connstring.get_secret_value()) as cosmos:
        database = cosmos.get_database_client(settings.cosmos_database or "")
        container = database.get_container_client(settings.cosmos_container or "")
        counts: list[Any] = [each async for each in container.query_items("SELECT VALUE COUNT(1) FROM c")]
        return sum(counts)


async def _status(session: aiohttp.ClientSession, port: int) -> dict[str, Any] | None:
    try:
        async with session.get(f"http://127.0.0.1:{port}/status", timeout=aiohttp.ClientTimeout(5)) as answer:
            found: dict[str, Any] = await answer.json()
            return found
    except (aiohttp.ClientError, TimeoutError):
        return None


@asynccontextmanager
async def _child(
    arguments: list[str], settings: dict[str, str], folder: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`sluice` with these arguments, as a process of its own that does not outlive the demo."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "service",
        *arguments,
        env={**os.environ, **settings},
        cwd=folder,
        stdout=asyncio.subprocess.DEVNULL,
        # Ctrl-C is for the demo, which stops its children itself and in order.
        start_new_session=True,
        preexec_fn=end_with_parent(),
    )
    try:
        yield process
    finally:
        await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 60)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _until_written(path: Path) -> None:
    """Wait for a file that another process writes; there is nothing to be told by."""
    for _ in range(int(START_SECONDS / 0.05)):
        if await asyncio.to_thread(path.exists):
            return
        await asyncio.sleep(0.05)
    raise SetupFault(f"the local stack did not start within {START_SECONDS} s")
