"""The WorkList: a partition's items in arrival order, completed in any order, checkpointed only as a prefix.

No assumption is made about which sequence numbers exist: order is the order of arrival.
Every operation takes amortised constant time. No I/O, no clock.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from service.sink.outcome import Outcome
from service.source.events import Event
from service.source.leases import Ownership


class WorkItem:
    """An event and its place. Completed when each of its records is."""

    __slots__ = (
        "_list",
        "enqueued_ms",
        "event",
        "offset",
        "ownership",
        "pending",
        "records",
        "sequence",
        "size",
        "taken_at",
    )

    event: Event
    """Gone once completed, so that only the place stays in memory."""

    def __init__(
        self, worklist: "WorkList", event: Event, records: int, taken_at: float, document_bytes: int = 0
    ) -> None:
        self._list = worklist
        self.ownership = worklist.ownership
        self.event = event
        self.sequence = event.sequence
        self.offset = event.offset
        self.enqueued_ms = event.enqueued_ms
        self.size = len(event.body) + document_bytes + ITEM_BYTES
        self.taken_at = taken_at
        self.records = records
        self.pending = records
        worklist.add(self)

    def settle(self, outcome: Outcome) -> None:  # noqa: ARG002 - the sink counts outcomes; the list only counts down
        """One of its records is completed."""
        self.pending -= 1
        if not self.pending:
            self._list.complete(self)


ITEM_BYTES = 1024
"""What an item costs beside its body and the documents made of it while it is on its way: a dozen objects."""
DONE_AHEAD_BYTES = 256
"""What is left of a completed item that waits for an earlier one."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """The last item of the completed prefix."""

    sequence: int
    offset: str | None


@dataclass(frozen=True, slots=True)
class WorkListStatistics:
    """Counts of one WorkList."""

    items: int
    """Items not completed."""
    records: int
    bytes: int
    """Memory of all items, those done ahead included."""
    done_ahead: int
    oldest_taken_at: float | None
    """When the oldest item that is not completed was taken."""


class WorkList:
    """The items of one ownership of one partition.

    Adding and completing move the frontier; a snapshot of it can be written while both go on.
    After `close` completions fall into nothing: the partition belongs to somebody else.
    """

    def __init__(
        self, ownership: Ownership, frontier: Frontier, *, completed: Callable[[WorkItem], None] | None = None
    ) -> None:
        self.ownership = ownership
        self._sequence = frontier.sequence
        self._offset = frontier.offset
        self.frontier_enqueued_ms = 0
        """When the last item of the completed prefix was enqueued; 0 while there is none."""
        self.items = 0
        self.records = 0
        self.bytes = 0
        self.closed = False
        self._completed = completed
        # From the first item that is not completed on, in order of arrival.
        self._open: deque[WorkItem] = deque()

    def add(self, item: WorkItem) -> None:
        """Take an item under its place; called by the item itself."""
        self._open.append(item)
        self.items += 1
        self.records += item.records
        self.bytes += item.size

    def skip(self, event: Event) -> None:
        """An event that an earlier ownership has completed already."""
        if not self._open:
            self._sequence, self._offset = event.sequence, event.offset
            self.frontier_enqueued_ms = event.enqueued_ms
            return
        self._finish(WorkItem(self, event, 0, 0.0))

    def complete(self, item: WorkItem) -> None:
        """All records of the item are completed."""
        if self.closed:
            return
        self._finish(item)
        if self._completed is not None:
            self._completed(item)

    def close(self) -> None:
        """Forget everything. What completes later changes nothing."""
        self.closed = True
        self._open.clear()
        self.items = self.records = self.bytes = 0

    @property
    def frontier(self) -> Frontier:
        """How far everything is completed."""
        return Frontier(self._sequence, self._offset)

    @property
    def done_ahead(self) -> int:
        """Completed items beyond the frontier."""
        return len(self._open) - self.items

    def done_ahead_sequences(self) -> Iterator[int]:
        """Their sequences, in order of arrival."""
        return (item.sequence for item in self._open if not item.pending)

    def statistics(self) -> WorkListStatistics:
        """A snapshot."""
        # The first item is never a completed one: completing it would have moved the frontier past it.
        oldest = self._open[0].taken_at if self._open else None
        return WorkListStatistics(self.items, self.records, self.bytes, self.done_ahead, oldest)

    def _finish(self, item: WorkItem) -> None:
        self.items -= 1
        self.records -= item.records
        self.bytes -= item.size - DONE_AHEAD_BYTES
        item.size = DONE_AHEAD_BYTES
        del item.event
        waiting = self._open
        if waiting[0] is not item:
            return
        while waiting and not waiting[0].pending:
            last = waiting.popleft()
            self.bytes -= last.size
        self._sequence, self._offset = last.sequence, last.offset
        self.frontier_enqueued_ms = last.enqueued_ms
