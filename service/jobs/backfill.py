"""Backfill: history from a source into Cosmos, unit by unit, never over anything newer.

Of each document only the latest record of a unit is written, by the service's own sink and always guarded; so a unit
can be done again without harm, and a run that was interrupted goes on with the first unit that has no mark.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import structlog
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service import options as service_options
from service.config import Settings
from service.jobs import target
from service.jobs.closing import Closer
from service.jobs.events import FAULT
from service.jobs.faults import BadInput
from service.jobs.ledger import Ledger
from service.jobs.options import BackfillOptions
from service.jobs.outcomes import DROPPED, EXPIRED, SUPERSEDED, Tally, added_up
from service.jobs.plan import Plan, Unit, digest
from service.jobs.records import WRITES, Decoding, latest, with_records
from service.jobs.runs import Run, Runs, check_digest, digest_parts
from service.jobs.session import parallelism
from service.jobs.source import Source
from service.jobs.watch import Watch
from service.jobs.writer import Writing, write
from service.ops.progress import Progress
from service.sink.record import Operation

log = structlog.get_logger(__name__)

T = TypeVar("T")


@dataclass(slots=True)
class BackfillResult:
    """What a run has done, this time and before."""

    run_id: str
    units: int
    units_before: int
    """Done by an earlier start of the same run."""
    units_done: int = 0
    """Done by this one."""
    tally: Tally = field(default_factory=Tally)
    """Over all units that are done."""
    seconds: float = 0.0
    dry_run: bool = False
    empty: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, and why: their units are not done."""
    deletes: Tally = field(default_factory=Tally)
    """What the closing pass did: see `closing.py`."""
    unseen: dict[str, int] = field(default_factory=dict)
    """Events beyond the bounds that the closing pass could not look at yet, by partition."""
    held_seconds: float = 0.0
    """How long the live consumer was given way to."""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.units_before + self.units_done == self.units


class Backfill:
    """One start of a run."""

    def __init__(self, spark: SparkSession, options: BackfillOptions, settings: Settings) -> None:
        if not settings.document_stamp:
            raise BadInput("DOCUMENT_STAMP is empty: without stamps a backfill cannot know what is newer. Name one.")
        self._spark = spark
        self._options = options
        self._settings = settings
        self.tasks = parallelism(spark, options.engine)
        self._runs = Runs(settings)
        self._source = Source(spark, options.source, settings)
        self._decoding = decoding_of(settings, self._source)

    def run(self) -> BackfillResult:
        """Do what is open. Raises what stops it; what was marked by then stays done."""
        began = time.monotonic()
        run = self._find_or_begin()
        result = BackfillResult(run.id, len(run.plan.units), len(run.done), dry_run=self._options.dry_run)
        result.empty = run.plan.empty
        for tally in run.done.values():
            result.tally.merge(tally)
        log.info("backfill", run=run.id, units=result.units, done_before=result.units_before)
        ledger = self._ledger(run)
        with (
            Watch(self._settings, ledger, enabled=self._yields()) as watch,
            Progress("units", result.units) as progress,
        ):
            progress.advance(result.units_before)
            late = _late(run)
            for unit in run.open_units():
                self._do(run, unit, ledger, result)
                progress.advance(1)
            if not self._options.dry_run:
                self._close(run.plan, late, ledger, result)
        result.held_seconds = watch.held_seconds
        result.seconds = time.monotonic() - began
        return result

    def plan(self) -> Plan:
        """What would be done by a new run."""
        engine = self._options.engine
        return self._source.plan(self._digest(), self._options.up_to, engine.window_bytes)

    def use(self, unit: Unit, plan: Plan, work: Callable[[DataFrame], T]) -> T:
        """What `work` makes of the unit's events."""
        return self._source.use(unit, plan.bounds, work)

    def _do(self, run: Run, unit: Unit, ledger: Ledger | None, result: BackfillResult) -> None:
        tally = self.use(unit, run.plan, lambda events: self._write(events, ledger))
        if tally.left_out:
            result.left_out.update(tally.left_out)
            return
        result.tally.merge(tally)
        result.units_done += 1
        if not self._options.dry_run:
            self._runs.mark(run, unit, tally)

    def _write(self, events: DataFrame, ledger: Ledger | None) -> Tally:
        observed = Observation()
        chosen = (
            events.transform(with_records, self._decoding, narrow=False)
            .transform(_observe, observed)
            .transform(_to_write)
            .transform(latest, self.tasks)
        )
        if self._options.dry_run:
            tally = added_up(chosen.transform(_as_if_written))
        else:
            writing = Writing(self._settings, self._decoding, ledger, self._options.budget.in_flight)
            tally = added_up(chosen.transform(write, writing))
        _account(tally, observed.get)
        return tally

    def _close(self, plan: Plan, late: list[Unit], ledger: Ledger | None, result: BackfillResult) -> None:
        writing = Writing(self._settings, self._decoding, ledger, self._options.budget.in_flight)
        closer = Closer(self._source, plan, self._decoding, writing, self.tasks)
        closing = closer.close(late, self._options.engine.window_bytes)
        result.deletes, result.unseen = closing.tally, closing.unseen

    def _find_or_begin(self) -> Run:
        if self._options.dry_run:
            return Run("dry-run", self.plan(), {})
        wanted = self._options.run_id
        run = self._runs.find(wanted) if wanted else self._runs.unfinished(self._digest())
        if run is not None:
            check_digest(run, self._digest())
            return run
        return self._runs.begin(self.plan(), wanted)

    def _digest(self) -> str:
        """Not of the budget or the engine: those may change from start to start."""
        parts = {**digest_parts(self._settings), "source": asdict(self._options.source), "up_to": self._options.up_to}
        return digest({**parts, "incarnation": self._source.incarnation})

    def _yields(self) -> bool:
        live = self._source.live
        return (
            live is not None and bool(live.checkpoints) and not self._options.ignore_live and not self._options.dry_run
        )

    def _ledger(self, run: Run) -> Ledger | None:
        budget = self._options.budget
        if budget.ru_per_second and budget.records_per_second:
            raise BadInput("give a budget in records or in RU per second, not both.")
        if not (budget.ru_per_second or budget.records_per_second or self._yields()):
            return None
        counts, rate = ("ru", budget.ru_per_second) if budget.ru_per_second else ("records", budget.records_per_second)
        return Ledger(self._runs.container, f"ledgers/{run.id}.json", counts, rate)  # type: ignore[arg-type]


def _late(run: Run) -> list[Unit]:
    """Units that are done although one before them is not: their deletes were done too early for it."""
    open_units = run.open_units()
    first = open_units[0].number if open_units else len(run.plan.units)
    return [unit for unit in run.plan.units if unit.number > first and unit.name in run.done]


def decoding_of(settings: Settings, source: Source) -> Decoding:
    """How records are made for the container as it is now. Raises SetupFault."""
    described = target.describe(settings)
    address = service_options.hub(settings)
    namespace = source.live.namespace if source.live else (settings.eventhub_namespace or "").lower()
    documents = service_options.documents(settings)
    return Decoding(documents, described.definition, namespace, address.name, address.group, described.default_ttl)


def _observe(records: DataFrame, observed: Observation) -> DataFrame:
    """Count on the way what is not going to be written."""
    operation, now = F.col("operation"), F.lit(time.time())
    return records.observe(
        observed,
        F.count_if(operation != FAULT).alias("records"),
        F.count_if(operation.isin(*WRITES) & ~F.coalesce(F.col("expires") <= now, F.lit(False))).alias("writes"),
        F.count_if(operation == Operation.POISON.value).alias("poison"),
        F.count_if(operation == Operation.DROP.value).alias("dropped"),
        F.count_if(F.col("expires") <= now).alias("expired"),
    )


def _to_write(records: DataFrame) -> DataFrame:
    expired = F.coalesce(F.col("expires") <= F.lit(time.time()), F.lit(False))
    return records.where((F.col("operation") != Operation.DROP.value) & ~expired)


def _as_if_written(records: DataFrame) -> DataFrame:
    """A dry run's outcomes: what each record would be sent as."""
    fault = F.col("operation") == FAULT
    return records.select(
        F.when(fault, "").otherwise(F.col("partition")).alias("partition"),
        F.when(fault, "left out").otherwise(F.concat(F.lit("would "), F.col("operation"))).alias("outcome"),
        F.when(fault, F.concat_ws("\n", "id", "reason")).otherwise("").alias("detail"),
        F.lit(1).cast("long").alias("records"),
        F.lit(0.0).alias("ru"),
    )


def _account(tally: Tally, observed: dict[str, Any]) -> None:
    """Add what never reached a writer, so that the outcomes of a unit sum up to its records."""
    written = sum(tally.records.values())
    tally.records[DROPPED] += observed["dropped"]
    tally.records[EXPIRED] += observed["expired"]
    # Of several records of a document in one unit only the latest was sent.
    tally.records[SUPERSEDED] += observed["writes"] + observed["poison"] - written
    tally.records["read"] += observed["records"]
