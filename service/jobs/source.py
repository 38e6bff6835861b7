"""A job's source: planned once by the driver, then read unit by unit."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol, TypeVar

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service.config import Settings
from service.errors import SetupFault
from service.jobs import hadoop_azure
from service.jobs import live as live_consumer
from service.jobs.events import FAULT
from service.jobs.faults import BadInput
from service.jobs.live import Live
from service.jobs.options import SourceOptions
from service.jobs.plan import FilePart, Plan, Unit, pack_files, pack_ranges
from service.jobs.session import is_local
from service.jobs.sources import capture, files, hub, letters
from service.jobs.sources.by_file import Faulty, ReadFile, events_by_file
from service.jobs.sources.capture_names import NameFormat
from service.jobs.storage import Blobs, Store, open_store
from service.jobs.task_faults import SPARK_FAULTS

log = structlog.get_logger(__name__)

T = TypeVar("T")
_UNREADABLE: Final = "FAILED_READ_FILE"
"""Spark's own word for a file that its reader failed on (4.0 and newer)."""


class Reader(Protocol):
    """Gives the events of a unit."""

    def read(self, spark: SparkSession, unit: Unit, staging: Path) -> DataFrame:
        """Rows of EVENTS."""


@dataclass(frozen=True, slots=True)
class Window:
    """Times between which events were enqueued."""

    since_ms: int | None
    until_ms: int | None

    @classmethod
    def of(cls, options: SourceOptions) -> "Window":
        """From the options. Raises BadInput."""
        return cls(iso_ms("--since", options.since), iso_ms("--until", options.until))

    def keep(self, events: DataFrame) -> DataFrame:
        """The events within, and every fault row."""
        if self.since_ms is not None:
            events = events.where((F.col("enqueued") >= self.since_ms) | (F.col("body_kind") == FAULT))
        if self.until_ms is not None:
            events = events.where((F.col("enqueued") < self.until_ms) | (F.col("body_kind") == FAULT))
        return events


class Source:
    """What the options name. Raises BadInput or SetupFault when it is made."""

    def __init__(self, spark: SparkSession, options: SourceOptions, settings: Settings) -> None:
        self._spark = spark
        self._options = options
        self._settings = settings
        self._window = Window.of(options)
        self._reader: Reader | None = None
        self.live = self._look()
        self.incarnation = self._incarnation()
        self._faulty: list[Faulty] = []
        """What is known to be wrong before anything is read."""

    def plan(self, digest: str, up_to: str, window_bytes: int) -> Plan:
        """List the source. Raises BadInput where there is nothing to read, or with `strict` anything is wrong."""
        bounds = self._bounds(up_to)
        empty: tuple[str, ...] = ()
        idle: set[str] = set()
        match self._options.source:
            case "capture":
                found = self._captured()
                idle = self._look_over(found.parts)
                # Where nothing ever came there is still a unit, so that a job has something to be done with.
                busy = [part for part in found.parts if part.name not in idle] or found.parts
                empty, units = found.empty, pack_files(busy, window_bytes)
            case "files":
                parts, empty = files.list_files(self._store())
                units = pack_files(parts, window_bytes)
            case "deadletters":
                units = pack_files(letters.list_letters(self._store()).parts, window_bytes)
            case "hub":
                if self.live is None:
                    raise BadInput("the hub cannot be reached, so its range cannot be read")
                first, last = self._options.first_sequence, self._options.last_sequence
                units = pack_ranges(hub.ranges_of(self.live, bounds, first, last), window_bytes)
        if self._options.strict:
            self._be_strict(empty)
        if not units and self._options.source != "deadletters":
            raise BadInput(f"there is nothing to read: {self.text()} holds no events of the time and range asked for.")
        return Plan(digest, units, bounds, self.incarnation, (*empty, *sorted(idle)))

    def newest(self) -> dict[str, int]:
        """By partition: the last sequence that the hub has now; empty where it cannot be asked."""
        if self.live is None:
            return {}
        now = live_consumer.look(self._settings)
        return {name: partition.last for name, partition in now.partitions.items()}

    def beyond(self, plan: Plan, window_bytes: int) -> Plan:
        """What the source has by now beyond the bounds of a plan: none of its earlier files or sequences."""
        done = {part.name for unit in plan.units[:-1] for part in unit.files}
        match self._options.source:
            case "capture":
                # The plan's last files may hold events on both sides of the bound.
                units = pack_files([part for part in self._captured().parts if part.name not in done], window_bytes)
            case "hub":
                live = live_consumer.look(self._settings)
                ranges = hub.ranges_of(live, {})
                after = [
                    replace(part, first=max(part.first, plan.bounds.get(part.partition, -1) + 1)) for part in ranges
                ]
                units = pack_ranges([part for part in after if part.first <= part.last], window_bytes)
            case _:
                units = ()
        return replace(plan, units=units)

    def use(self, unit: Unit, bounds: Mapping[str, int], work: Callable[[DataFrame], T]) -> T:
        """What `work` makes of the unit's events. Where Spark's own reader fails on a file it is done again with the
        one that leaves such files out; so nothing may depend on how often it is done.
        """
        try:
            with self._reading(unit, bounds, self._read_by(unit)) as events:
                return work(events)
        except SPARK_FAULTS as fault:
            if self._options.source != "capture" or _UNREADABLE not in str(fault):
                raise
            log.warning("a file is damaged; the unit is read again, file by file", unit=unit.name)
        with self._reading(unit, bounds, self._capture_reader(None)) as events:
            return work(events)

    @contextmanager
    def _reading(self, unit: Unit, bounds: Mapping[str, int], reader: Reader) -> Iterator[DataFrame]:
        """The unit's events up to the bounds. What was brought to this disk for it goes at the end."""
        with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
            events = reader.read(self._spark, unit, Path(folder))
            yield events.transform(self._window.keep).transform(self._within, bounds)

    def text(self) -> str:
        """For messages and reports."""
        if self._options.source == "hub":
            return f"hub {self._settings.eventhub_name}"
        return f"{self._options.source} {self._path()}"

    def _read_by(self, unit: Unit) -> Reader:
        if self._reader is None:
            self._reader = self._choose_reader(unit)
        return self._reader

    def _choose_reader(self, unit: Unit) -> Reader:
        match self._options.source:
            case "capture":
                return self._choose_avro_reader(unit)
            case "hub":
                group = live_consumer.own_group(self._settings, self._options.consumer_group)
                return _Ranges(hub.HubReader(self._settings, group, self.incarnation))
            case "files":
                return _ByFile(self._store(), self.incarnation, files.read_one)
            case "deadletters":
                return _ByFile(self._store(), self.incarnation, letters.read_one)

    def _choose_avro_reader(self, unit: Unit) -> Reader:
        """The fastest that works here; tried with the first file that is to be read."""
        if self._options.reader == "python":
            return self._capture_reader(None)
        store, jvm = self._store(), capture.probe(self._spark)
        in_place = (
            jvm is not None and isinstance(store, Blobs) and hadoop_azure.opens(self._spark, store, unit.files[0].name)
        )
        if isinstance(store, Blobs) and not in_place and not is_local(self._spark):
            jvm = None  # the tasks of a cluster do not see the driver's disk
        if jvm is None and self._options.reader == "jvm":
            raise BadInput(
                "--reader jvm: this Spark has no Avro reader (package spark-avro), or cannot open blobs (package"
                " hadoop-azure, of Spark's Hadoop version). Add them, or use python."
            )
        log.info("capture is read", by="Spark" if jvm else "fastavro", blobs_in_place=in_place)
        return self._capture_reader(jvm, in_place=in_place)

    def _capture_reader(self, jvm: str | None, *, in_place: bool = False) -> capture.CaptureReader:
        names = NameFormat(self._options.path_format)
        return capture.CaptureReader(self._store(), names, self.incarnation, jvm, in_place)

    def _look(self) -> Live | None:
        """Hub and live consumer; None where the hub cannot be asked and need not be."""
        if self._options.source == "hub":
            live_consumer.own_group(self._settings, self._options.consumer_group)
        try:
            return live_consumer.look(self._settings)
        except SetupFault as fault:
            if self._options.source == "hub" or not self._options.incarnation:
                raise SetupFault(
                    f"{fault}. (The hub is asked for its created_at, its partitions and the live consumer's"
                    " checkpoints; where it is gone, give --incarnation.)"
                ) from None
            return None

    def _incarnation(self) -> int:
        return self._options.incarnation or (self.live.incarnation if self.live else 0)

    def _bounds(self, up_to: str) -> dict[str, int]:
        """Only events of the hub's present life can be beyond its consumer's checkpoints."""
        if up_to == "end" or self.live is None or self.incarnation != self.live.incarnation:
            return {}
        return self.live.bounds()

    def _within(self, events: DataFrame, bounds: Mapping[str, int]) -> DataFrame:
        if not bounds:
            return events
        table = F.create_map(*(F.lit(value) for pair in bounds.items() for value in pair))
        bound = F.coalesce(F.try_element_at(table, F.col("partition")), F.lit(-1))
        return events.where((F.col("sequence") <= bound) | (F.col("body_kind") == FAULT))

    def _captured(self) -> capture.CaptureFiles:
        since, until = self._window.since_ms, self._window.until_ms
        return capture.list_capture(
            self._store(),
            NameFormat(self._options.path_format),
            since / 1000 if since is not None else None,
            until / 1000 if until is not None else None,
        )

    def _look_over(self, parts: Sequence[FilePart]) -> set[str]:
        """Both ends of each file; with `strict` the whole of it. Gives those that are sound and without events. Raises
        BadInput where none can be read.
        """
        store = self._store()
        self._faulty, idle = capture.look_at_ends(store, parts)
        if self._options.strict and not self._faulty:
            self._faulty = capture.bad_files(self._spark, store, parts)
        if parts and len(self._faulty) == len(parts):
            first = self._faulty[0]
            raise BadInput(f"none of the {len(parts)} files can be read; {first.name}: {first.why}.")
        return set(idle)

    def _path(self) -> str:
        match self._options:
            case SourceOptions(path=str(path)) if path:
                return path
            case SourceOptions(source="capture"):
                return "blob://capture"
            case SourceOptions(source="deadletters"):
                return f"blob://{self._settings.dead_letters_in}"
        raise BadInput("--path: missing. Give a folder, or blob://container/prefix.")

    def _store(self) -> Store:
        return open_store(self._path(), self._settings)

    def _be_strict(self, empty: Sequence[str]) -> None:
        wrong = [*self._faulty, *(Faulty(name, "it is empty") for name in empty)]
        if wrong:
            raise BadInput("\n".join(f"--strict: {each.name}: {each.why}" for each in wrong[:20]))


@dataclass(frozen=True, slots=True)
class _ByFile:
    store: Store
    incarnation: int
    read_one: ReadFile

    def read(self, spark: SparkSession, unit: Unit, _staging: Path) -> DataFrame:
        return events_by_file(spark, unit.files, self.store, self.incarnation, self.read_one)


@dataclass(frozen=True, slots=True)
class _Ranges:
    reader: hub.HubReader

    def read(self, spark: SparkSession, unit: Unit, _staging: Path) -> DataFrame:
        return self.reader.read(spark, unit.ranges)


def iso_ms(name: str, text: str) -> int | None:
    """Milliseconds since 1970 of an ISO time, UTC unless it says otherwise. Raises BadInput."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{name}: {text!r} is no ISO time such as 2026-01-31T12:00:00Z.") from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
