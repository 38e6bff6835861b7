"""The backlog: what was taken and is not yet completed, and what happens when there is too much of it.

Records and age end the process (or pause intake, if so set): Cosmos has fallen too far behind. Bytes always pause.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from service.errors import BacklogExceeded
from service.flow.worklist import WorkList

PAUSE_AT = 0.8
RESUME_AT = 0.6


@dataclass(frozen=True, slots=True)
class BacklogLimits:
    """ALLOW_BACKLOG_OF, ALLOW_BACKLOG_TO, ALLOW_BACKLOG_BYTES, BACKLOG_POLICY."""

    records: int = 320_000
    seconds: float = 600.0
    bytes: int = 512 * 1024 * 1024
    policy: Literal["fail", "pause"] = "fail"


@dataclass(frozen=True, slots=True)
class BacklogStatistics:
    """The backlog of this process."""

    items: int
    records: int
    bytes: int
    oldest_seconds: float
    done_ahead: int
    paused: bool
    paused_by: tuple[str, ...]
    """What is too full for intake to go on: `bytes` (the receivers' prefetch included), `records`, `oldest_seconds`."""


class Backlog:
    """Watches the WorkLists of one process and holds intake back where it must. One loop only."""

    def __init__(
        self,
        limits: BacklogLimits,
        worklists: Callable[[], Iterable[WorkList]],
        held_outside: Callable[[], int] = lambda: 0,
    ) -> None:
        self.limits = limits
        self._worklists = worklists
        self._held_outside = held_outside
        """Bytes held before intake: the receivers' prefetch."""
        self._loop = asyncio.get_running_loop()
        self._open = asyncio.Event()
        self._open.set()

    async def room(self) -> None:
        """Wait until intake may go on."""
        if self._open.is_set():
            self.look()
        await self._open.wait()

    async def run(self) -> None:
        """Look at the limits until cancelled, so that age is seen while nothing arrives."""
        while True:
            await asyncio.sleep(0.1 if not self._open.is_set() else 1.0)
            self.look()

    def look(self) -> BacklogStatistics:
        """Look at the limits: pauses or resumes intake. Raises BacklogExceeded where the policy says so."""
        now = self.statistics()
        limits = self.limits
        if limits.policy == "fail" and (now.records > limits.records or now.oldest_seconds > limits.seconds):
            raise BacklogExceeded(self._message(now))
        fullest = max(self._fullness(now.records, now.bytes, now.oldest_seconds).values())
        if fullest >= PAUSE_AT:
            self._open.clear()
        elif fullest <= RESUME_AT:
            self._open.set()
        return now

    def statistics(self) -> BacklogStatistics:
        """A snapshot over all partitions."""
        lists = [worklist.statistics() for worklist in self._worklists()]
        oldest = min((each.oldest_taken_at for each in lists if each.oldest_taken_at is not None), default=None)
        records, held = sum(each.records for each in lists), sum(each.bytes for each in lists)
        oldest_seconds = 0.0 if oldest is None else self._loop.time() - oldest
        paused = not self._open.is_set()
        fullness = self._fullness(records, held, oldest_seconds) if paused else {}
        return BacklogStatistics(
            items=sum(each.items for each in lists),
            records=records,
            bytes=held,
            oldest_seconds=oldest_seconds,
            done_ahead=sum(each.done_ahead for each in lists),
            paused=paused,
            paused_by=tuple(name for name, part in fullness.items() if part > RESUME_AT),
        )

    def _fullness(self, records: int, held: int, oldest_seconds: float) -> dict[str, float]:
        """Of each limit that pauses intake, how much is used."""
        limits = self.limits
        used = {"bytes": (held + self._held_outside()) / limits.bytes}
        if limits.policy == "pause":
            used |= {"records": records / limits.records, "oldest_seconds": oldest_seconds / limits.seconds}
        return used

    def _message(self, now: BacklogStatistics) -> str:
        limits = self.limits
        lists = [(worklist.statistics(), worklist.ownership.partition) for worklist in self._worklists()]
        if now.records > limits.records:
            passed = f"{now.records} records wait, more than ALLOW_BACKLOG_OF ({limits.records})"
            worst, partition = max(lists, key=lambda each: each[0].records)
        else:
            passed = (
                f"the oldest of {now.records} records has waited {now.oldest_seconds:.0f} s, "
                f"longer than ALLOW_BACKLOG_TO ({limits.seconds:g} s)"
            )
            worst, partition = min(lists, key=lambda each: each[0].oldest_taken_at or self._loop.time())
        oldest = self._loop.time() - (worst.oldest_taken_at or self._loop.time())
        return (
            f"backlog limit: {passed}; partition {partition} alone has {worst.records} (oldest {oldest:.0f} s). "
            "Cosmos takes less than is read. Lower EVENTHUB_RATELIMIT, "
            "raise the container's RU/s, or set BACKLOG_POLICY=pause to wait instead of ending."
        )
