"""The edge of retention: the oldest event still kept, how fast it moves, and when it will reach a position. Pure.

The hub does not say how long it keeps events, but its oldest sequence moves as they go.
"""

_SMOOTHING = 0.3
"""Weight of the newest measurement: retention removes events in lumps."""


class RetentionEdge:
    """The oldest event of one partition, as measured from time to time."""

    def __init__(self) -> None:
        self.first_kept = 0
        self._measured_at: float | None = None
        self._events_per_second = 0.0

    def measured(self, first_kept: int, now: float) -> None:
        """The hub said which its oldest event is."""
        if self._measured_at is not None and now > self._measured_at:
            speed = max(0, first_kept - self.first_kept) / (now - self._measured_at)
            self._events_per_second += _SMOOTHING * (speed - self._events_per_second)
        self.first_kept = first_kept
        self._measured_at = now

    def minutes_to(self, sequence: int) -> float | None:
        """Until the event of this sequence goes, at the speed of now; None while nothing goes."""
        if self._events_per_second <= 0:
            return None
        return max(0, sequence - self.first_kept) / self._events_per_second / 60
