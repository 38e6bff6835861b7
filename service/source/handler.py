"""What takes the events: the boundary to the flow."""

from collections.abc import Callable, Sequence
from typing import Protocol

from service.source.events import Event
from service.source.leases import CloseReason, Ownership


class PartitionHandler(Protocol):
    """The events of one ownership of one partition. Never called twice at once; `close` ends it in every case.

    A call of `events` that is waiting is cancelled when the partition is to be closed; what it had not taken is read
    again later.
    """

    async def open(self) -> None:
        """Before the first events."""

    async def events(self, events: Sequence[Event]) -> None:
        """Take them. Returns when there is room for more; reading waits meanwhile."""

    async def close(self, reason: CloseReason, deadline: float) -> None:
        """SHUTDOWN, HANDED_OVER: drain and write the last checkpoint. LOST, ERROR: drop everything.

        Must return by `deadline`, in the event loop's time; it is cancelled shortly after.
        """

    async def error(self, error: Exception) -> None:
        """The receiver failed, and is opened again after a back-off."""


HandlerFactory = Callable[[Ownership], PartitionHandler]
