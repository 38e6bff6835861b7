"""What a document's state is: what the stream says should be there, against what is. Pure.

The order is the guard's own (`service/sink/stamp.py`), so a reconciliation and a write never disagree about which of
two is the newer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from service.sink.record import Operation
from service.sink.stamp import Precedence, Stamp, compare


class State(Enum):
    """How a document stands."""

    OK = "ok"
    NEWER = "newer"
    """The document is of a later event than the last one looked at: the live consumer has moved on."""
    DELETED = "deleted"
    """The last record is a delete, and there is no document."""
    EXPIRED = "expired"
    """There is no document, and its time to live is over."""
    DEAD_LETTERED = "dead-lettered"
    """There is no document, and all its records are dead letters."""
    OUTSIDE = "outside"
    """The document is of an event before, or of another hub than, what was looked at: nothing can be said of it."""
    MISSING = "missing"
    STALE = "stale"
    """The document is of an earlier event than it should be; or should have been deleted."""
    DIFFERENT = "different"
    """The document says that it is of the right event, but has other contents."""
    UNEXPECTED = "unexpected"
    """There is a document that no event asks for."""

    @property
    def is_difference(self) -> bool:
        """Whether something is wrong."""
        return self in _DIFFERENCES


_DIFFERENCES = frozenset({State.MISSING, State.STALE, State.DIFFERENT, State.UNEXPECTED})


@dataclass(frozen=True, slots=True)
class Expected:
    """The last record of a document, dead letters left out."""

    operation: str
    stamp: Stamp
    hash: str | None
    expires: int | None
    dead: bool = False
    """All its records are dead letters; this is the last of them."""


@dataclass(frozen=True, slots=True)
class Actual:
    """A document as Cosmos has it."""

    stamp: Stamp | None
    hash: str
    etag: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What of the stream was looked at: by partition, the first and last sequence, of one life of the hub."""

    incarnation: int
    ranges: Mapping[str, tuple[int, int]]

    def is_before(self, stamp: Stamp) -> bool:
        """Whether the event lies before what was looked at, or on a partition that was not."""
        first = self.ranges.get(stamp.partition)
        return stamp.incarnation < self.incarnation or first is None or stamp.sequence < first[0]

    def is_beyond(self, stamp: Stamp) -> bool:
        """Whether the event lies beyond what was looked at."""
        if stamp.incarnation != self.incarnation:
            return stamp.incarnation > self.incarnation
        return stamp.partition in self.ranges and stamp.sequence > self.ranges[stamp.partition][1]


def judge(expected: Expected | None, actual: Actual | None, seen: Seen, now: float) -> State:  # noqa: PLR0911 - a table
    """The state of a document; at least one of the two is there."""
    if expected is None:
        return _uncalled_for(actual, seen)
    if actual is None:
        return _absent(expected, now)
    if expected.dead:
        return _uncalled_for(actual, seen)
    if actual.stamp is None:
        # Not written by the service, or with no stamp asked for: its contents alone can speak for it.
        if expected.operation == Operation.DELETE.value:
            return State.UNEXPECTED
        return State.OK if actual.hash == expected.hash else State.DIFFERENT
    precedence = compare(expected.stamp, actual.stamp)
    if precedence is Precedence.NEWER:
        return State.STALE
    if precedence is Precedence.OLDER:
        return State.NEWER if seen.is_beyond(actual.stamp) or seen.is_before(actual.stamp) else State.DIFFERENT
    return State.OK if actual.hash == expected.hash else State.DIFFERENT


def _absent(expected: Expected, now: float) -> State:
    if expected.dead:
        return State.DEAD_LETTERED
    if expected.operation == Operation.DELETE.value:
        return State.DELETED
    return State.EXPIRED if expected.expires is not None and expected.expires <= now else State.MISSING


def _uncalled_for(actual: Actual | None, seen: Seen) -> State:
    if actual is None or actual.stamp is None:
        return State.UNEXPECTED
    if seen.is_beyond(actual.stamp):
        return State.NEWER
    return State.OUTSIDE if seen.is_before(actual.stamp) else State.UNEXPECTED
