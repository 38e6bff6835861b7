"""An event hub in memory that keeps the rules of epochs, delays its answers, and fails when told."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from service.errors import Retry
from service.source.events import Event, PartitionId
from service.source.hub import After, HubDescription, PartitionDescription, Stolen
from service.source.start import AtEdge, AtOffset, AtSequence, AtTime


@dataclass
class Partition:
    events: list[Event] = field(default_factory=list)
    first: int = 0
    """Sequence of the oldest kept event."""
    receiver: "SimulatedReceiver | None" = None
    frozen: bool = False
    waiting: list[asyncio.Event] = field(default_factory=list)

    @property
    def last(self) -> int:
        return len(self.events) - 1


class SimulatedHub:
    """The service: shared by all hosts of a run."""

    def __init__(self, partitions: int, random: Random) -> None:
        self.partitions = {PartitionId(str(each)): Partition() for each in range(partitions)}
        self.random = random
        self.namespace = "ns.test"
        self.created_ms = 1_700_000_000_000
        self.fault_rate = 0.0
        self.delay_seconds = 0.2
        self.gone = False
        self.opened: list[tuple[PartitionId, int]] = []

    def publish(self, partition: int | str, count: int = 1, at_ms: int | None = None) -> None:
        part = self.partitions[PartitionId(str(partition))]
        now_ms = int(asyncio.get_running_loop().time() * 1000) if at_ms is None else at_ms
        for _ in range(count):
            sequence = len(part.events)
            part.events.append(Event(sequence, str(sequence * 100), now_ms, b"{}", {}))
        for waiting in part.waiting:
            waiting.set()
        part.waiting.clear()

    def drop(self) -> None:
        """Break every connection."""
        for part in self.partitions.values():
            if part.receiver:
                part.receiver.fail(Retry("the connection was dropped"))


class SimulatedClient:
    """One host's client of it. `gate` stands open unless the host is suspended."""

    def __init__(self, hub: SimulatedHub, gate: asyncio.Event | None = None) -> None:
        self._hub = hub
        self.namespace = hub.namespace
        self.gate = gate or _open()

    async def describe(self) -> HubDescription:
        await self.call()
        return HubDescription(self._hub.created_ms, tuple(self._hub.partitions))

    async def describe_partition(self, partition: PartitionId) -> PartitionDescription:
        await self.call()
        part = self._hub.partitions[partition]
        newest = part.events[-1] if part.events else None
        return PartitionDescription(
            part.first,
            part.last,
            newest.offset if newest else "-1",
            newest.enqueued_ms if newest else 0,
            part.first > part.last,
        )

    def receiver(self, partition: PartitionId, epoch: int, read_from) -> "SimulatedReceiver":
        return SimulatedReceiver(self, self._hub, partition, epoch, read_from)

    async def close(self) -> None:
        pass

    async def call(self) -> None:
        """A round trip, which may fail."""
        await asyncio.sleep(self._hub.random.random() * self._hub.delay_seconds)
        await self.gate.wait()
        if self._hub.gone or self._hub.random.random() < self._hub.fault_rate:
            raise Retry("the hub cannot be reached")


class SimulatedReceiver:
    """Keeps the rules: an equal or higher epoch takes over, a lower one is refused."""

    misfetches = False

    def __init__(self, client: SimulatedClient, hub: SimulatedHub, partition: PartitionId, epoch: int, read_from):
        self._client = client
        self._hub = hub
        self._id = partition
        self._part = hub.partitions[partition]
        self._epoch = epoch
        self._read_from = read_from
        self._next: int | None = None
        self._error: Exception | None = None
        self._woken = asyncio.Event()

    async def receive(self) -> Sequence[Event]:
        if self._next is None:
            await self._attach()
        assert self._next is not None
        part = self._part
        if self._next > part.last or part.frozen:
            part.waiting.append(self._woken)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._woken.wait()
            self._woken.clear()
        await self._client.gate.wait()
        if self._error:
            raise self._error
        if part.frozen:
            return []
        if self._hub.random.random() < self._hub.fault_rate:
            self.fail(Retry("the link was detached"))
            raise Retry("the link was detached")
        start = max(self._next, part.first)
        batch = part.events[start : start + self._hub.random.randint(1, 20)]
        self._next = start + len(batch)
        return batch

    async def close(self) -> None:
        if self._part.receiver is self:
            self._part.receiver = None

    def fail(self, error: Exception) -> None:
        self._error = error
        if self._part.receiver is self:
            self._part.receiver = None
        self._woken.set()

    async def _attach(self) -> None:
        await self._client.call()
        there = self._part.receiver
        if there is not None and there._epoch > self._epoch:
            raise Stolen("refused", there._epoch)
        if there is not None:
            there.fail(Stolen("taken over"))
        self._part.receiver = self
        self._hub.opened.append((self._id, self._epoch))
        self._next = self._seek()

    def _seek(self) -> int:  # noqa: PLR0911 - a table
        match self._read_from:
            case After(offset="-1") | AtEdge("earliest"):
                return self._part.first
            case After(offset=str(offset)):
                return int(offset) // 100 + 1
            case After(sequence=sequence):
                return sequence + 1
            case AtSequence(sequence):
                return sequence
            case AtOffset(offset):
                return int(offset) // 100
            case AtTime(ms):
                return next((e.sequence for e in self._part.events if e.enqueued_ms >= ms), self._part.last + 1)
            case _:
                return self._part.last + 1


def _open() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate
