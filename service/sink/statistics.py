"""Figures of the sink."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from service.sink.outcome import Outcome

_REASON_LENGTH = 60
_MOST_REASONS = 30
"""Reasons become labels of a metric: their number must be bounded whatever senders do."""


@dataclass(frozen=True, slots=True)
class SinkStatistics:
    """The sink at one moment. Counts are since its start."""

    committed: int
    superseded: int
    dropped: int
    dead_lettered: int
    reasons: Mapping[str, int]
    """Dead letters by the first words of their reason."""
    retried: Mapping[int, int]
    """Operations that were sent again, by the status that was the cause; 0: no answer."""
    requests: int
    waited_seconds: float
    """All batches together: from the arrival of a batch's oldest record until it was sent."""
    ru: float
    queued: int
    """Records that wait for a range, for a retry, or for an earlier record of their document."""
    in_flight: int
    """Records on their way to Cosmos."""
    ranges: int
    paced: Mapping[str, float]
    """Request units per second that each throttled range is sent now."""
    bulk: bool
    """Whether records go in bulk, or one by one."""
    fault: str | None
    """The set-up fault that nothing can be written for, if there is one."""


@dataclass(slots=True)
class Counts:
    """What is counted while the sink runs."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    retried: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def buried(self, reason: str) -> None:
        """A record has become a dead letter. Of its reason only what is before details, so that kinds are counted."""
        kind = reason.partition(":")[0][:_REASON_LENGTH]
        self.reasons[kind if kind in self.reasons or len(self.reasons) < _MOST_REASONS else "other"] += 1

    requests: int = 0
    waited_seconds: float = 0.0
    ru: float = 0.0
    open: int = 0
    """Records taken and not yet completed."""
    in_flight: int = 0
