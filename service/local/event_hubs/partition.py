"""A partition: its log of encoded events, and who reads it."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.amqp.errors import AmqpError
from service.local.event_hubs.events import NewEvent
from service.local.event_hubs.positions import By, StartPosition
from service.local.event_hubs.receivers import ReceiverGroup
from service.local.event_hubs.storage import PartitionJournal


@dataclass(frozen=True, slots=True)
class Retention:
    """What a log keeps. None means without limit, which is for tests: Azure keeps 1 hour to 90 days."""

    seconds: float | None = None
    size_bytes: int | None = None


class PartitionLog:
    """Events in order. Sequence numbers are 0, 1, 2 …; offsets are the bytes before, so they have gaps.

    `events[i]` has sequence number `first + i`. Deliverers read `events` and `first` directly: that is the hot way.
    """

    __slots__ = (
        "_journal",
        "events",
        "first",
        "last_enqueued_ms",
        "last_offset",
        "next_offset",
        "offsets",
        "size_bytes",
        "times",
    )

    def __init__(self, journal: PartitionJournal | None = None) -> None:
        self.events: list[bytes] = []
        self.offsets: list[int] = []
        self.times: list[int] = []
        self.first = 0
        self.next_offset = 0
        self.last_offset = -1
        self.last_enqueued_ms = 0
        self.size_bytes = 0
        self._journal = journal
        if journal is not None:
            self._restore(journal)

    @property
    def end(self) -> int:
        """The sequence number that the next event will get."""
        return self.first + len(self.events)

    @property
    def last(self) -> int:
        """The last sequence number given, -1 before the first event (SDK: `get_partition_properties`)."""
        return self.end - 1

    def append(self, events: Sequence[NewEvent], now_ms: int) -> int:
        """Adds events, all enqueued at one time that never goes back; the first one's sequence number."""
        at = max(now_ms, self.last_enqueued_ms)
        start = sequence = self.end
        records = []
        for event in events:
            offset = self.next_offset
            raw = event.placed(sequence, offset, at)
            records.append((sequence, offset, at, raw))
            self.load(offset, at, raw)
            sequence += 1
        if self._journal is not None:
            self._journal.append(records)
        return start

    def load(self, offset: int, enqueued_ms: int, raw: bytes) -> None:
        """Adds one event that already has its place."""
        self.events.append(raw)
        self.offsets.append(offset)
        self.times.append(enqueued_ms)
        self.size_bytes += len(raw)
        self.last_offset = offset
        self.last_enqueued_ms = enqueued_ms
        self.next_offset = offset + len(raw)

    def seek(self, position: StartPosition) -> int:
        """The sequence number that a receiver starting there gets first; the first kept one if retention took it."""
        side = bisect_left if position.inclusive else bisect_right
        match position.by:
            case By.LATEST:
                return self.end
            case By.TIME:
                return self.first + side(self.times, position.value)
            case By.OFFSET:
                self._check("offset", position.value, self.last_offset)
                return self.first + side(self.offsets, position.value)
            case By.SEQUENCE:
                self._check("sequence number", position.value, self.end if position.inclusive else self.last)
                return max(self.first, position.value + (not position.inclusive))

    def trim(self, first: int) -> None:
        """Forgets the events before sequence number `first`, as retention does."""
        count = min(max(first - self.first, 0), len(self.events))
        if not count:
            return
        self.size_bytes -= sum(map(len, self.events[:count]))
        del self.events[:count], self.offsets[:count], self.times[:count]
        self.first += count
        if self._journal is not None:
            self._journal.trim(self.first)

    def retain(self, retention: Retention, now_ms: int) -> None:
        """Forgets what is older, or more, than `retention` allows."""
        count = 0
        if retention.seconds is not None:
            count = bisect_left(self.times, now_ms - int(retention.seconds * 1000))
        if retention.size_bytes is not None:
            excess = self.size_bytes - sum(map(len, self.events[:count])) - retention.size_bytes
            while excess > 0 and count < len(self.events):
                excess -= len(self.events[count])
                count += 1
        self.trim(self.first + count)

    def close(self) -> None:
        """Lets go of the journal's file."""
        if self._journal is not None:
            self._journal.close()

    def _restore(self, journal: PartitionJournal) -> None:
        for sequence, offset, enqueued_ms, raw in journal.load():
            if not self.events:
                self.first = sequence
            self.load(offset, enqueued_ms, raw)
        self.trim(journal.begin())

    def _check(self, what: str, value: int, last: int) -> None:
        """A place that was never given out is refused (azure-event-hubs-python#13, azure-event-hubs-spark#315)."""
        if value > last:
            raise AmqpError(
                f"The supplied {what} '{value}' is invalid. The last {what} in the system is '{last}'",
                "com.microsoft:argument-error",
            )


class Partition:
    """One partition of a hub: log, receivers by consumer group, and whether it is frozen."""

    __slots__ = ("frozen", "groups", "held", "id", "log")

    def __init__(self, partition_id: str, journal: PartitionJournal | None = None) -> None:
        self.id = partition_id
        self.log = PartitionLog(journal)
        self.groups: dict[str, ReceiverGroup] = {}
        self.frozen = False
        self.held: list[Callable[[], None]] = []
        """What waits for the thaw: publications that came while frozen."""

    def group(self, name: str) -> ReceiverGroup:
        """The receivers of a consumer group on this partition."""
        return self.groups.setdefault(name.lower(), ReceiverGroup())

    def wake(self) -> None:
        """Tells every receiver that there may be something to deliver."""
        for group in self.groups.values():
            for receiver in group.receivers:
                receiver.wake()

    def freeze(self) -> None:
        """Stops deliveries and acceptances; connections and links stay."""
        self.frozen = True

    def thaw(self) -> None:
        """Goes on where it was frozen."""
        self.frozen = False
        held, self.held = self.held, []
        for publish in held:
            publish()
        self.wake()
