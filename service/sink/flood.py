"""The dead-letter limits: how many may fail before the fault must be in the set-up. Pure: time is an argument.

A dead letter that is durable is not settled at once, but when it is clear that it is no part of a flood. So when a
flood stops the process, the checkpoint still stands before it, and it will again after a restart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from service.errors import DeadLetterFlood

T = TypeVar("T")
WINDOW_RECORDS: Final = 1000
"""The ratio is taken over so many records: of fewer it says little."""


@dataclass(frozen=True, slots=True)
class FloodOptions:
    """Settings DEADLETTER_MAX_*, and how long letters are kept back at most."""

    max_ratio: float = 0.5
    max_consecutive: int = 1000
    idle_seconds: float = 2.0
    """When nothing has come for so long, nothing is flooding."""
    hold_seconds: float = 60.0
    """Well within ALLOW_BACKLOG_TO. Of a flood that takes longer to reach a limit, the older part is let by."""


class FloodGate(Generic[T]):
    """Keeps dead letters back until they are known to be single ones."""

    def __init__(self, options: FloodOptions, now: float) -> None:
        self._options = options
        self._held: list[T] = []
        self._held_since = now
        self._active_at = now
        self._consecutive = 0
        self._good = 0
        self._dead = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[T]:
        return iter(self._held)

    def good(self, count: int, now: float) -> list[T]:
        """So many records were completed otherwise. Gives the letters that may be settled; raises DeadLetterFlood."""
        self._good += count
        self._consecutive = 0
        self._active_at = now
        return self._judge()

    def dead(self, letters: list[T], now: float) -> None:
        """These became durable dead letters, and are kept back. Raises DeadLetterFlood if too many come in a row."""
        if not self._held:
            self._held_since = now
        self._held += letters
        self._dead += len(letters)
        self._consecutive += len(letters)
        self._active_at = now
        if self._consecutive > self._options.max_consecutive:
            raise DeadLetterFlood(
                f"{self._consecutive} records in a row could not be committed (DEADLETTER_MAX_CONSECUTIVE is"
                f" {self._options.max_consecutive}). {_ADVICE}"
            )

    def tick(self, now: float) -> list[T]:
        """Time has passed. Gives the letters that were kept back long enough."""
        idle = now - self._active_at >= self._options.idle_seconds
        return self.release() if self._held and (idle or now - self._held_since >= self._options.hold_seconds) else []

    def release(self) -> list[T]:
        """All that are kept back."""
        held, self._held = self._held, []
        return held

    def _judge(self) -> list[T]:
        total = self._good + self._dead
        flooding = self._dead > self._options.max_ratio * total
        if total >= WINDOW_RECORDS:
            if flooding:
                raise DeadLetterFlood(
                    f"{self._dead} of the last {total} records could not be committed (DEADLETTER_MAX_RATIO is"
                    f" {self._options.max_ratio}). {_ADVICE}"
                )
            self._good = self._dead = 0
        return [] if flooding else self.release()


_ADVICE: Final = (
    "That many point to the set-up, not to the records: a wrong container, partition key, id path or transform."
    " The checkpoint stays before them. See the reasons with `sluice deadletters list`, mend it, and start again;"
    " or raise the limit, if these records are to be given up."
)
