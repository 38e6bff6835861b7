"""The desk where dead letters are written: in batches, durable before anything counts as completed."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

import structlog

from service.errors import Retry
from service.sink.dead_letters import DeadLetterBox, Letter
from service.sink.flood import FloodGate, FloodOptions
from service.sink.order import Entry

log = structlog.get_logger(__name__)

_BATCH_LETTERS: Final = 1000
_TICK_SECONDS: Final = 0.5


class LetterDesk:
    """Takes records that can never be committed; gives them to `settle` once that is safe."""

    def __init__(
        self,
        box: DeadLetterBox,
        settle: Callable[[Entry], None],
        options: FloodOptions,
        retry_wait_seconds: float,
        utc_now: Callable[[], datetime],
    ) -> None:
        self._box = box
        self._settle = settle
        self._retry_wait_seconds = retry_wait_seconds
        self._utc_now = utc_now
        self._loop = asyncio.get_running_loop()
        self._gate = FloodGate[Entry](options, self._loop.time())
        self._waiting: list[tuple[Entry, Letter]] = []
        self._writing: list[tuple[Entry, Letter]] = []
        self._news = asyncio.Event()
        self._hurry = False
        self.fault: str | None = None
        """Why letters cannot be written now."""

    def add(self, entry: Entry, reason: str, status: int, sub_status: int) -> None:
        """A record that can never be committed."""
        item, record = entry.pending.item, entry.record
        record.reason = reason
        letter = Letter(
            item.ownership.hub,
            item.ownership.partition,
            item.event,
            record.index,
            reason,
            status,
            sub_status,
            entry.tries,
            self._utc_now(),
        )
        self._waiting.append((entry, letter))
        self._news.set()

    def good(self, count: int) -> None:
        """So many records were completed otherwise."""
        for entry in self._gate.good(count, self._loop.time()):
            self._settle(entry)

    def hurry(self) -> None:
        """The process is to end: what is durable need not be kept back any more."""
        self._hurry = True
        self._news.set()

    def remove(self, unwanted: Callable[[Entry], bool]) -> list[Entry]:
        """Take out what is not wanted any more, as far as it is not being written."""
        removed = [entry for entry, _ in self._waiting if unwanted(entry)]
        self._waiting = [(entry, letter) for entry, letter in self._waiting if not unwanted(entry)]
        return removed

    def __iter__(self) -> Iterator[Entry]:
        """All that is neither settled nor released."""
        for entry, _ in (*self._waiting, *self._writing):
            yield entry
        yield from self._gate

    async def run(self) -> None:
        """Write letters until cancelled. Raises DeadLetterFlood."""
        while True:
            self._news.clear()
            if self._waiting:
                await self._write()
            for entry in self._gate.release() if self._hurry else self._gate.tick(self._loop.time()):
                self._settle(entry)
            if not self._waiting:
                await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_TICK_SECONDS if len(self._gate) else None):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _write(self) -> None:
        self._writing, self._waiting = self._waiting[:_BATCH_LETTERS], self._waiting[_BATCH_LETTERS:]
        letters = [letter for _, letter in self._writing]
        while True:
            try:
                await self._box.append(letters)
                break
            except Retry as fault:
                if self.fault is None:
                    log.warning("dead letters wait", fault=str(fault))
                self.fault = str(fault)
                await asyncio.sleep(fault.after_seconds or self._retry_wait_seconds)
        self.fault = None
        written, self._writing = [entry for entry, _ in self._writing], []
        self._gate.dead(written, self._loop.time())
