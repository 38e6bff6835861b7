"""What sink tests have in common: events, items, ownerships, and a box for dead letters in memory."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random

import orjson

from service.errors import Retry
from service.sink.dead_letters import Letter
from service.sink.options import SinkOptions
from service.sink.outcome import Outcome
from service.sink.record import Decoder, DocumentOptions, Record
from service.sink.sink import Sink
from service.source.events import Event, Hub, PartitionId
from service.source.leases import Checkpoint, Ownership

HUB = Hub("test.servicebus.windows.net", "telemetry", "$Default", 1_700_000_000_000)


async def _no_checkpoint(checkpoint: Checkpoint) -> None:
    raise AssertionError("the sink writes no checkpoints")


def ownership(partition: str = "0", clock=lambda: 0.0, deadline: float = float("inf")) -> Ownership:
    return Ownership(HUB, PartitionId(partition), 1, None, deadline, clock, _no_checkpoint)


@dataclass(eq=False)
class MemoryItem:
    """An event, and what became of its records."""

    event: Event
    ownership: Ownership
    taken_at: float
    expected: int = 1
    outcomes: list[Outcome] = field(default_factory=list)

    def settle(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        assert len(self.outcomes) <= self.expected, "settled more often than it has records"

    @property
    def done(self) -> bool:
        return len(self.outcomes) == self.expected


@dataclass
class MemoryBox:
    """Keeps dead letters; fails `failures` times first."""

    letters: list[Letter] = field(default_factory=list)
    failures: int = 0
    appends: int = 0

    async def append(self, letters: Sequence[Letter]) -> None:
        await asyncio.sleep(0.01)
        if self.failures:
            self.failures -= 1
            raise Retry("storage is away")
        self.appends += 1
        self.letters.extend(letters)

    def reasons(self) -> Counter[str]:
        return Counter(letter.reason for letter in self.letters)


def event(sequence: int, body: bytes | dict, **more) -> Event:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return Event(
        sequence, str(sequence * 100), 1_700_000_000_000 + sequence * 10, raw, more.pop("properties", {}), **more
    )


class Feeder:
    """Decodes events and gives them to a sink, as the flow does."""

    def __init__(self, sink: Sink, options: DocumentOptions | None = None, *, guarded: bool = False) -> None:
        self.sink = sink
        self.decoder = Decoder(options or DocumentOptions(), sink.definition, guarded=guarded)
        self.items: list[MemoryItem] = []
        self.owned = ownership()
        self._sequence = -1

    def feed(self, body: bytes | dict, owned: Ownership | None = None, **more) -> MemoryItem:
        self._sequence += 1
        return self.feed_event(event(self._sequence, body, **more), owned)

    def feed_event(self, taken: Event, owned: Ownership | None = None) -> MemoryItem:
        owned = owned or self.owned
        records: list[Record] = self.decoder.decode(taken, owned.hub, owned.partition)
        item = MemoryItem(taken, owned, asyncio.get_running_loop().time(), len(records))
        self.items.append(item)
        self.sink.submit(item, records)
        return item

    async def drain(self, items: Sequence[MemoryItem] | None = None, poll_seconds: float = 0.05) -> None:
        for item in self.items if items is None else items:
            while not item.done:  # noqa: ASYNC110 - an item knows no loop
                await asyncio.sleep(poll_seconds)

    def outcomes(self) -> Counter[Outcome]:
        return Counter(outcome for item in self.items for outcome in item.outcomes)


@asynccontextmanager
async def running(container, box=None, options: SinkOptions | None = None, seed: int = 0):
    """A sink over the container, running; what stops it is raised at the end."""
    definition = await container.describe()
    ranges = await container.read_ranges()
    sink = Sink(container, definition, ranges, box or MemoryBox(), options, random=Random(seed))
    task = asyncio.create_task(sink.run())
    try:
        yield sink
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
