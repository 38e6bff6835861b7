"""Who owns which partition, and the checkpoint that goes with it: the words shared by all stores.

A store keeps one Lease per partition. Acquiring or stealing it raises the epoch; only the holder of the newest
epoch can write the checkpoint. `Ownership` is one host's holding of one partition, from acquisition to loss.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum

from service.clock import Clock
from service.source.events import Hub, PartitionId


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The frontier made durable: everything up to and including `sequence` is completed."""

    sequence: int
    """-1: nothing yet."""
    offset: str | None = None
    """Opaque. None where only the sequence is known."""
    done_ahead: str | None = None
    """The completed items beyond the frontier, as `flow/completion_map.py` writes them. Opaque to stores."""


@dataclass(slots=True)
class Ownership:
    """One ownership of one partition by this host. Everything taken under it carries it along."""

    hub: Hub
    partition: PartitionId
    epoch: int
    start: Checkpoint | None
    """What was durable when the partition was acquired; None where it never had a checkpoint."""
    deadline: float
    """By `clock`: until then the lease surely holds, counted from when the renewal was sent. The processor moves it."""
    clock: Clock
    write_checkpoint: Callable[[Checkpoint], Awaitable[None]]
    """Durable on return. Raises LeaseLost when fenced off, Retry when storage failed."""
    lost: bool = False
    last_enqueued: int = -1
    """Newest sequence known to be in the hub's partition, for the lag."""
    reopened: int = field(default=0)
    """How often the watchdog had to reopen the receiver."""

    def holds(self) -> bool:
        """Whether something may still be sent to Cosmos for this partition."""
        return not self.lost and self.clock() < self.deadline


class CloseReason(Enum):
    """Why a partition's handler is closed."""

    LOST = "lost"
    """Another host has it: purge, write nothing."""
    SHUTDOWN = "shutdown"
    """This process ends: drain and checkpoint within the deadline."""
    HANDED_OVER = "handed over"
    """Another host asked for it: drain and checkpoint within the deadline."""
    ERROR = "error"
    """The handler or receiver failed for good: purge; the partition is opened anew after a back-off."""
