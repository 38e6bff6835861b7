"""What a processor tells about itself: frozen snapshots, for `/status` and the metrics."""

from dataclasses import dataclass

from service.source.events import PartitionId
from service.source.leases import Checkpoint


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """One held partition."""

    id: PartitionId
    epoch: int
    checkpoint: Checkpoint | None
    """The last one written, or found when the partition was taken."""
    last_enqueued: int
    reopened: int
    """How often the watchdog replaced the receiver."""
    skipped: int
    """Events that retention took before they were read."""
    minutes_to_loss: float | None
    """Until retention takes the first event that is not checkpointed; None while nothing goes."""
    paused: bool
    """Whether intake waits because the lease could not be renewed in time."""

    @property
    def lag(self) -> int:
        """Events in the hub that are not checkpointed."""
        return max(0, self.last_enqueued - (self.checkpoint.sequence if self.checkpoint else -1))


@dataclass(frozen=True, slots=True)
class ProcessorStatistics:
    """One host."""

    host: str
    partitions: tuple[PartitionStatistics, ...]
    partitions_in_hub: int
    taken: int
    """Partitions acquired since the start."""
    lost: int
    """Partitions that another host took."""
    handed_over: int
    """Partitions given away on request."""
    scans: int
    storage_fault: str
    """What is wrong with blob storage now; empty where nothing is."""
    hub_fault: str
    """What is wrong with the hub now; empty where nothing is."""
    last_fault: str
    """The latest fault, also when it is over."""
