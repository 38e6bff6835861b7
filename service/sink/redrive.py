"""Dead letters sent again: through the same sink, guarded, at a set rate; what went is marked.

Guarded, because newer records of the same documents have been written meanwhile. A letter that fails again becomes a
new letter, and the old one is marked all the same: it went.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from aiolimiter import AsyncLimiter

from service.sink.letter_archive import LetterArchive, StoredLetter
from service.sink.outcome import Outcome
from service.sink.record import Decoder, Operation, Record
from service.sink.sink import Sink
from service.source.events import Event
from service.source.leases import Checkpoint, Ownership

_AT_A_TIME: Final = 1000


@dataclass(frozen=True, slots=True)
class Redriven:
    """What became of the letters."""

    outcomes: Mapping[Outcome, int]
    skipped: int
    """Sent again before, or about the same record as another letter."""


@dataclass(slots=True)
class _Again:
    """A letter on its way, as the sink sees it."""

    letter: StoredLetter
    event: Event
    ownership: Ownership
    taken_at: float
    left: int
    done: asyncio.Future[Outcome] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def settle(self, outcome: Outcome) -> None:
        """The record is completed."""
        self.left -= 1
        if not self.left and not self.done.done():
            self.done.set_result(outcome)


async def redrive(
    archive: LetterArchive,
    sink: Sink,
    decoder: Decoder,
    *,
    prefix: str = "",
    rate: float = 0.0,
    wanted: Callable[[StoredLetter], bool] = lambda _: True,
    progress: Callable[[int], None] = lambda _: None,
) -> Redriven:
    """Send letters again, at most `rate` per second (0: no limit). The sink must be running, and both it and the
    decoder made for guarded writes. What was completed is marked, also when it is cancelled in the middle.
    """
    limiter = AsyncLimiter(max(1.0, rate / 10), max(1.0, rate / 10) / rate) if rate else None
    outcomes: Counter[Outcome] = Counter()
    skipped = 0
    flying: list[_Again] = []
    try:
        async for letter in archive.letters(prefix):
            if letter.redriven or letter.duplicate or not wanted(letter):
                skipped += 1
                continue
            if limiter is not None:
                await limiter.acquire()
            flying.append(_send(letter, sink, decoder))
            if len(flying) >= _AT_A_TIME or flying[0].letter.blob != letter.blob:
                await _finish(flying, archive, outcomes)
                progress(sum(outcomes.values()))
        await _finish(flying, archive, outcomes)
    finally:
        await asyncio.shield(_mark([one for one in flying if one.done.done()], archive, outcomes))
    return Redriven(dict(outcomes), skipped)


def _send(letter: StoredLetter, sink: Sink, decoder: Decoder) -> _Again:
    records = decoder.decode(letter.event, letter.hub, letter.partition)
    chosen = [record for record in records if record.index == letter.index] or [
        Record(Operation.POISON, letter.index, reason="the event has no such record any more")
    ]
    again = _Again(letter, letter.event, _own(letter), asyncio.get_running_loop().time(), len(chosen))
    sink.submit(again, chosen)
    return again


async def _finish(flying: list[_Again], archive: LetterArchive, outcomes: Counter[Outcome]) -> None:
    """Wait for all, and mark them."""
    if flying:
        await asyncio.wait([one.done for one in flying])
        await _mark(flying, archive, outcomes)
        flying.clear()


async def _mark(done: list[_Again], archive: LetterArchive, outcomes: Counter[Outcome]) -> None:
    by_blob: dict[str, list[tuple[StoredLetter, str]]] = {}
    for one in done:
        outcome = one.done.result()
        outcomes[outcome] += 1
        by_blob.setdefault(one.letter.blob, []).append((one.letter, outcome.value))
    for blob, letters in by_blob.items():
        await archive.mark(blob, letters, datetime.now(UTC))


def _own(letter: StoredLetter) -> Ownership:
    """Nobody can take a letter away: it holds for ever."""
    return Ownership(letter.hub, letter.partition, 0, None, float("inf"), lambda: 0.0, _no_checkpoint)


async def _no_checkpoint(_: Checkpoint) -> None:
    raise AssertionError("letters have no checkpoint")
