"""The sink of a dry run (COSMOS_WRITE=no): counts what would be done, and does nothing."""

import asyncio
from collections.abc import Sequence

from service.sink.outcome import Item, Outcome
from service.sink.record import Operation, Record
from service.sink.routing import PartitionKeyDefinition
from service.sink.statistics import Counts, SinkStatistics
from service.source.leases import Ownership

_OUTCOMES = {
    Operation.UPSERT: Outcome.COMMITTED,
    Operation.DELETE: Outcome.COMMITTED,
    Operation.DROP: Outcome.DROPPED,
    Operation.POISON: Outcome.DEAD_LETTERED,
}


class DryRunSink:
    """Completes every record at once, as what it would most likely become."""

    def __init__(self, definition: PartitionKeyDefinition) -> None:
        self.definition = definition
        self._counts = Counts()

    def submit(self, item: Item, records: Sequence[Record]) -> None:
        """Count them."""
        for record in records:
            outcome = _OUTCOMES[record.operation]
            self._counts.outcomes[outcome] += 1
            if outcome is Outcome.DEAD_LETTERED:
                self._counts.buried(record.reason)
            item.settle(outcome)

    def purge(self, ownership: Ownership) -> None:
        """Nothing is kept."""

    def flush(self) -> None:
        """Nothing waits."""

    def set_ru_limit(self, ru_per_second: float) -> None:
        """Nothing is spent."""

    def statistics(self) -> SinkStatistics:
        """What would have been done."""
        outcomes = self._counts.outcomes
        return SinkStatistics(
            committed=outcomes[Outcome.COMMITTED],
            superseded=0,
            dropped=outcomes[Outcome.DROPPED],
            dead_lettered=outcomes[Outcome.DEAD_LETTERED],
            reasons=dict(self._counts.reasons),
            retried={},
            requests=0,
            waited_seconds=0.0,
            ru=0.0,
            queued=0,
            in_flight=0,
            ranges=0,
            paced={},
            bulk=True,
            fault=None,
        )

    async def run(self) -> None:
        """Until cancelled."""
        await asyncio.Event().wait()
