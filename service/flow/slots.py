"""Slots: permission to take records, exactly as many per second as was paid for.

`SlotClock` is the arithmetic, without a clock of its own; `Slots` lets partitions wait for it.
aiolimiter's leaky bucket cannot hold this (it saves up while idle and starts with a burst): docs/decisions/0001.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from math import floor

PERIODS_PER_SECOND = 10
"""From 10 records/s up a tenth of the rate is given every 100 ms; below, the whole rate every second."""
FORGIVEN_SECONDS = 1.0
"""Ticks late by up to this are made up; a longer stall is forgiven, so that it does not end in a burst."""
Rate = Fraction | int | None
"""Records per second; None = no limit."""


class SlotClock:
    """How many slots are free at a time. Periods are counted from `now`; remainders are carried, never rounded up."""

    def __init__(self, rate: Fraction, now: float, *, begins: float | None = None, free: int = 0) -> None:
        """`begins`: when its first period does, if not now; until then only these `free` slots are there."""
        self.rate = rate
        self.free = free
        self.given = 0
        self.unused = 0
        self._origin = now if begins is None else begins
        per_second = PERIODS_PER_SECOND if rate >= PERIODS_PER_SECOND else 1
        self.period_seconds = 1 / per_second
        self._per_period = rate / per_second
        self._period = -1
        self.advance(now, waited_for=False)

    def advance(self, now: float, *, waited_for: bool) -> None:
        """Move to `now`. `waited_for`: somebody waited since the last call, so the periods between are owed."""
        period = floor((now - self._origin) / self.period_seconds + 1e-6)  # 1e-6: a tick due now is not too early
        missed = period - self._period
        if missed <= 0:
            return
        owed = waited_for and missed * self.period_seconds <= FORGIVEN_SECONDS
        first = self._period + 1 if owed else period
        slots = int(self._per_period * (period + 1)) - int(self._per_period * first)
        self._period = period
        self.unused += self.free
        self.free = slots
        self.given += slots

    def take(self, wanted: int) -> int:
        """Use up to `wanted` of the free slots."""
        taken = min(wanted, self.free)
        self.free -= taken
        return taken

    def changed_to(self, rate: Fraction, now: float) -> "SlotClock":
        """The clock of another rate. It begins when the present period ends: what this one gave counts in full."""
        if not self.rate and self._period >= 0:
            return SlotClock(rate, now)
        return SlotClock(rate, now, begins=self.next_tick(), free=self.free)

    def next_tick(self) -> float:
        """When the next period begins."""
        return self._origin + (self._period + 1) * self.period_seconds


@dataclass(frozen=True, slots=True)
class SlotStatistics:
    """What `Slots` has done so far."""

    rate: float | None
    """None = no limit."""
    given: int
    used: int
    unused: int
    waiting: int
    """Partitions waiting just now."""


class Slots:
    """The slots of one process, shared fairly by its partitions. Runs on the event loop's clock; one loop only."""

    def __init__(self, rate: Rate) -> None:
        self._loop = asyncio.get_running_loop()
        self._unlimited = rate is None
        self._clock = SlotClock(Fraction(rate or 0), self._loop.time())
        # In order of arrival: how many are wanted, and where to say how many were granted.
        self._waiting: deque[tuple[int, asyncio.Future[int]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._used = 0
        # Of the clocks that set_rate has put away.
        self._given_before = 0
        self._unused_before = 0

    def set_rate(self, rate: Rate) -> None:
        """Change the rate from the next period on. Who waits goes on waiting, by the new rate."""
        if (rate or 0) == self._clock.rate and self._unlimited == (rate is None):
            return
        now = self._loop.time()
        self._clock.advance(now, waited_for=bool(self._waiting))
        self._given_before += self._clock.given
        self._unused_before += self._clock.unused
        self._clock = self._clock.changed_to(Fraction(rate or 0), now)
        self._unlimited = rate is None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._share_out()

    async def take(self, wanted: int) -> int:
        """Wait for slots; gives at least one and at most `wanted`."""
        if self._unlimited:
            self._used += wanted
            return wanted
        if not self._waiting:
            self._clock.advance(self._loop.time(), waited_for=False)
            taken = self._clock.take(wanted)
            if taken:
                self._used += taken
                return taken
        granted: asyncio.Future[int] = self._loop.create_future()
        self._waiting.append((wanted, granted))
        self._arm()
        try:
            return await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_back(granted.result())
            raise

    def give_back(self, slots: int) -> None:
        """Return slots that turned out not to be needed. They are for whoever comes within their period."""
        if slots:
            self._used -= slots
            self._clock.free += slots
            self._share_out()

    def statistics(self) -> SlotStatistics:
        """A snapshot."""
        return SlotStatistics(
            rate=None if self._unlimited else float(self._clock.rate),
            given=self._given_before + self._clock.given,
            used=self._used,
            unused=self._unused_before + self._clock.unused,
            waiting=len(self._waiting),
        )

    def _arm(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = self._loop.call_at(self._clock.next_tick(), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._clock.advance(self._loop.time(), waited_for=True)
        self._share_out()

    def _share_out(self) -> None:
        """Give everyone who waits an even share; what one does not want goes to those behind it."""
        if self._unlimited:
            self._clock.free = sum(wanted for wanted, _ in self._waiting)
        while self._waiting and self._clock.free:
            share = max(1, self._clock.free // len(self._waiting))
            wanted, granted = self._waiting.popleft()
            if not granted.done():  # done: its waiter was cancelled
                taken = self._clock.take(min(wanted, share))
                self._used += taken
                granted.set_result(taken)
        self._arm()

    def __repr__(self) -> str:
        rate = "no limit" if self._unlimited else f"{float(self._clock.rate):g}/s"
        return f"<Slots {rate} free={self._clock.free} waiting={len(self._waiting)}>"
