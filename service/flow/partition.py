"""One partition's way through the flow: from the receiver to the sink, and back as a checkpoint."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from service.errors import LeaseLost
from service.flow import completion_map
from service.flow.backlog import Backlog
from service.flow.completion_map import CompletionMap, UnreadableMap
from service.flow.slots import Slots
from service.flow.spans import checkpoint_span, receive_span
from service.flow.worklist import Frontier, WorkItem, WorkList
from service.sink.outcome import Item
from service.sink.record import Record
from service.source.events import Event, Hub, PartitionId
from service.source.leases import Checkpoint, CloseReason, Ownership

log = structlog.get_logger()


class Sink(Protocol):
    """What the flow needs of a sink."""

    def submit(self, item: Item, records: Sequence[Record]) -> None:
        """Take the records of one event. Never blocks."""

    def purge(self, ownership: Ownership) -> None:
        """Send nothing more for this ownership."""

    def flush(self) -> None:
        """Send what waits for a fuller batch."""


Decode = Callable[[Event, Hub, PartitionId], list[Record]]

SAMPLED = 64
"""One item in so many is looked at for the time from enqueuing to commit: all would cost a tenth of the CPU."""
CHECKPOINT_SECONDS = 5.0
"""Kept back from a deadline for the last checkpoint; half of what is left where that is less."""


@dataclass(slots=True)
class Intake:
    """What all partitions of this process have taken in so far."""

    received: int = 0
    """Records."""
    skipped: int = 0
    """Events that an earlier ownership had completed already, by its completion map."""
    completed: Callable[[WorkItem], None] | None = None
    """Told of one item in `SAMPLED`, when it is completed."""
    closed: "Callable[[PartitionFlow], None]" = field(default=lambda _: None)
    """Told when a partition takes no more."""


class PartitionFlow:
    """Takes a partition's events as slots and backlog allow, and keeps its checkpoint. One per ownership."""

    def __init__(
        self, ownership: Ownership, decode: Decode, sink: Sink, slots: Slots, backlog: Backlog, intake: Intake
    ) -> None:
        start = ownership.start or Checkpoint(-1)
        self.ownership = ownership
        self.worklist = WorkList(ownership, Frontier(start.sequence, start.offset), completed=self._on_completed)
        self._decode = decode
        self._sink = sink
        self._slots = slots
        self._backlog = backlog
        self._intake = intake
        self._loop = asyncio.get_running_loop()
        self._checkpointed_at = self._loop.time()
        self._done_before = self._read_map(start)
        self._done_before_until = self._done_before.last
        self._written = (start.sequence, -1)
        """Frontier and done-ahead count of the last checkpoint."""
        self._writing = asyncio.Lock()
        self._drained = asyncio.Event()

    async def open(self) -> None:
        """Nothing to do: everything needed came with the ownership."""

    async def events(self, events: Sequence[Event]) -> None:
        """Take events in order, one slot per record. Returns when all are taken, or the partition is lost."""
        with receive_span(self.ownership, events):
            await self._take(events)

    async def _take(self, events: Sequence[Event]) -> None:
        hub, partition = self.ownership.hub, self.ownership.partition
        granted = 0
        left = len(events)
        try:
            for event in events:
                left -= 1
                if event.sequence <= self._done_before_until and event.sequence in self._done_before:
                    self.worklist.skip(event)
                    self._intake.skipped += 1
                    continue
                records = self._decode(event, hub, partition)
                while granted < len(records):
                    await self._backlog.room()
                    granted += await self._slots.take(len(records) - granted + left)
                if self.worklist.closed:
                    return
                granted -= len(records)
                self._intake.received += len(records)
                document_bytes = sum([len(record.body) for record in records])
                item = WorkItem(self.worklist, event, len(records), self._loop.time(), document_bytes)
                self._sink.submit(item, records)
        finally:
            self._slots.give_back(granted)

    async def checkpoint(self) -> None:
        """Make the frontier durable if it, or what is done ahead, has changed. Raises Retry when storage fails."""
        async with self._writing:
            worklist = self.worklist
            if worklist.closed:
                return
            frontier, (done_ahead, sequences) = worklist.frontier, self._done_ahead()
            if (frontier.sequence, done_ahead) == self._written:  # at one frontier the set only grows
                self._checkpointed_at = self._loop.time()
                return
            hub, partition = self.ownership.hub, self.ownership.partition
            text = completion_map.encode(hub, partition, frontier.sequence, sequences)
            try:
                with checkpoint_span(self.ownership, frontier.sequence):
                    await self.ownership.write_checkpoint(Checkpoint(frontier.sequence, frontier.offset, text))
            except LeaseLost:
                self.ownership.lost = True
                self.purge()
                raise
            self._written = (frontier.sequence, done_ahead)
            self._checkpointed_at = self._loop.time()

    def _done_ahead(self) -> tuple[int, Iterable[int]]:
        """How many and which are done beyond the frontier: here, and before (be they read again by now or not)."""
        worklist, frontier = self.worklist, self.worklist.frontier.sequence
        if self._done_before_until > frontier:
            both = {*worklist.done_ahead_sequences(), *self._done_before.beyond(frontier)}
            return len(both), both
        return worklist.done_ahead, worklist.done_ahead_sequences() if worklist.done_ahead else ()

    async def close(self, reason: CloseReason, deadline: float) -> None:
        """Drain and checkpoint where the partition is still ours; else forget everything at once."""
        try:
            if reason in (CloseReason.SHUTDOWN, CloseReason.HANDED_OVER) and not self.ownership.lost:
                await self._drain(deadline)
                await self.checkpoint()
        finally:
            self.purge()

    def checkpoint_age(self) -> float:
        """Seconds since the checkpoint was known to be durable and current."""
        return self._loop.time() - self._checkpointed_at

    async def error(self, error: Exception) -> None:
        """The receiver had a fault that it mends by itself."""
        log.warning("receiver fault", partition=self.ownership.partition, error=str(error))

    def purge(self) -> None:
        """Nothing of this ownership is sent or counted any more."""
        if self.worklist.closed:
            return
        self.worklist.close()
        self._sink.purge(self.ownership)
        self._drained.set()
        self._intake.closed(self)

    async def _drain(self, deadline: float) -> None:
        self._sink.flush()
        if not self.worklist.items:
            return
        self._drained.clear()
        left = deadline - self._loop.time()
        try:
            async with asyncio.timeout_at(deadline - min(CHECKPOINT_SECONDS, left / 2)):
                await self._drained.wait()
        except TimeoutError:
            items = self.worklist.items
            log.warning("not drained in time; the rest is done again", partition=self.ownership.partition, items=items)

    def _on_completed(self, item: WorkItem) -> None:
        if not item.sequence % SAMPLED and self._intake.completed is not None:
            self._intake.completed(item)
        if not self.worklist.items:
            self._drained.set()

    def _read_map(self, start: Checkpoint) -> CompletionMap:
        hub, partition = self.ownership.hub, self.ownership.partition
        try:
            return completion_map.decode(hub, partition, start.sequence, start.done_ahead)
        except UnreadableMap as error:
            log.warning("completion map ignored; what it knew is done again", partition=partition, why=str(error))
            return completion_map.EMPTY
