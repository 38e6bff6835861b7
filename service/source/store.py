"""What a store of leases must do: the protocol that lease blobs, ownership blobs and memory all keep.

A store knows one hub and one consumer group. `list` gives the table of leases with ages by the storage
service's own clock, so hosts need not agree on the time. `acquire` makes a `Holding`; from then on only that holding
can write the partition's checkpoint, until another acquisition, by whatever host, has fenced it off.

Every call raises LeaseLost when another was faster, and Retry or SetupFault when storage failed; after these two
the call may or may not have taken effect, and calling again is safe.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from service.source.events import Hub, PartitionId
from service.source.leases import Checkpoint


@dataclass(frozen=True, slots=True)
class Lease:
    """One row of the table: a partition and who has it."""

    partition: PartitionId
    owner: str = ""
    """The host that has it, or had it last where `live` is false. Empty: nobody, it was let go."""
    live: bool = False
    """Whether the owner's hold has not run out, by the storage service's clock."""
    epoch: int = -1
    version: str = ""
    """The store's own mark of this state (an ETag). Empty: not in storage yet."""
    moved_seconds: float | None = None
    """How long ago it went from one live host to another; None where it never did, or nobody wrote it down."""
    wanted_by: str = ""
    """The host that asked for it, or for which it was let go."""
    wanted_seconds: float = 0.0
    """How long ago that was."""
    asks: bool = True
    """Whether the owner answers when asked: false for processors that are not ours."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A checkpoint as it lies in storage, with the life of the hub it belongs to."""

    checkpoint: Checkpoint | None
    incarnation: int | None
    """None: not written down, since another program wrote it."""


NOTHING_STORED = Stored(None, None)


class Holding(Protocol):
    """One acquisition of one partition. Becomes useless, and says LeaseLost, once another was made."""

    @property
    def partition(self) -> PartitionId:
        """The partition held."""

    @property
    def epoch(self) -> int:
        """The owner level to read with."""

    @property
    def stored(self) -> Stored:
        """What is durable, as far as this holding knows."""

    @property
    def wanted_by(self) -> str:
        """The host that asked for this partition, as far as this holding has seen."""

    async def renew(self) -> None:
        """Hold on for another lease duration, counted by storage from when it gets the request."""

    async def write(self, checkpoint: Checkpoint, *, back: bool = False) -> None:
        """Make it durable. A lower sequence than the stored one changes nothing, unless `back` says it shall."""

    async def raise_epoch(self, above: int) -> None:
        """Make `epoch` higher than `above`, durably, without letting go."""

    async def release(self, to: str = "") -> None:
        """Let go, so that another can take it at once; `to` names the host that asked."""


class LeaseStore(Protocol):
    """The leases and checkpoints of one consumer group of one hub."""

    async def prepare(self, hub: Hub) -> None:
        """Make what is missing. Raises BadSettings when what is there belongs to another hub or layout."""

    async def list(self, partitions: Sequence[PartitionId]) -> Sequence[Lease]:
        """A row for each of these partitions, in their order."""

    async def acquire(self, lease: Lease, host: str) -> Holding:
        """Take the partition of this row: from nobody, or from a live owner, as the row says."""

    async def ask(self, lease: Lease, host: str) -> None:
        """Ask the live owner to hand it over. Best effort."""

    async def read(self, partition: PartitionId) -> Stored | None:
        """What is stored, without taking it; None where there is nothing."""

    async def close(self) -> None:
        """Give back connections."""
