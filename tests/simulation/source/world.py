"""A run of several hosts on the seeded loop: one hub, one storage, and what must hold at every moment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from service.errors import LeaseLost, Retry
from service.source.leases import Checkpoint, CloseReason, Ownership
from service.source.memory_leases import MemoryLeases, MemoryStorage
from service.source.processor import Processor, ProcessorOptions
from tests.simulation.source.hub import SimulatedClient, SimulatedHub
from tests.simulation.source.store import Weather, WeatheredStore


class World:
    """Everything outside the hosts, and the record of what they did."""

    def __init__(self, partitions: int, options: ProcessorOptions | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.random: Random = self.loop.random  # type: ignore[attr-defined]
        self.options = options or ProcessorOptions()
        self.storage = MemoryStorage(self.loop.time, self.options.lease_seconds)
        self.storage.watch = self._watch
        self.hub = SimulatedHub(partitions, self.random)
        self.hosts: dict[str, SimulatedHost] = {}
        self.delivered: dict[str, list[int]] = {each: [] for each in self.hub.partitions}
        self.durable: dict[str, int] = {}
        self.moves: list[tuple[float, str, str]] = []

    def _watch(self, partition: str, row) -> None:
        """Called at every change of a row: a checkpoint never goes back."""
        if row.stored.checkpoint is not None:
            sequence = row.stored.checkpoint.sequence
            assert sequence >= self.durable.get(partition, -1), f"{partition} went back to {sequence}"
            self.durable[partition] = sequence

    def counts(self) -> list[int]:
        """How many partitions each live host holds."""
        return sorted(len(host.processor.statistics().partitions) for host in self.hosts.values())

    @asynccontextmanager
    async def host(self, name: str, **changes) -> AsyncIterator["SimulatedHost"]:
        """A running host, stopped well at the end unless it was killed."""
        host = SimulatedHost(self, name, **changes)
        self.hosts[name] = host
        try:
            yield host
        finally:
            if not host.task.done():
                await host.processor.stop(self.loop.time() + 30)
            self.hosts.pop(name, None)
            await asyncio.wait([host.task])
        if not host.task.cancelled():
            host.task.result()


class SimulatedHost:
    """One host: its processor, its clock and its weather."""

    def __init__(self, world: World, name: str, *, options: ProcessorOptions | None = None, skew: float = 0.0) -> None:
        self.world = world
        self.name = name
        self.weather = Weather(world.random)
        self.store = WeatheredStore(MemoryLeases(world.storage), self.weather)
        self.client = SimulatedClient(world.hub, self.weather.gate)
        self.handlers: list[SimulatedHandler] = []
        self.processor = Processor(
            self.client,
            self.store,
            self._make_handler,
            options or world.options,
            host=name,
            namespace="ns.test",
            hub_name="records",
            group="$default",
            clock=lambda: world.loop.time() + skew,
            random=Random(world.random.random()),
        )
        self.task = asyncio.create_task(self.processor.run(), name=name)

    def _make_handler(self, ownership: Ownership) -> "SimulatedHandler":
        handler = SimulatedHandler(self, ownership)
        self.handlers.append(handler)
        return handler

    async def kill(self) -> None:
        """As SIGKILL: no last word reaches storage."""
        self.weather.gone = True
        self.task.cancel()
        self.world.hosts.pop(self.name, None)
        await asyncio.wait([self.task])

    def suspend(self) -> None:
        """As SIGSTOP, as far as others can see."""
        self.weather.gate.clear()

    def resume(self) -> None:
        self.weather.gate.set()


@dataclass
class SimulatedHandler:
    """Completes what it gets after a while, and checkpoints now and then."""

    host: SimulatedHost
    ownership: Ownership
    taken: list = field(default_factory=list)
    closed: CloseReason | None = None
    busy: bool = False
    fail: Exception | None = None

    @property
    def position(self) -> int:
        return self.taken[-1].sequence if self.taken else self.ownership.start.sequence

    async def open(self):
        assert self.ownership.start is not None
        partition = self.ownership.partition
        self.host.world.moves.append((self.host.world.loop.time(), partition, self.host.name))

    async def events(self, events):
        assert not self.busy
        assert self.closed is None
        self.busy = True
        try:
            if self.fail:
                raise self.fail
            assert self.ownership.holds()
            seen = self.host.world.delivered[self.ownership.partition]
            previous = self.position
            for event in events:
                assert event.sequence == previous + 1, f"{previous} then {event.sequence}"
                previous = event.sequence
                seen.append(event.sequence)
                self.taken.append(event)
            await asyncio.sleep(self.host.world.random.random())
            if self.taken and self.host.world.random.random() < 0.3:
                await self._checkpoint()
        finally:
            self.busy = False

    async def _checkpoint(self):
        last = self.taken[-1]
        with contextlib.suppress(Retry, LeaseLost):
            await self.ownership.write_checkpoint(Checkpoint(last.sequence, last.offset))

    async def close(self, reason, deadline):
        assert not self.busy
        self.closed = reason
        if reason in (CloseReason.SHUTDOWN, CloseReason.HANDED_OVER):
            assert not self.ownership.lost
            if self.taken:
                await self._checkpoint()
        else:
            assert self.ownership.lost

    async def error(self, error):
        assert not self.busy
