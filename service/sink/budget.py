"""COSMOS_RULIMIT: request units per second that this replica may spend.

A leaky bucket (aiolimiter) of a tenth of a second, so that what it lets by at once is 1 % of ten seconds. What costs
more than the bucket holds is paid in parts; what was expected wrongly is paid with the next.
"""

import asyncio
from typing import Final

from aiolimiter import AsyncLimiter

_PERIOD_SECONDS: Final = 0.1
# Its own wait ends on the instant that suffices, give or take a rounding, and begins again for the rest: on a clock
# that stands still meanwhile, for ever. Looking at times loses nothing, as the bucket holds twenty of them.
_LOOK_SECONDS: Final = 0.005


class Budget:
    """Pays for batches before they go. Without a limit it costs nothing."""

    def __init__(self, ru_per_second: float) -> None:
        self.limited: Final = ru_per_second > 0
        self._period_ru: Final = ru_per_second * _PERIOD_SECONDS
        self._limiter = AsyncLimiter(self._period_ru, _PERIOD_SECONDS) if self.limited else None
        self._turn = asyncio.Lock()
        self._owed = 0.0

    def batch_limit(self, most: int, unit_cost: float) -> int:
        """How many operations a batch may have: what a tenth of a second pays for; one while no price is known."""
        if not self.limited:
            return most
        return max(1, min(most, int(self._period_ru / unit_cost))) if unit_cost else 1

    async def pay(self, expected: float) -> None:
        """Wait until so much may be spent. Batches pay one after another, in the order they came."""
        if self._limiter is None:
            return
        async with self._turn:
            owed = expected + self._owed
            self._owed = min(0.0, owed)  # more was paid before than was due
            while owed > 0:
                part = min(owed, self._period_ru)
                while not self._limiter.has_capacity(part):  # noqa: ASYNC110 - the limiter has no event to wait for
                    await asyncio.sleep(_LOOK_SECONDS)
                await self._limiter.acquire(part)
                owed -= part

    def settle(self, expected: float, charge: float) -> None:
        """A batch cost `charge` instead of what was paid."""
        if self._limiter is not None:
            self._owed += charge - expected
