"""Event Hubs Capture: Avro files, by Spark's own reader where that can be used, else by fastavro in Python tasks.

Spark's reader is several times as fast, but without a Hadoop file system for Azure on the class path it cannot open
blobs; where driver and tasks share a disk they are brought there first. `pushFilters` is not used: it leaks between
queries (facts of 4.1 and 4.3).
"""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

import orjson
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service.jobs.events import NAMES, PROPERTY
from service.jobs.faults import BadInput
from service.jobs.plan import FilePart, Unit
from service.jobs.session import is_local
from service.jobs.sources.avro_file import READER_SCHEMA, BadFile, check, check_head, read
from service.jobs.sources.by_file import Faulty, events_by_file, fault_rows
from service.jobs.sources.capture_names import NameFormat
from service.jobs.storage import Store
from service.source.events import Event

_FORMATS: Final = ("avro", "org.apache.spark.sql.avro.AvroFileFormat")
"""The documented name needs the package spark-avro; the class lies in spark-sql since Spark 4.0, undocumented."""
_BATCH_EVENTS: Final = 2000
_STAGING_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class CaptureFiles:
    """What the driver found under a path."""

    parts: tuple[FilePart, ...]
    empty: tuple[str, ...]
    """Files without a byte."""
    hubs: tuple[str, ...]


def list_capture(
    store: Store, names: NameFormat, since: float | None, until: float | None, slack_seconds: float = 3600.0
) -> CaptureFiles:
    """The files, pruned by the time in their names. A file holds events of some time from there on (the longest
    Capture window is 15 minutes), and clocks differ: an hour more is taken on both sides. Raises BadInput.
    """
    parts, empty, hubs, strangers = [], [], set(), []
    for file in store.list():
        if not file.name.endswith(".avro"):
            continue
        name = names.parse(file.name)
        if name is None:
            strangers.append(file.name)
            continue
        if since is not None and name.at < since - slack_seconds:
            continue
        if until is not None and name.at > until + slack_seconds:
            continue
        hubs.add(name.hub)
        if file.size:
            parts.append(FilePart(file.name, file.size, file.version, name.partition, name.at))
        else:
            empty.append(file.name)
    if strangers:
        raise BadInput(
            f"{len(strangers)} files under {store.text()} are not named by {names.text!r}, first {strangers[0]}."
            " Give their format with --path-format, or a path that holds nothing else."
        )
    if len(hubs) > 1:
        raise BadInput(
            f"under {store.text()} are files of several hubs ({', '.join(sorted(hubs))}): give a path of one."
        )
    return CaptureFiles(tuple(parts), tuple(empty), tuple(hubs))


def bad_heads(store: Store, parts: Sequence[FilePart]) -> list[Faulty]:
    """The files whose very beginning is wrong."""

    def look(part: FilePart) -> Faulty | None:
        try:
            check_head(store.head(part.name))
        except BadFile as fault:
            return Faulty(part.name, str(fault))
        return None

    with ThreadPoolExecutor(_STAGING_THREADS) as pool:
        return [fault for fault in pool.map(look, parts) if fault is not None]


def bad_files(spark: SparkSession, store: Store, parts: Sequence[FilePart]) -> list[Faulty]:
    """The files that are not sound from beginning to end: each is looked over whole, by a task."""

    def look(path: Path, part: FilePart) -> Iterator[tuple[str, list[Event]]]:  # noqa: ARG001 - as all that read files
        check(path)
        return iter(())

    rows = events_by_file(spark, parts, store, 0, look).select("offset", "body").collect()
    return [Faulty(row["offset"], bytes(row["body"]).decode()) for row in rows]


def probe(spark: SparkSession) -> str | None:
    """The name under which this Spark reads Avro; None where it does not."""
    schema = orjson.dumps(READER_SCHEMA).decode()
    for name in _FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                spark.read.format(name).option("avroSchema", schema).load(folder)
            except AnalysisException as fault:
                if "UNABLE_TO_INFER_SCHEMA" in str(fault):
                    return name
                continue
            except PySparkException:
                continue
            return name
    return None


@dataclass(frozen=True, slots=True)
class CaptureReader:
    """Reads units of Capture files."""

    store: Store
    names: NameFormat
    incarnation: int
    jvm_format: str | None
    """None: fastavro."""

    def read(self, spark: SparkSession, unit: Unit, staging: Path) -> DataFrame:
        """The unit's events, with a fault row for each file that is left out. `staging` is kept until the frame has
        been used.
        """
        if self.jvm_format is None or (self.store.local_path("") is None and not is_local(spark)):
            return events_by_file(spark, unit.files, self.store, self.incarnation, _read_one)
        return self._by_jvm(spark, unit, staging, self.jvm_format)

    def _by_jvm(self, spark: SparkSession, unit: Unit, staging: Path, jvm_format: str) -> DataFrame:
        with ThreadPoolExecutor(_STAGING_THREADS) as pool:
            found = list(pool.map(lambda part: self._stage(part, staging), unit.files))
        sound = [place for place in found if isinstance(place, str)]
        frames = [fault_rows(spark, [each for each in found if isinstance(each, Faulty)])]
        if sound:
            frames.append(
                spark.read.format(jvm_format)
                .option("avroSchema", orjson.dumps(READER_SCHEMA).decode())
                .load(sound)
                .transform(self._as_events)
            )
        return reduce(DataFrame.unionByName, frames)

    def _stage(self, part: FilePart, staging: Path) -> str | Faulty:
        """A sound file on this machine's disk, or what is wrong with it."""
        local = self.store.local_path(part.name)
        if local is None:
            to = staging / part.name.replace("/", "+")
            if not to.exists():
                self.store.fetch(part.name, to)
            local = str(to)
        try:
            check(local)
        except BadFile as fault:
            return Faulty(part.name, str(fault))
        except OSError as fault:
            return Faulty(part.name, f"it cannot be opened: {fault.strerror}")
        return local

    def _as_events(self, frame: DataFrame) -> DataFrame:
        path = F.regexp_replace(F.col("_metadata.file_path"), r"\+", "/")
        text = F.col("EnqueuedTimeUtc")
        us, iso = F.try_to_timestamp(text, F.lit("M/d/yyyy h:mm:ss a")), F.try_to_timestamp(text)
        unknown = F.raise_error(F.concat(F.lit("an EnqueuedTimeUtc is neither of the US form nor ISO: "), text))
        columns = {
            "incarnation": F.lit(self.incarnation).cast("long"),
            "partition": F.regexp_extract(path, self.names.pattern, self.names.words.index("PartitionId") + 1),
            "sequence": F.col("SequenceNumber"),
            "offset": F.col("Offset"),
            "enqueued": F.unix_millis(F.coalesce(us, iso, unknown.cast("timestamp"))),
            "properties": F.transform_values("Properties", _property),
            "content_type": F.col("SystemProperties")["content-type"]["member2"],
            "content_encoding": F.col("SystemProperties")["content-encoding"]["member2"],
            "body_kind": F.when(F.col("Body").isNull(), "value").otherwise("data"),
            "body": F.col("Body"),
        }
        return frame.select(*(columns[name].alias(name) for name in NAMES))


def _property(_name: Column, value: Column) -> Column:
    """The reader schema has its kinds in this order."""
    members = [value[f"member{number}"].alias(field.name) for number, field in enumerate(PROPERTY)]
    return F.struct(*members)


def _read_one(path: Path, part: FilePart) -> Iterator[tuple[str, list[Event]]]:
    check(path)
    for events in read(path, _BATCH_EVENTS):
        yield part.partition, events
