"""A lease store whose calls are slow, and fail before or after they took effect: wraps any store."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeVar

from service.errors import Retry

T = TypeVar("T")


class Weather:
    """What storage does to the calls of one host."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.delay_seconds = 0.1
        self.slow_rate = 0.0
        """How many calls take up to 40 s, if nobody gives them up before."""
        self.fault_before = 0.0
        self.fault_after = 0.0
        self.gone = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.calls: dict[str, int] = {}

    async def through(self, kind: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call in this weather; given up after 10 s, as the real edge does."""
        self.calls[kind] = self.calls.get(kind, 0) + 1
        try:
            async with asyncio.timeout(10):
                await self._wait()
                if self.gone or self.random.random() < self.fault_before:
                    raise Retry("storage cannot be reached")
                result = await call()
                await self._wait()
        except TimeoutError:
            raise Retry("storage did not answer") from None
        await self.gate.wait()
        if self.random.random() < self.fault_after:
            raise Retry("storage's answer was lost")
        return result

    async def _wait(self) -> None:
        slow = self.random.random() < self.slow_rate
        await asyncio.sleep(self.random.random() * (20 if slow else self.delay_seconds))
        await self.gate.wait()


class WeatheredStore:
    """A `LeaseStore` in weather."""

    def __init__(self, store: Any, weather: Weather) -> None:
        self._store = store
        self.weather = weather

    async def prepare(self, hub):
        await self.weather.through("prepare", lambda: self._store.prepare(hub))

    async def list(self, partitions):
        return await self.weather.through("list", lambda: self._store.list(partitions))

    async def acquire(self, lease, host):
        holding = await self.weather.through("acquire", lambda: self._store.acquire(lease, host))
        return WeatheredHolding(holding, self.weather)

    async def ask(self, lease, host):
        await self.weather.through("ask", lambda: self._store.ask(lease, host))

    async def read(self, partition):
        return await self.weather.through("read", lambda: self._store.read(partition))

    async def close(self):
        await self._store.close()


class WeatheredHolding:
    """A `Holding` in weather."""

    def __init__(self, holding: Any, weather: Weather) -> None:
        self._holding = holding
        self._weather = weather

    def __getattr__(self, name: str) -> Any:
        return getattr(self._holding, name)

    async def renew(self):
        await self._weather.through("renew", self._holding.renew)

    async def write(self, checkpoint, *, back=False):
        await self._weather.through("write", lambda: self._holding.write(checkpoint, back=back))

    async def raise_epoch(self, above):
        await self._weather.through("raise", lambda: self._holding.raise_epoch(above))

    async def release(self, to=""):
        await self._weather.through("release", lambda: self._holding.release(to))
