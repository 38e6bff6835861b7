"""`backfill --explain`: what would be done, before anything is."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service.jobs.backfill import Backfill
from service.jobs.events import FAULT
from service.jobs.options import BackfillOptions

_SAMPLED_UNITS: Final = 1
_RU_PER_WRITE: Final = 2.0
_RU_PER_KB: Final = 5.5
"""From measured creates of 1 KB with few indexes (5 to 8 RU) and of larger ones; indexing all may triple it."""
_SECONDS_PER_WRITE: Final = 100e-6
"""Of a core, measured for records of 1 KB (docs/jobs.md, "Costs")."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The plan in figures. Records, RU and time are estimates from the first unit."""

    units: int
    files: int
    bytes: int
    records: int
    bytes_per_record: float
    ru: float
    seconds: float
    within_budget: bool
    """Whether the time is that of a budget; else what the tasks' own work takes, and Cosmos may need longer."""
    bounds: dict[str, int]
    empty: int

    def encode(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def text(self) -> str:
        """For people."""
        time = f"{'about' if self.within_budget else 'at least'} {self.seconds:,.0f} s"
        bounds = ", ".join(f"{name} to {at}" for name, at in self.bounds.items()) or "to the end"
        return (
            f"{self.units} units of {self.files} files, {self.bytes:,} bytes, {self.empty} files empty\n"
            f"about {self.records:,} records of {self.bytes_per_record:,.0f} bytes, {self.ru:,.0f} RU at most, {time}\n"
            f"partitions: {bounds}"
        )


def explain(job: Backfill, options: BackfillOptions) -> Explanation:
    """Plan it, and read the first unit for the size of its events."""
    plan = job.plan()
    size = sum(unit.size for unit in plan.units)
    records, body, read = 0, 0, 0
    for unit in plan.units[:_SAMPLED_UNITS]:
        row = job.use(unit, plan, _measure)
        records, body, read = records + row["records"], body + (row["bytes"] or 0), read + unit.size
    all_records = round(records * size / read) if read else 0
    each = body / records if records else 0.0
    ru = all_records * (_RU_PER_WRITE + _RU_PER_KB * each / 1024)
    budget = options.budget
    seconds, within_budget = all_records * _SECONDS_PER_WRITE / job.tasks, False
    if budget.records_per_second:
        seconds, within_budget = all_records / budget.records_per_second, True
    elif budget.ru_per_second:
        seconds, within_budget = ru / budget.ru_per_second, True
    files = sum(len(unit.files) for unit in plan.units)
    return Explanation(
        len(plan.units),
        files,
        size,
        all_records,
        round(each, 1),
        round(ru, 1),
        round(seconds, 1),
        within_budget,
        dict(plan.bounds),
        len(plan.empty),
    )


def _measure(events: DataFrame) -> Row:
    real = events.where(F.col("body_kind") != FAULT)
    return real.agg(F.count("*").alias("records"), F.sum(F.length("body")).alias("bytes")).collect()[0]
