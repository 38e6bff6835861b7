"""Reconcile: what the stream says should be in Cosmos, against what is there."""

import time
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Any

import structlog
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service.config import Settings
from service.jobs.backfill import decoding_of
from service.jobs.balance import Balance, balances
from service.jobs.compare import expected_documents, judged, read_again
from service.jobs.cosmos_reader import CosmosReader
from service.jobs.events import FAULT
from service.jobs.judge import Seen, State
from service.jobs.options import ReconcileOptions
from service.jobs.plan import Plan
from service.jobs.records import NARROW, Decoding, with_records
from service.jobs.session import parallelism
from service.jobs.source import Source, iso_ms
from service.jobs.sources.letters import LetterFiles, letter_keys, list_letters
from service.jobs.storage import Store, open_store
from service.ops.progress import Progress

log = structlog.get_logger(__name__)

DIFFERENCES = [state.value for state in State if state.is_difference]


@dataclass(slots=True)
class Covered:
    """What was read of a partition."""

    first: int
    last: int
    records: int
    sequences: int
    bound: int | None
    """The live consumer's checkpoint, if there is one."""

    @property
    def gaps(self) -> int:
        """Sequences between first and last that no event had."""
        return self.last - self.first + 1 - self.sequences


@dataclass(slots=True)
class ReconcileResult:
    """The finding."""

    source: str
    states: dict[str, int] = field(default_factory=dict)
    covered: dict[str, Covered] = field(default_factory=dict)
    balance: list[Balance] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    ru: float = 0.0
    seconds: float = 0.0
    suspects: int = 0
    """Documents that did not look right at first."""

    @property
    def differences(self) -> int:
        """Documents that are wrong."""
        return sum(self.states.get(state, 0) for state in DIFFERENCES)

    @property
    def closes(self) -> bool:
        """Whether every record that came in is accounted for."""
        return all(balance.closes for balance in self.balance)

    @property
    def unaccounted(self) -> int:
        """Poison without a dead letter, and whatever else came in and is nowhere."""
        return sum(balance.missing for balance in self.balance)


class Reconcile:
    """One reconciliation. `differences` is there to be written down until `close`."""

    def __init__(self, spark: SparkSession, options: ReconcileOptions, settings: Settings) -> None:
        self._spark = spark
        self._options = options
        self._settings = settings
        self._since_ms = iso_ms("--changed-since", options.changed_since)
        source = options.source
        if self._since_ms is not None and not source.since:
            source = replace(source, since=options.changed_since)
        self._source = Source(spark, source, settings)
        self._decoding: Decoding = decoding_of(settings, self._source)
        self._kept: list[DataFrame] = []
        self.differences: DataFrame | None = None

    def run(self) -> ReconcileResult:
        """Read both sides, compare, look again at what seems wrong."""
        began = time.monotonic()
        result = ReconcileResult(self._source.text())
        tasks = parallelism(self._spark, self._options.engine)
        plan = self._source.plan("", self._options.up_to, self._options.engine.window_bytes)
        result.empty = plan.empty
        letters = list_letters(self._letter_store())
        records = self._records(plan, letters, result)
        result.covered = _covered(records, plan)
        seen = Seen(plan.incarnation, {name: (each.first, each.last) for name, each in result.covered.items()})
        reader = CosmosReader(self._settings, self._decoding.definition, self._since_ms)
        actual = self._keep(reader.read(self._spark, reader.ranges()))
        read = actual.agg(F.count("*").alias("count"), F.sum("ru").alias("ru")).collect()[0]
        log.info("documents read", count=read["count"])
        result.ru = float(read["ru"] or 0.0)
        expected = expected_documents(records, tasks, letters=bool(letters.parts))
        first_look = self._keep(judged(expected, actual, seen))
        final = self._look_again(first_look, reader, seen, result)
        result.states = {row["state"]: row["count"] for row in final.groupBy("state").count().collect()}
        result.balance = balances(records, final)
        self.differences = final.where(F.col("state").isin(*DIFFERENCES))
        result.seconds = time.monotonic() - began
        return result

    def close(self) -> None:
        """Let go of what was kept."""
        for frame in self._kept:
            frame.unpersist()

    def _records(self, plan: Plan, letters: LetterFiles, result: ReconcileResult) -> DataFrame:
        """All records, each once; kept, since the files that they were read from may be gone afterwards."""
        frames = []
        with Progress("units read", len(plan.units)) as progress:
            for unit in plan.units:
                frame, faults = self._source.use(unit, plan.bounds, self._decode)
                result.left_out.update(faults)
                frames.append(frame)
                progress.advance(1)
        place = ["incarnation", "partition", "sequence", "index"]
        none = self._spark.createDataFrame([], NARROW)  # as when there is no dead letter to be read
        everything = reduce(DataFrame.unionByName, frames, none).where(F.col("operation") != FAULT)
        once = everything.dropDuplicates(place)
        if not letters.parts:
            return self._keep(once.withColumn("letter", F.lit(False)))
        dead = letter_keys(self._spark, self._letter_store(), letters).withColumn("letter", F.lit(True))
        return self._keep(once.join(F.broadcast(dead), place, "left").fillna(False, ["letter"]))

    def _decode(self, events: DataFrame) -> tuple[DataFrame, dict[str, str]]:
        """The unit's records, read once and kept, and the files that were left out."""
        frame = self._keep(events.transform(with_records, self._decoding, narrow=True))
        faults = frame.where(F.col("operation") == FAULT).select("id", "reason").collect()
        return frame, {row["id"]: row["reason"] for row in faults}

    def _letter_store(self) -> Store:
        return open_store(f"blob://{self._settings.dead_letters_in}", self._settings)

    def _look_again(self, first: DataFrame, reader: CosmosReader, seen: Seen, result: ReconcileResult) -> DataFrame:
        suspicious = F.col("state").isin(*DIFFERENCES)
        result.suspects = first.where(suspicious).count()
        if not result.suspects:
            return first
        log.info("suspects are read again", count=result.suspects, after_seconds=self._options.recheck_seconds)
        time.sleep(self._options.recheck_seconds)
        again = self._keep(read_again(first.where(suspicious), reader, seen))
        return self._keep(first.where(~suspicious).unionByName(again.where(F.col("state") != "gone")))

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        return kept


def _covered(records: DataFrame, plan: Plan) -> dict[str, Covered]:
    rows = records.groupBy("partition").agg(
        F.min("sequence").alias("first"),
        F.max("sequence").alias("last"),
        F.count("*").alias("records"),
        F.count_distinct("sequence").alias("sequences"),
    )
    return {
        row["partition"]: Covered(
            row["first"], row["last"], row["records"], row["sequences"], plan.bounds.get(row["partition"])
        )
        for row in rows.collect()
    }


def summary(result: ReconcileResult, options: ReconcileOptions, exit_code: int) -> dict[str, Any]:
    """What summary.json says."""
    return {
        "job": "reconcile",
        "exit_code": exit_code,
        "clean": result.differences == 0 and result.unaccounted == 0,
        "differences": result.differences,
        "threshold": options.threshold,
        "states": {state.value: result.states.get(state.value, 0) for state in State},
        "unaccounted": result.unaccounted,
        "balance_closes": result.closes,
        "balance": [balance.encode() for balance in result.balance],
        "covered": {name: {**asdict(each), "gaps": each.gaps} for name, each in sorted(result.covered.items())},
        "suspects": result.suspects,
        "left_out": result.left_out,
        "empty": list(result.empty),
        "ru": round(result.ru, 2),
        "seconds": round(result.seconds, 1),
        "reads": result.source,
        "options": asdict(options),
    }
