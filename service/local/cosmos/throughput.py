"""Request units: what an operation costs, and what a range may spend.

Figures follow the documentation ("Request Units in Azure Cosmos DB": a point read of 1 KB is 1 RU, a write about 5 and
more with size and indexed properties). The service measures by windows of a second, per physical partition.
"""

import math
from dataclasses import dataclass, field
from typing import Final

WRITE_BASE_CENTS: Final = 495
WRITE_CENTS_PER_KB: Final = 95
CENTS_PER_INDEXED_PATH: Final = 10
READ_PER_KB: Final = 1.0
READ_PER_MORE_KB: Final = 0.1
REFUSED_WRITE: Final = 1.24  # a write that found its precondition wrong: seen in published traces of 409 and 412
QUERY_BASE: Final = 2.3  # the least that any query costs, by published query metrics
QUERY_PER_KB: Final = 0.03
WINDOW_SECONDS: Final = 1.0


def write_charge(size_bytes: int, indexed_paths: int) -> float:
    """What a create, upsert, replace, patch or delete of a document costs: about 6 for 1 KB and one indexed path."""
    return write_cents(size_bytes, indexed_paths) / 100


def write_cents(size_bytes: int, indexed_paths: int) -> int:
    """The same in hundredths: a quotient prints as short as it is, and rounding takes longer."""
    return WRITE_BASE_CENTS + WRITE_CENTS_PER_KB * size_bytes // 1024 + CENTS_PER_INDEXED_PATH * indexed_paths


def read_charge(size_bytes: int) -> float:
    """What a point read costs: 1 for up to 1 KB."""
    return round(READ_PER_KB + READ_PER_MORE_KB * max(0.0, size_bytes / 1024 - 1), 2)


def query_charge(scanned: int, result_bytes: int) -> float:
    """What a page of a query costs."""
    return round(QUERY_BASE + QUERY_PER_KB * result_bytes / 1024 + 0.005 * scanned, 2)


@dataclass(slots=True)
class Budget:
    """What one range may spend per second. Spending is accepted while any is left, so the last one may go into debt,
    which later windows pay off; a rate of 0 never throttles.
    """

    rate: float = 0.0
    spent: float = 0.0
    total: float = 0.0
    """All that was ever spent, for figures."""
    refused: int = 0
    """How often it has said no, for figures."""
    blocked_ms: int = 0
    """Throttled by hand, whatever was spent: the wait that it tells."""
    _window: int = field(default=0)

    @property
    def limited(self) -> bool:
        """Whether it can ever say no."""
        return self.blocked_ms > 0 or self.rate > 0

    def wait_ms(self, now: float) -> int:
        """0 if there is something left to spend at `now`, else how long until there is."""
        wait = self._wait_ms(now)
        self.refused += wait > 0
        return wait

    def _wait_ms(self, now: float) -> int:
        if self.blocked_ms:
            return self.blocked_ms
        if not self.rate:
            return 0
        window = int(now / WINDOW_SECONDS)
        if window > self._window:
            self.spent = max(0.0, self.spent - self.rate * WINDOW_SECONDS * (window - self._window))
            self._window = window
        per_window = self.rate * WINDOW_SECONDS
        if self.spent < per_window:
            return 0
        windows = math.floor(self.spent / per_window)
        return max(1, math.ceil(((self._window + windows) * WINDOW_SECONDS - now) * 1000))

    def spend(self, charge: float) -> None:
        """Take what an accepted operation cost."""
        self.total += charge
        if self.rate:
            self.spent += charge
