"""A lane: what waits for one range, and when the next batch of it may leave. Pure: time is an argument."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from service.sink.order import Entry
from service.sink.pace import Concurrency, Pace

NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """When a batch leaves, and how many may be on their way (settings COSMOS_BATCH_*)."""

    max_records: int = 100
    """More the service refuses."""
    wait_seconds: float = 1.0
    """A batch that is not full leaves when its oldest record has waited this long since it arrived."""
    max_bytes: int = 220_201
    """As in the SDKs for .NET, Java and JS. A larger document goes alone."""
    first_in_flight: float = 2.0
    max_in_flight: int = 20
    """Requests per range, at first and at most; the latter as in the SDK for JS."""


class Lane:
    """The queue of one range."""

    __slots__ = (
        "concurrency",
        "in_flight",
        "not_before",
        "options",
        "pace",
        "range_id",
        "ready",
        "ready_bytes",
        "whole",
    )

    def __init__(self, range_id: str, options: BatchOptions, now: float) -> None:
        self.range_id = range_id
        self.options = options
        self.ready: deque[Entry] = deque()
        """Nearly in order of arrival; the first is the oldest."""
        self.ready_bytes = 0
        self.whole: deque[list[Entry]] = deque()
        """Batches that are parts of a refused one: they go as they are, first."""
        self.in_flight = 0
        self.not_before = now
        self.pace = Pace(now)
        self.concurrency = Concurrency(options.first_in_flight, options.max_in_flight)

    def __len__(self) -> int:
        return len(self.ready) + sum(map(len, self.whole))

    def add(self, entry: Entry) -> bool:
        """Queue a record. Says whether the sender should look: the lane was empty, or a batch is full now."""
        ready = self.ready
        self.ready_bytes += entry.size
        if ready and entry.taken_at < ready[0].taken_at:
            ready.appendleft(
                entry
            )  # it waited for its document, or comes back from a try: its time counts from arrival
            return True
        ready.append(entry)
        return (
            len(ready) == 1 or len(ready) % self.options.max_records == 0 or self.ready_bytes >= self.options.max_bytes
        )

    def put_back(self, entries: Iterable[Entry]) -> None:
        """Records that were refused for now: first again, in their order."""
        for entry in reversed(list(entries)):
            self.ready.appendleft(entry)
            self.ready_bytes += entry.size

    def due_at(self, now: float, *, at_once: bool) -> float:
        """When the next batch may leave, as far as is known; NEVER while there is nothing, or too much in flight."""
        if self.in_flight >= int(self.concurrency.limit) or not (self.ready or self.whole):
            return NEVER
        limit = self.pace.batch_limit(self.options.max_records)
        full = len(self.ready) >= limit or self.ready_bytes >= self.options.max_bytes
        due = now if at_once or full or self.whole else self.ready[0].taken_at + self.options.wait_seconds
        return max(due, self.not_before, now + self.pace.wait_seconds(now))

    def take(self, most: int) -> list[Entry]:
        """The next batch, of at most so many records."""
        if self.whole:
            return self.whole.popleft()
        batch: list[Entry] = []
        size = 2
        ready = self.ready
        most = min(most, self.pace.batch_limit(self.options.max_records))
        while ready and len(batch) < most:
            size += ready[0].size
            if size > self.options.max_bytes and batch:
                break
            entry = ready.popleft()
            self.ready_bytes -= entry.size
            batch.append(entry)
        return batch

    def clear(self) -> list[Entry]:
        """Everything that waits, in order; the lane is empty then."""
        entries = [entry for batch in self.whole for entry in batch]
        entries.extend(self.ready)
        self.whole.clear()
        self.ready.clear()
        self.ready_bytes = 0
        return entries
