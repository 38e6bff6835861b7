"""The closing pass: deletes that the live consumer did while older records were being written.

A delete leaves nothing behind that a guard could compare with. So a document that the consumer deleted (by an event
beyond the bound) comes back when its history is written afterwards. Once all units are done, the deletes beyond the
bound are done again, guarded as ever: what is newer stays. The same goes for a unit that could only be done after later
ones, because a file of it had to be mended first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service.jobs.outcomes import Tally, added_up
from service.jobs.plan import Plan, Unit
from service.jobs.records import Decoding, latest, with_records
from service.jobs.source import Source
from service.jobs.writer import Writing, write
from service.sink.record import Operation


@dataclass(slots=True)
class Closing:
    """What the pass has done."""

    tally: Tally = field(default_factory=Tally)
    unseen: dict[str, int] = field(default_factory=dict)
    """By partition: how many events beyond the bound could not be looked at yet, since the source has none of them."""


@dataclass(frozen=True, slots=True)
class Closer:
    """Does deletes again."""

    source: Source
    plan: Plan
    decoding: Decoding
    writing: Writing
    tasks: int

    def close(self, late: Sequence[Unit], window_bytes: int) -> Closing:
        """Those beyond the bounds; and those of `late`, units that were done before one that precedes them was."""
        found = Closing()
        if not self.decoding.documents.delete:
            return found
        for unit in late:
            found.tally.merge(self.source.use(unit, self.plan.bounds, self._delete))
        if self.plan.bounds:
            self._beyond(found, window_bytes)
        return found

    def _beyond(self, found: Closing, window_bytes: int) -> None:
        bounds = self.plan.bounds
        newest = self.source.newest()
        beyond = {name: last for name, last in newest.items() if last > bounds.get(name, -1)}
        if not beyond:
            return
        seen: dict[str, int] = {}
        for unit in self.source.beyond(self.plan, window_bytes).units:
            ends, tally = self.source.use(unit, beyond, self._delete_later)
            seen.update({name: max(last, seen.get(name, -1)) for name, last in ends.items()})
            found.tally.merge(tally)
        left = {name: last - seen.get(name, bounds.get(name, -1)) for name, last in beyond.items()}
        found.unseen = {name: count for name, count in left.items() if count}

    def _delete_later(self, events: DataFrame) -> tuple[dict[str, int], Tally]:
        """The last sequence of each partition, and what became of the deletes beyond the bounds."""
        later = events.transform(_after, self.plan.bounds).persist()
        try:
            ends = later.groupBy("partition").agg(F.max("sequence").alias("last")).collect()
            return {row["partition"]: row["last"] for row in ends}, self._delete(later)
        finally:
            later.unpersist()

    def _delete(self, events: DataFrame) -> Tally:
        deletes = (
            events.transform(with_records, self.decoding, narrow=False)
            .where(F.col("operation") == Operation.DELETE.value)
            .transform(latest, self.tasks)
        )
        return added_up(deletes.transform(write, self.writing))


def _after(events: DataFrame, bounds: Mapping[str, int]) -> DataFrame:
    table = F.create_map(*(F.lit(value) for pair in bounds.items() for value in pair))
    return events.where(F.col("sequence") > F.coalesce(F.try_element_at(table, F.col("partition")), F.lit(-1)))
