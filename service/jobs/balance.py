"""The balance: of all records that came in, what became of each, by partition and hour.

in = committed + superseded + dropped + dead-lettered + missing. The left side is counted before anything is joined; so
a record that the comparison lost or counted twice shows as a balance that does not close.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service.jobs.judge import State
from service.sink.record import Operation

_HOUR_MS: Final = 3_600_000
_COMMITTED: Final = [state.value for state in (State.OK, State.DELETED, State.EXPIRED)]
_PLACE: Final = ("incarnation", "partition", "sequence", "index")
CLASSES: Final = ("committed", "superseded", "dropped", "dead_lettered", "missing")


@dataclass(frozen=True, slots=True)
class Balance:
    """One partition's hour."""

    partition: str
    hour: int
    """Its beginning, in ms since 1970."""
    came_in: int
    committed: int
    superseded: int
    dropped: int
    dead_lettered: int
    missing: int
    """Missing, stale or different documents, and poison without a dead letter."""

    @property
    def closes(self) -> bool:
        """Whether every record is accounted for exactly once."""
        return self.came_in == sum(int(getattr(self, name)) for name in CLASSES)

    def encode(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "closes": self.closes}


def balances(records: DataFrame, judged: DataFrame) -> list[Balance]:
    """By partition and hour; a year of a hub with 32 partitions has 280,320 of them, of 100 bytes each."""
    hour = (F.floor(F.col("enqueued") / _HOUR_MS) * _HOUR_MS).alias("hour")
    came_in = records.groupBy("partition", hour).agg(F.count("*").alias("came_in")).collect()
    counts = [F.count_if(F.col("class") == name).alias(name) for name in CLASSES]
    became = records.transform(_classed, judged).groupBy("partition", hour).agg(*counts).collect()
    known = {(row["partition"], row["hour"]): row.asDict() for row in became}
    none = dict.fromkeys(CLASSES, 0)
    return [
        Balance(**(none | known.get((row["partition"], row["hour"]), {}) | row.asDict()))
        for row in sorted(came_in, key=lambda row: (row["hour"], row["partition"]))
    ]


def _classed(records: DataFrame, judged: DataFrame) -> DataFrame:
    """What became of each record."""
    known = judged.where(F.col("stamp").isNotNull()).select(
        "key", "id", "state", *(F.col(f"stamp.{name}").alias(f"last_{name}") for name in _PLACE)
    )
    is_last = F.lit(True)
    for name in _PLACE:
        is_last = is_last & (F.col(name) == F.col(f"last_{name}"))
    state, operation = F.col("state"), F.col("operation")
    outcome = (
        F.when(operation == Operation.DROP.value, "dropped")
        .when(F.col("letter"), "dead_lettered")
        .when(operation == Operation.POISON.value, "missing")
        .when(state.isNull(), None)
        .when(~is_last, "superseded")
        .when(state.isin(*_COMMITTED), "committed")
        .when(state == State.NEWER.value, "superseded")
        .otherwise("missing")
    )
    return records.join(known, ["key", "id"], "left").withColumn("class", outcome)
