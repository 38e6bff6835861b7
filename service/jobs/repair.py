"""Repair: mends what a reconciliation has found, as far as it may.

Missing and stale documents are written as backfill writes them, guarded. A different one is replaced only as long as it
is still the one that was seen. What no event asks for is never touched.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from azure.identity.aio import DefaultAzureCredential
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812 - as above

from service import options as service_options
from service.config import Settings
from service.jobs.backfill import decoding_of
from service.jobs.events import from_arrow
from service.jobs.faults import BadInput
from service.jobs.judge import State
from service.jobs.ledger import Allowance, Ledger, open_ledger
from service.jobs.options import RepairOptions, SourceOptions
from service.jobs.outcomes import CHANGED, COMMITTED, OUTCOMES, SUPERSEDED, Tally, added_up, outcome_batch
from service.jobs.records import WIDE, Decoding, with_records
from service.jobs.runs import Runs
from service.jobs.session import parallelism
from service.jobs.source import Source
from service.jobs.writer import Writing, write
from service.sink.container import SingleOperation
from service.sink.cosmos import CosmosContainer
from service.sink.outcomes import Step
from service.source.events import PartitionId

_MENDED = (State.MISSING.value, State.STALE.value, State.DIFFERENT.value)
_WANTED = T.StructType(
    [
        T.StructField("incarnation", T.LongType()),
        T.StructField("partition", T.StringType()),
        T.StructField("sequence", T.LongType()),
        T.StructField("index", T.IntegerType()),
        T.StructField("state", T.StringType()),
        T.StructField("etag", T.StringType()),
    ]
)


@dataclass(slots=True)
class RepairResult:
    """What was done, or would be."""

    dry_run: bool
    wanted: dict[str, int] = field(default_factory=dict)
    """Documents to mend, by state."""
    left: dict[str, int] = field(default_factory=dict)
    """Documents that repair does not touch, by state."""
    found: dict[str, int] = field(default_factory=dict)
    """Of the wanted ones, those whose event was found in the source."""
    tally: Tally = field(default_factory=Tally)

    @property
    def complete(self) -> bool:
        """Whether each document's event was found, and each was written or had become newer."""
        done = {COMMITTED, SUPERSEDED}
        return self.found == self.wanted and set(self.tally.records) <= done


class Repair:
    """One repair, from a reconciliation's folder."""

    def __init__(
        self, spark: SparkSession, options: RepairOptions, source: SourceOptions, up_to: str, settings: Settings
    ) -> None:
        self._spark = spark
        self._options = options
        self._up_to = up_to
        self._settings = settings
        self._source = Source(spark, source, settings)
        self._decoding = decoding_of(settings, self._source)

    def run(self) -> RepairResult:
        """Read the source again for the events of the documents that are wrong, and write these."""
        wanted = _wanted(self._spark, Path(self._options.report))
        counts = {row["state"]: row["count"] for row in wanted.groupBy("state").count().collect()}
        result = RepairResult(
            not self._options.write,
            {state: counts[state] for state in _MENDED if state in counts},
            {state: count for state, count in counts.items() if state not in _MENDED},
        )
        if not result.wanted:
            return result
        mended = F.broadcast(wanted.where(F.col("state").isin(*_MENDED)))
        plan = self._source.plan("", self._up_to, self._options.engine.window_bytes)
        found: Counter[str] = Counter()
        for unit in plan.units:
            counted, tally = self._source.use(unit, plan.bounds, lambda events: self._mend(events, mended))
            found.update(counted)
            result.tally.merge(tally)
        result.found = dict(found)
        return result

    def _mend(self, events: DataFrame, mended: DataFrame) -> tuple[dict[str, int], Tally]:
        """How many of the wanted events are among these, by state; and what became of them."""
        # Only the events that are needed are decoded.
        place = ["incarnation", "partition", "sequence"]
        needed = events.join(mended.select(*place).distinct(), place, "left_semi")
        records = needed.transform(with_records, self._decoding, narrow=False)
        chosen = records.join(mended, [*place, "index"]).dropDuplicates([*place, "index"]).persist()
        try:
            counted = {row["state"]: row["count"] for row in chosen.groupBy("state").count().collect()}
            return counted, self._write(chosen) if self._options.write else Tally()
        finally:
            chosen.unpersist()

    def _write(self, chosen: DataFrame) -> Tally:
        tasks = parallelism(self._spark, self._options.engine)
        ledger = self._ledger()
        spread = chosen.repartition(tasks, "key", "id")
        writing = Writing(self._settings, self._decoding, ledger, self._options.budget.in_flight)
        guarded = spread.where(F.col("state") != State.DIFFERENT.value).select(*WIDE.fieldNames())
        tally = added_up(guarded.transform(write, writing))
        different = spread.where(F.col("state") == State.DIFFERENT.value).select(*WIDE.fieldNames(), "etag")
        tally.merge(added_up(different.transform(_replace, writing)))
        return tally

    def _ledger(self) -> Ledger | None:
        budget = self._options.budget
        if not (budget.ru_per_second or budget.records_per_second):
            return None
        container = Runs(self._settings).container
        if budget.ru_per_second:
            return Ledger(container, "ledgers/repair.json", "ru", budget.ru_per_second)
        return Ledger(container, "ledgers/repair.json", "records", budget.records_per_second)


def _wanted(spark: SparkSession, report: Path) -> DataFrame:
    """The differences as rows. Raises BadInput where there is no report."""
    folder = report / "differences"
    if not (report / "summary.json").is_file() or not folder.is_dir():
        raise BadInput(
            f"--report: {report} holds no reconciliation (summary.json and differences). Run reconcile first."
        )
    rows = []
    for file in sorted(folder.glob("*.parquet")):
        for row in pq.read_table(file, columns=["state", "stamp", "etag"]).to_pylist():
            stamp = row["stamp"] or dict.fromkeys(("incarnation", "partition", "sequence", "index"))
            rows.append(
                (stamp["incarnation"], stamp["partition"], stamp["sequence"], stamp["index"], row["state"], row["etag"])
            )
    return spark.createDataFrame(rows, _WANTED)


def _replace(records: DataFrame, writing: Writing) -> DataFrame:
    """Replace each document, if it is still the one that was seen."""

    def replace_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield asyncio.run(_replace_batch(batch, writing))

    return records.mapInArrow(replace_batches, OUTCOMES)


async def _replace_batch(batch: pa.RecordBatch, writing: Writing) -> pa.RecordBatch:
    counts: Counter[tuple[str, str, str]] = Counter()
    ru = 0.0
    async with AsyncExitStack() as parts:
        identity = await parts.enter_async_context(DefaultAzureCredential())
        container = CosmosContainer(service_options.cosmos(writing.settings, identity))
        parts.push_async_callback(container.close)
        await container.describe()
        allowance = await open_ledger(writing.ledger, writing.settings, parts) if writing.ledger else Allowance(None)
        for partition, operation in _operations(batch, writing.decoding):
            await allowance.take(1, 0, ru)
            result = await container.send_single(operation)
            ru += result.get("requestCharge") or 0.0
            counts[partition, COMMITTED if result["statusCode"] == 200 else _word(result["statusCode"]), ""] += 1
        await allowance.give_back(ru)
    return outcome_batch(counts, ru)


def _word(status: int) -> str:
    """404 and 412: it is not the one that was seen. Anything else is not done, and says so."""
    return CHANGED if status in {404, 412} else f"refused ({status})"


def _operations(batch: pa.RecordBatch, decoding: Decoding) -> Iterator[tuple[str, SingleOperation]]:
    decoder = decoding.decoder()
    etags, indexes = batch.column("etag").to_pylist(), batch.column("index").to_pylist()
    for (incarnation, partition, event), index, etag in zip(from_arrow(batch), indexes, etags, strict=True):
        record = decoder.decode(event, decoding.of(incarnation), PartitionId(partition))[index]
        yield partition, SingleOperation(Step.REPLACE, record.id, record.key, record.body, etag)
