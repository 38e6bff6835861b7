"""Several workers as one replica: started, watched, restarted; rate and limits shared by what each owns.

A worker is a process of its own (`sluice worker`, not for people). It says its port on the first line of its output,
and reads its share of the replica from its input, one line a change. When its input ends, the supervisor is gone:
the worker drains and ends.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import structlog
from prometheus_client import CONTENT_TYPE_LATEST

from service.config import Settings
from service.errors import BacklogExceeded, BadSettings, DeadLetterFlood, Fatal
from service.ops.merge import merge_metrics, merge_status

log = structlog.get_logger()

POLL_SECONDS = 0.5
SETTLING_SECONDS = 0.03
"""Between looks while a share is on its way: until it is taken over, a part of the rate is nobody's."""
BACKOFF_SECONDS = 1.0
MOST_BACKOFF_SECONDS = 60.0
LATE_SECONDS = 9.0
"""A worker may take so long after its deadline, and cuts off by itself what does not end: see `worker.py`."""
FINAL = {error.exit_code: error for error in (BacklogExceeded, DeadLetterFlood, BadSettings)}
"""Exit codes that a restart would not change: one worker's is the replica's."""


class WorkerFailed(Fatal):
    """A worker ended with an exit code that a restart would not change."""

    def __init__(self, code: int) -> None:
        super().__init__(f"a worker ended with exit code {code}; what it said stands above. The replica ends with it.")
        self.exit_code = code


@dataclass(slots=True)
class _Child:
    """One worker process."""

    process: asyncio.subprocess.Process
    port: int
    assigned: Fraction = Fraction(0)
    """The share that it was last told."""


class Supervisor:
    """Runs WORKERS workers and speaks for them."""

    def __init__(self, settings: Settings, env_file: Path | None) -> None:
        self._settings = settings
        self._env_file = env_file
        self._children: dict[int, _Child] = {}
        self._heard: dict[int, dict[str, Any]] = {}
        """What each worker said of itself a moment ago."""
        self._failed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._draining = False
        self.host = socket.gethostname()
        self._session: aiohttp.ClientSession | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set, or a worker ends for good; then all drain within SHUTDOWN_DEADLINE."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as self._session:
            keeping = [asyncio.create_task(self._keep(number)) for number in range(self._settings.workers)]
            sharing = asyncio.create_task(self._share_for_ever())
            stopped = asyncio.create_task(stop.wait())
            everything: list[asyncio.Future[Any]] = [*keeping, sharing, stopped]
            try:
                ends: set[asyncio.Future[Any]] = {stopped, self._failed, sharing}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                self._draining = True
                for task in (*keeping, sharing, stopped):
                    task.cancel()
                await self._end_children()
                if self._failed.done():
                    raise WorkerFailed(self._failed.result())
                if not stop.is_set():
                    sharing.result()
            finally:
                for each in everything:
                    each.cancel()
                await asyncio.gather(*everything, return_exceptions=True)

    def reload(self) -> None:
        """SIGHUP: every worker reads the settings again."""
        for child in self._children.values():
            child.process.send_signal(1)

    def not_ready(self) -> str | None:
        """Why the replica should not be counted on."""
        if self._draining:
            return "draining"
        missing = self._settings.workers - len(self._heard)
        if missing:
            return f"{missing} of {self._settings.workers} workers are not up"
        return next((fault for status in self._heard.values() for fault in status["faults"]), None)

    async def status(self) -> dict[str, Any]:
        """The sum of the workers' status."""
        return merge_status(self.host, list((await self._statuses()).values()))

    async def metrics(self) -> tuple[bytes, str]:
        """The sum of the workers' metrics."""
        texts = await asyncio.gather(*(self._fetch(child, "/metrics") for child in self._children.values()))
        return merge_metrics(text for text in texts if text), CONTENT_TYPE_LATEST

    async def _keep(self, number: int) -> None:
        """Start a worker, again and again, with a back-off that grows while it keeps crashing."""
        backoff = BACKOFF_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            code = await self._run_one(number)
            if code in FINAL:
                if not self._failed.done():
                    self._failed.set_result(code)
                return
            backoff = BACKOFF_SECONDS if loop.time() - began > MOST_BACKOFF_SECONDS else backoff
            log.error("a worker ended and is started again", worker=number, exit_code=code, after_seconds=backoff)
            await asyncio.sleep(backoff)
            backoff = min(MOST_BACKOFF_SECONDS, backoff * 2)

    async def _run_one(self, number: int) -> int:
        arguments = ["--env-file", str(self._env_file)] if self._env_file else []
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "service", "worker", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the supervisor, which stops its workers itself
        )
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        line = await process.stdout.readline()
        if line.startswith(b"port "):
            self._children[number] = _Child(process, int(line.split()[1]))
        try:
            return await process.wait()
        finally:
            if not self._draining:  # while it drains, its status is still asked for
                self._children.pop(number, None)

    async def _share_for_ever(self) -> None:
        pause = POLL_SECONDS
        while True:
            await asyncio.sleep(pause)
            held = self._heard = await self._statuses()
            assigned = {number: child.assigned for number, child in self._children.items()}
            for number, share in assign(held, assigned):
                await self._tell(self._children[number], share)
            pause = POLL_SECONDS if settled(held, assigned) else SETTLING_SECONDS

    async def _tell(self, child: _Child, share: Fraction) -> None:
        assert child.process.stdin is not None  # noqa: S101 - a pipe was asked for
        with contextlib.suppress(ConnectionError):  # it has just ended
            child.process.stdin.write(f"{share}\n".encode())
            await child.process.stdin.drain()
            child.assigned = share

    async def _statuses(self) -> dict[int, dict[str, Any]]:
        """What each worker says that answers."""
        children = dict(self._children)
        answers = await asyncio.gather(*(self._fetch_status(child) for child in children.values()))
        return {number: answer for number, answer in zip(children, answers, strict=True) if answer is not None}

    async def _fetch_status(self, child: _Child) -> dict[str, Any] | None:
        text = await self._fetch(child, "/status")
        found: dict[str, Any] | None = orjson.loads(text) if text else None
        return found

    async def _fetch(self, child: _Child, path: str) -> str | None:
        assert self._session is not None  # noqa: S101 - set by run
        try:
            async with self._session.get(f"http://127.0.0.1:{child.port}{path}") as answer:
                return await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return None

    async def _end_children(self) -> None:
        """Let every worker drain; end what does not within the deadline."""
        children = list(self._children.values())
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                child.process.terminate()
        waits = [asyncio.create_task(child.process.wait()) for child in children]
        if waits:
            _, late = await asyncio.wait(waits, timeout=self._settings.shutdown_deadline + LATE_SECONDS)
            for child in children if late else ():
                with contextlib.suppress(ProcessLookupError):
                    child.process.kill()
            await asyncio.gather(*waits)


def assign(held: Mapping[int, dict[str, Any]], assigned: Mapping[int, Fraction]) -> Sequence[tuple[int, Fraction]]:
    """Which workers get another share now. Shares go by owned partitions, and never sum to more than the whole.

    A share counts as given up only when its worker says so (`share` in its status): until then nobody gets it.
    """
    owned = {number: int(status["leases"]["held"]) for number, status in held.items()}
    total = sum(owned.values())
    wanted = {number: Fraction(count, total) if total else Fraction(1, len(owned)) for number, count in owned.items()}
    taken = {
        number: max(share, Fraction(held[number]["share"]) if number in held else Fraction(0))
        for number, share in assigned.items()
    }
    changes = []
    for number in sorted(wanted, key=lambda each: wanted[each] - taken.get(each, Fraction(0))):
        others = sum((share for other, share in taken.items() if other != number), Fraction(0))
        share = min(wanted[number], max(Fraction(0), 1 - others))
        if share != assigned.get(number):
            changes.append((number, share))
            taken[number] = max(taken.get(number, Fraction(0)), share)
    return changes


def settled(held: Mapping[int, dict[str, Any]], assigned: Mapping[int, Fraction]) -> bool:
    """Whether no share is on its way: nobody gets another, and all have taken what they were told."""
    taken = all(Fraction(status["share"]) == assigned.get(number) for number, status in held.items())
    return taken and not assign(held, assigned)
