"""What became of a record, and what a record's event has to offer the sink."""

from enum import Enum
from typing import Protocol

from service.source.events import Event
from service.source.leases import Ownership


class Outcome(Enum):
    """The four ways in which a record is completed."""

    COMMITTED = "committed"
    SUPERSEDED = "superseded"
    """Not written, because a newer one is there."""
    DROPPED = "dropped"
    """By the user's own transform."""
    DEAD_LETTERED = "dead-lettered"


class Item(Protocol):
    """An event on its way, as the sink sees it: the flow's WorkItem, or a row of a job."""

    event: Event
    ownership: Ownership
    taken_at: float
    """Loop time of its arrival; waits are counted from here."""

    def settle(self, outcome: Outcome) -> None:
        """One record of this event is completed, durably. Called once for each of its records."""
