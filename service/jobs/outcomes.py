"""What became of records, as rows that come back from the tasks that wrote them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812 - as above

COMMITTED, SUPERSEDED, DEAD_LETTERED = "committed", "superseded", "dead-lettered"
LEFT_ALONE: Final = "left alone"
"""A document without a stamp of ours is there: backfill does not touch it."""
CHANGED: Final = "changed since"
"""Repair: the document is not the one that was seen any more."""
LEFT_OUT: Final = "left out"
"""A file that could not be read; `detail` says which and why."""
EXPIRED, DROPPED = "expired", "dropped"

OUTCOMES: Final = T.StructType(
    [
        T.StructField("partition", T.StringType(), nullable=False),
        T.StructField("outcome", T.StringType(), nullable=False),
        T.StructField("detail", T.StringType(), nullable=False),
        T.StructField("records", T.LongType(), nullable=False),
        T.StructField("ru", T.DoubleType(), nullable=False),
    ]
)
"""So many records of a partition had this outcome; the RU stand in rows of their own, without records."""


@dataclass(slots=True)
class Tally:
    """Outcomes added up."""

    records: Counter[str] = field(default_factory=Counter)
    partitions: dict[str, Counter[str]] = field(default_factory=dict)
    ru: float = 0.0
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows of OUTCOMES."""
        for row in rows:
            self.ru += row["ru"]
            if row["outcome"] == LEFT_OUT:
                name, _, why = row["detail"].partition("\n")
                self.left_out[name] = why
            elif row["records"]:
                self.records[row["outcome"]] += row["records"]
                self.partitions.setdefault(row["partition"], Counter())[row["outcome"]] += row["records"]

    def merge(self, other: "Tally") -> None:
        """Add another's."""
        self.records.update(other.records)
        for partition, counts in other.partitions.items():
            self.partitions.setdefault(partition, Counter()).update(counts)
        self.ru += other.ru
        self.left_out.update(other.left_out)

    def encode(self) -> dict[str, Any]:
        """For JSON."""
        partitions = {name: dict(counts) for name, counts in sorted(self.partitions.items())}
        return {
            "records": dict(self.records),
            "ru": round(self.ru, 2),
            "partitions": partitions,
            "left_out": self.left_out,
        }

    @classmethod
    def decode(cls, found: Mapping[str, Any]) -> "Tally":
        """From JSON."""
        partitions = {name: Counter(counts) for name, counts in found["partitions"].items()}
        return cls(Counter(found["records"]), partitions, found["ru"], dict(found["left_out"]))


def outcome_batch(rows: Mapping[tuple[str, str, str], int], ru: float = 0.0) -> pa.RecordBatch:
    """Rows from counts by partition, outcome and detail."""
    counted = [(*place, records, 0.0) for place, records in rows.items()] + ([("", "", "", 0, ru)] if ru else [])
    columns = list(zip(*counted, strict=True)) or [()] * 5
    kinds = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.float64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=OUTCOMES.fieldNames())


def added_up(outcomes: DataFrame) -> Tally:
    """Run the job behind these rows. Their sum is small: partitions times outcomes, and the files left out."""
    tally = Tally()
    summed = outcomes.groupBy("partition", "outcome", "detail").agg(
        F.sum("records").alias("records"), F.sum("ru").alias("ru")
    )
    tally.add(row.asDict() for row in summed.collect())
    return tally
