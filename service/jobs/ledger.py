"""The budget of all tasks together: a ledger in one blob, changed only over the version that was read (If-Match).

The ledger holds one number, the time up to which everything is given away. A task leases an amount by moving that time
on by amount / rate, and may spend it from the old time on. So the rate holds for any number of tasks on any number of
machines, however unevenly they work; clocks that differ can only make it slower. The driver also uses the ledger to
hold all tasks back for a while.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, TypeVar

import orjson

from service import options
from service.config import Settings
from service.errors import Retry
from service.source.blobs import Blobs, Conflict
from service.source.connect import connect_blobs

_LEASE_SECONDS: Final = 0.5
"""How much time's worth is leased at once: few enough calls, little enough to be left over."""
_LOOK_SECONDS: Final = 1.0
"""Without a rate: how often a task looks whether it is held back."""
_RETRY_SECONDS: Final = 1.0
_FIRST_GUESS_RU: Final = 10.0
"""A new document of 1 KB with every property indexed, until the service has named its price."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Ledger:
    """Which blob, and what it counts."""

    container: str
    name: str
    counts: Literal["records", "ru"] = "records"
    rate: float = 0.0
    """Per second; 0: no limit, the ledger only holds tasks back."""


@dataclass(frozen=True, slots=True)
class Page:
    """What the blob says."""

    given_until: float = 0.0
    """Seconds since 1970."""
    held_until: float = 0.0
    """Before this nothing is to be sent."""
    given: float = 0.0
    """All that was ever leased, less what came back."""

    def lease(self, amount: float, rate: float, now: float) -> "tuple[Page, float]":
        """The page after a lease, and when it may be spent. Time that nobody used is lost, but for one lease's."""
        start = max(self.given_until, now - _LEASE_SECONDS)
        return Page(start + amount / rate, self.held_until, self.given + amount), start

    def give_back(self, amount: float, rate: float) -> "Page":
        """The page after so much was not needed."""
        return Page(self.given_until - amount / rate, self.held_until, self.given - amount)

    def hold(self, until: float) -> "Page":
        """The page that holds everybody back."""
        return Page(self.given_until, until, self.given)


class LedgerBlob:
    """The ledger in storage."""

    def __init__(self, blobs: Blobs, name: str, random: Random | None = None) -> None:
        self._blobs = blobs
        self._name = name
        self._random = random or Random()  # noqa: S311 - spreads retries, guards nothing

    async def read(self) -> tuple[Page, str | None]:
        """The page and its version."""
        blob = await self._again(lambda: self._blobs.get(self._name))
        if blob is None:
            return Page(), None
        found = orjson.loads(blob.body)
        return Page(found["given_until"], found["held_until"], found["given"]), blob.etag

    async def change(self, change: Callable[[Page], Page]) -> Page:
        """Apply a change to whatever the page is; gives the page before it."""
        tries = 0
        while True:
            page, etag = await self.read()
            try:
                await self._put(change(page), etag)
            except Conflict:  # another task was faster
                await asyncio.sleep(self._random.uniform(0, 0.01 * 2 ** min(tries, 5)))
                tries += 1
                continue
            return page

    async def _put(self, page: Page, etag: str | None) -> None:
        body = orjson.dumps({"given_until": page.given_until, "held_until": page.held_until, "given": page.given})
        # A put without an answer may have had its effect: the budget is then short of one lease, never over.
        await self._again(lambda: self._blobs.put(self._name, body, {}, etag=etag))

    async def _again(self, call: Callable[[], Awaitable[_T]]) -> _T:
        while True:
            try:
                return await call()
            except Retry as fault:
                await asyncio.sleep(fault.after_seconds or _RETRY_SECONDS)


class Allowance:
    """One task's share: asks before it spends. Of RU, what was guessed wrong is settled with the next lease."""

    def __init__(
        self, blob: LedgerBlob | None, ledger: Ledger | None = None, now: Callable[[], float] = time.time
    ) -> None:
        """Without a blob everything is allowed."""
        self._blob = blob
        self._ledger = ledger
        self._now = now
        self._leased = 0.0
        self._taken = 0
        self._looked = 0.0

    async def take(self, records: int, on_their_way: int, ru: float) -> None:
        """Wait until so many more records may be sent. `ru`: all that this task's requests have cost so far."""
        blob, ledger = self._blob, self._ledger
        if blob is None or ledger is None:
            return
        if not ledger.rate:
            await self._look(blob)
            return
        each = self._each(ledger, on_their_way, ru)
        while (lacking := self._spent(ledger, on_their_way, ru) + records * each - self._leased) > 0:
            await self._lease(blob, ledger, lacking)
        self._taken += records

    def unused(self, records: int) -> None:
        """So many of those that were asked for did not come."""
        self._taken -= records

    async def give_back(self, ru: float) -> None:
        """The task is done."""
        blob, ledger = self._blob, self._ledger
        if blob is None or ledger is None or not ledger.rate:
            return
        left = self._leased - self._spent(ledger, 0, ru)
        self._leased -= left
        if left:
            await blob.change(lambda page: page.give_back(left, ledger.rate))

    def _spent(self, ledger: Ledger, on_their_way: int, ru: float) -> float:
        if ledger.counts == "records":
            return self._taken
        return ru + on_their_way * self._each(ledger, on_their_way, ru)

    def _each(self, ledger: Ledger, on_their_way: int, ru: float) -> float:
        """What a record costs, by those that have been paid for."""
        if ledger.counts == "records":
            return 1.0
        settled = self._taken - on_their_way
        return ru / settled if settled > 0 and ru else _FIRST_GUESS_RU

    async def _lease(self, blob: LedgerBlob, ledger: Ledger, lacking: float) -> None:
        amount = max(lacking, ledger.rate * _LEASE_SECONDS)
        now = self._now()
        page = await blob.change(lambda page: page.lease(amount, ledger.rate, now)[0])
        start = page.lease(amount, ledger.rate, now)[1]
        self._leased += amount
        await self._sleep_until(start)
        if page.held_until > self._now():
            await self._until_released(blob)

    async def _look(self, blob: LedgerBlob) -> None:
        if self._now() - self._looked < _LOOK_SECONDS:
            return
        self._looked = self._now()
        await self._until_released(blob)

    async def _until_released(self, blob: LedgerBlob) -> None:
        """A hold may be made longer while it stands."""
        while (page := (await blob.read())[0]).held_until > self._now():
            await self._sleep_until(min(page.held_until, self._now() + _LOOK_SECONDS))

    async def _sleep_until(self, then: float) -> None:
        await asyncio.sleep(max(0.0, then - self._now()))


async def open_ledger(ledger: Ledger, settings: Settings, parts: AsyncExitStack) -> Allowance:
    """A task's allowance; its connection is closed with `parts`."""
    blobs = connect_blobs(ledger.container, **options.blob_account(settings))
    parts.push_async_callback(blobs.close)
    return Allowance(LedgerBlob(blobs, ledger.name), ledger)
