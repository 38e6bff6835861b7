"""Leases in memory: for simulations and for the dry run, where nothing may be written.

`MemoryStorage` stands for the storage account; each host has its own `MemoryLeases` on it. All rules of the blob
stores hold: expiry by the storage's clock, one winner, epochs that only rise, fenced checkpoints.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from service.clock import Clock
from service.errors import LeaseLost
from service.source.events import Hub, PartitionId
from service.source.leases import Checkpoint
from service.source.store import NOTHING_STORED, Lease, Stored


@dataclass(slots=True)
class Row:
    """What the storage keeps of one partition."""

    owner: str = ""
    token: int = 0
    expires: float = 0.0
    epoch: int = 0
    moved: float | None = None
    wanted_by: str = ""
    wanted_at: float = 0.0
    stored: Stored = NOTHING_STORED


@dataclass(slots=True)
class MemoryStorage:
    """The account that all hosts share."""

    clock: Clock
    lease_seconds: float = 30.0
    rows: dict[PartitionId, Row] = field(default_factory=dict)
    tokens: "count[int]" = field(default_factory=lambda: count(1))
    incarnation: int | None = None
    watch: Callable[[PartitionId, Row], None] | None = None
    """Told of every checkpoint written, for tests that check them."""

    def live(self, row: Row) -> bool:
        """Whether somebody holds it now."""
        return bool(row.owner) and self.clock() < row.expires


class MemoryLeases:
    """A `LeaseStore` on a `MemoryStorage`."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage

    async def prepare(self, hub: Hub) -> None:
        """Remember the life of the hub, to stamp checkpoints with."""
        await asyncio.sleep(0)
        self._storage.incarnation = hub.incarnation

    async def list(self, partitions: Sequence[PartitionId]) -> Sequence[Lease]:
        """The table, as of now."""
        await asyncio.sleep(0)
        return [self._lease(partition) for partition in partitions]

    async def acquire(self, lease: Lease, host: str) -> "MemoryHolding":
        """Take it, unless it changed hands since the row was listed."""
        await asyncio.sleep(0)
        storage = self._storage
        row = storage.rows.setdefault(lease.partition, Row())
        if storage.live(row) and (not lease.live or lease.version != str(row.token)):
            raise LeaseLost(lease.partition, "another host was faster")
        now = storage.clock()
        if storage.live(row) or row.wanted_by == host:
            row.moved = now
        row.owner, row.token, row.expires = host, next(storage.tokens), now + storage.lease_seconds
        row.epoch, row.wanted_by = row.epoch + 1, ""
        return MemoryHolding(storage, lease.partition, row.token, row.epoch, row.stored)

    async def ask(self, lease: Lease, host: str) -> None:
        """Note who asks, unless it changed hands or another asks already."""
        await asyncio.sleep(0)
        row = self._storage.rows[lease.partition]
        if str(row.token) == lease.version and row.wanted_by in ("", host):
            row.wanted_by, row.wanted_at = host, self._storage.clock()

    async def read(self, partition: PartitionId) -> Stored | None:
        """What is stored."""
        await asyncio.sleep(0)
        row = self._storage.rows.get(partition)
        return row.stored if row else None

    async def close(self) -> None:
        """Nothing is held."""

    def _lease(self, partition: PartitionId) -> Lease:
        row = self._storage.rows.get(partition)
        if row is None:
            return Lease(partition)
        now = self._storage.clock()
        return Lease(
            partition,
            row.owner,
            self._storage.live(row),
            row.epoch,
            str(row.token),
            None if row.moved is None else now - row.moved,
            row.wanted_by,
            now - row.wanted_at,
        )


class MemoryHolding:
    """One acquisition in memory."""

    def __init__(self, storage: MemoryStorage, partition: PartitionId, token: int, epoch: int, stored: Stored) -> None:
        self.partition = partition
        self.epoch = epoch
        self.stored = stored
        self.wanted_by = ""
        self._storage = storage
        self._token = token

    async def renew(self) -> None:
        """Also after it ran out, as long as nobody took it."""
        await asyncio.sleep(0)
        row = self._row()
        row.expires = self._storage.clock() + self._storage.lease_seconds
        self.wanted_by = row.wanted_by

    async def write(self, checkpoint: Checkpoint, *, back: bool = False) -> None:
        """Fenced by the token, never lower."""
        await asyncio.sleep(0)
        row = self._row()
        old = row.stored.checkpoint
        if old is None or back or checkpoint.sequence >= old.sequence:
            row.stored = self.stored = Stored(checkpoint, self._storage.incarnation)
            if self._storage.watch:
                self._storage.watch(self.partition, row)

    async def raise_epoch(self, above: int) -> None:
        """Keep the holding, count on."""
        await asyncio.sleep(0)
        row = self._row()
        row.epoch = self.epoch = max(row.epoch, above) + 1

    async def release(self, to: str = "") -> None:
        """Free from now on."""
        await asyncio.sleep(0)
        row = self._row()
        row.owner, row.token, row.expires = "", 0, 0.0
        row.wanted_by, row.wanted_at = to, self._storage.clock()

    def _row(self) -> Row:
        """Our row, if it still is."""
        row = self._storage.rows.get(self.partition)
        if row is None or row.token != self._token:
            raise LeaseLost(self.partition, f"{row.owner if row and row.owner else 'nobody'} has it now")
        return row
