"""The comparison: expected documents joined with actual ones, each pair judged, suspects read again."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812 - as above

from service.jobs.cosmos_reader import STAMP, STAMP_ARROW, CosmosReader, describe
from service.jobs.judge import Actual, Expected, Seen, State, judge
from service.jobs.records import WRITES, latest
from service.sink.stamp import Stamp

JUDGED: Final = T.StructType(
    [
        T.StructField("key", T.StringType(), nullable=False),
        T.StructField("id", T.StringType(), nullable=False),
        T.StructField("state", T.StringType(), nullable=False),
        T.StructField("operation", T.StringType()),
        T.StructField("stamp", STAMP),
        T.StructField("hash", T.StringType()),
        T.StructField("expires", T.LongType()),
        T.StructField("dead", T.BooleanType()),
        T.StructField("found_stamp", STAMP),
        T.StructField("found_hash", T.StringType()),
        T.StructField("etag", T.StringType()),
    ]
)
"""A document and its state: what was expected (stamp, hash), and what was found."""
_KINDS: Final = {
    "state": pa.string(),
    "found_stamp": STAMP_ARROW,
    "found_hash": pa.string(),
    "etag": pa.string(),
}


def expected_documents(records: DataFrame, tasks: int, *, letters: bool) -> DataFrame:
    """The last record of each document that is no dead letter; the last of all where all are. `letters`: whether
    there is any, else the search for them is saved.
    """
    marked = records.where(F.col("operation").isin(*WRITES))
    alive = marked.where(~F.col("letter")).transform(latest, tasks).withColumn("dead", F.lit(False))
    if not letters:
        return alive.transform(_as_expected)
    dead = (
        marked.where("letter")
        .transform(latest, tasks)
        .withColumn("dead", F.lit(True))
        .join(alive.select("key", "id"), ["key", "id"], "left_anti")
    )
    return alive.unionByName(dead).transform(_as_expected)


def _as_expected(records: DataFrame) -> DataFrame:
    index, enqueued = F.col("index").cast("long").alias("index"), F.col("stamped").alias("enqueued")
    stamp = F.struct("incarnation", "partition", "sequence", index, enqueued).alias("stamp")
    return records.select("key", "id", "operation", stamp, "hash", "expires", "dead")


def judged(expected: DataFrame, actual: DataFrame, seen: Seen) -> DataFrame:
    """Every document that is expected or there, with its state."""

    def judge_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.to_pylist()
            states = [_state(row, seen, time.time()).value for row in rows]
            yield _with(batch, {"state": states})

    pairs = expected.join(actual.drop("ru"), ["key", "id"], "full_outer").withColumn("state", F.lit(""))
    return pairs.select(*JUDGED.fieldNames()).mapInArrow(judge_batches, JUDGED)


def read_again(suspects: DataFrame, reader: CosmosReader, seen: Seen) -> DataFrame:
    """Suspects as they are now, read one by one and judged anew."""

    def read_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.to_pylist()
            found = asyncio.run(reader.read_each([(row["key"], row["id"]) for row in rows]))
            yield _again(batch, rows, [document for document, _ in found], reader, seen)

    return suspects.mapInArrow(read_batches, JUDGED)


def _again(
    batch: pa.RecordBatch,
    rows: Sequence[dict[str, Any]],
    documents: Sequence[dict[str, Any] | None],
    reader: CosmosReader,
    seen: Seen,
) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {name: [] for name in _KINDS}
    for row, document in zip(rows, documents, strict=True):
        stamp, hashed, etag = None, None, None
        if document is not None:
            _, _, stamp, hashed, etag = describe(document, reader.definition, reader.settings.document_stamp)
        now = row | {"found_stamp": stamp, "found_hash": hashed, "etag": etag}
        columns["state"].append(_state(now, seen, time.time()).value if document or row["stamp"] else _GONE)
        columns["found_stamp"].append(stamp)
        columns["found_hash"].append(hashed)
        columns["etag"].append(etag)
    return _with(batch, columns)


_GONE: Final = "gone"
"""An unexpected document that is not there any more: nothing is left to judge."""


def _state(row: Mapping[str, Any], seen: Seen, now: float) -> State:
    expected = actual = None
    if row["stamp"] is not None:
        expected = Expected(row["operation"], Stamp(**row["stamp"]), row["hash"], row["expires"], bool(row["dead"]))
    if row["found_hash"] is not None:
        stamp = Stamp(**row["found_stamp"]) if row["found_stamp"] is not None else None
        actual = Actual(stamp, row["found_hash"], row["etag"] or "")
    return judge(expected, actual, seen, now)


def _with(batch: pa.RecordBatch, columns: Mapping[str, Sequence[Any]]) -> pa.RecordBatch:
    """The batch with some of its columns replaced."""
    arrays = [
        pa.array(columns[name], _KINDS[name]) if name in columns else batch.column(name) for name in JUDGED.fieldNames()
    ]
    return pa.RecordBatch.from_arrays(arrays, names=JUDGED.fieldNames())
