"""The closing pass: deletes that the live consumer did while older records were being written.

A delete leaves nothing behind that a guard could compare with. So a document that the consumer deleted (by an event
beyond the bound) comes back when its history is written afterwards. Once all units are done, the deletes beyond the
bound are done again, guarded as ever: what is newer stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service.jobs.outcomes import Tally, added_up
from service.jobs.plan import Plan
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


def close(source: Source, plan: Plan, decoding: Decoding, writing: Writing, tasks: int, window_bytes: int) -> Closing:
    """Do the deletes beyond the bounds again."""
    found = Closing()
    if not plan.bounds or not decoding.documents.delete:
        return found
    newest = source.newest()
    beyond = {name: last for name, last in newest.items() if last > plan.bounds.get(name, -1)}
    if not beyond:
        return found
    seen: dict[str, int] = {}
    for unit in source.beyond(plan, window_bytes).units:
        with source.reading(unit, beyond) as events:
            later = events.transform(_after, plan.bounds).persist()
            ends = later.groupBy("partition").agg(F.max("sequence").alias("last")).collect()
            seen.update({row["partition"]: max(row["last"], seen.get(row["partition"], -1)) for row in ends})
            deletes = (
                later.transform(with_records, decoding, narrow=False)
                .where(F.col("operation") == Operation.DELETE.value)
                .transform(latest, tasks)
            )
            found.tally.merge(added_up(deletes.transform(write, writing)))
            later.unpersist()
    for name, last in beyond.items():
        found.unseen[name] = last - seen.get(name, plan.bounds.get(name, -1))
    found.unseen = {name: count for name, count in found.unseen.items() if count}
    return found


def _after(events: DataFrame, bounds: Mapping[str, int]) -> DataFrame:
    table = F.create_map(*(F.lit(value) for pair in bounds.items() for value in pair))
    return events.where(F.col("sequence") > F.coalesce(F.try_element_at(table, F.col("partition")), F.lit(-1)))
