"""What the processor needs of an event hub: its description, its partitions', and epoch receivers.

`event_hubs.py` keeps this protocol with azure-eventhub; simulations keep it in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from service.errors import SluiceError
from service.source.events import Event, PartitionId
from service.source.start import Position


@dataclass(frozen=True, slots=True)
class HubDescription:
    """A hub as it describes itself."""

    created_ms: int
    partitions: tuple[PartitionId, ...]


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition as it describes itself. In one that never had an event `begin` is 0 and `last` is -1."""

    begin: int
    """Sequence of the oldest event still kept."""
    last: int
    """Sequence of the newest event."""
    last_offset: str
    last_enqueued_ms: int
    empty: bool

    @property
    def first_kept(self) -> int:
        """Sequence of the first event that can still be read; the next one to come where none can."""
        return self.last + 1 if self.empty else self.begin


class Stolen(SluiceError):
    """Another receiver took the partition, or holds it with a higher epoch."""

    def __init__(self, message: str, epoch: int | None = None) -> None:
        super().__init__(message)
        self.epoch = epoch
        """The other's epoch, where the service named it."""


@dataclass(frozen=True, slots=True)
class After:
    """Behind this event: by offset where it is known, which costs the service less, else by sequence."""

    sequence: int
    offset: str | None = None


ReadFrom = After | Position


class Receiver(Protocol):
    """One epoch receiver of one partition. Opened by the first `receive`, closed by `close` and by any error."""

    async def receive(self) -> Sequence[Event]:
        """The next events in order, or none after the set wait. Raises Stolen, Retry or SetupFault."""

    @property
    def misfetches(self) -> bool:
        """Whether it fetches far from what the events' size allows, so that another should be opened in its place."""

    async def close(self) -> None:
        """Stop receiving. What was received and not asked for is dropped."""


class HubClient(Protocol):
    """One hub, read for one consumer group."""

    async def describe(self) -> HubDescription:
        """Raises Retry or SetupFault."""

    async def describe_partition(self, partition: PartitionId) -> PartitionDescription:
        """Raises Retry or SetupFault."""

    def receiver(self, partition: PartitionId, epoch: int, read_from: ReadFrom) -> Receiver:
        """A receiver, not opened yet."""

    async def close(self) -> None:
        """Give back connections."""
