"""Event Hubs Capture: Avro files, by Spark's own reader where that can be used, else by fastavro in Python tasks.

Spark's reader is several times as fast, but opens blobs only with Hadoop's file system for Azure on the class path.
Without that they are brought to the disk first where driver and tasks share one, and are else read by Python.
`pushFilters` is not used: it leaks between queries (facts of 4.1 and 4.3).
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
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
from service.jobs.hadoop_azure import access_to, literal
from service.jobs.plan import FilePart, Unit
from service.jobs.sources.avro_file import READER_SCHEMA, BadFile, check, check_ends, read
from service.jobs.sources.by_file import Faulty, events_by_file, fault_rows, why_not
from service.jobs.sources.capture_names import NameFormat
from service.jobs.storage import Blobs, Store
from service.source.events import Event

_FORMATS: Final = ("avro", "org.apache.spark.sql.avro.AvroFileFormat")
"""The documented name needs the package spark-avro; the class lies in spark-sql since Spark 4.0, undocumented."""
_BATCH_EVENTS: Final = 2000
_DOWNLOADS: Final = 4
"""At a time."""
_LOOKED_AT: Final = 500
"""At a time; each is 64 KB."""


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


def look_at_ends(store: Store, parts: Sequence[FilePart]) -> tuple[list[Faulty], list[str]]:
    """The files whose beginning or end is wrong, and those that have no events: Capture writes them where none came."""
    faulty, idle = [], []
    for first in range(0, len(parts), _LOOKED_AT):
        names = [part.name for part in parts[first : first + _LOOKED_AT]]
        for name, ends in zip(names, store.ends(names), strict=True):
            try:
                if not check_ends(ends):
                    idle.append(name)
            except BadFile as fault:
                faulty.append(Faulty(name, str(fault)))
    return faulty, idle


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
    in_place: bool = False
    """Whether Spark can open the blobs where they are."""

    def read(self, spark: SparkSession, unit: Unit, staging: Path) -> DataFrame:
        """The unit's events, with a fault row for each file that is left out. `staging` is kept until the frame has
        been used.
        """
        if self.jvm_format is None:
            return events_by_file(spark, unit.files, self.store, self.incarnation, _read_one)
        if self.in_place and isinstance(self.store, Blobs):
            # Of what is not on this disk only the ends are looked at; what is wrong between them Spark's reader finds.
            access = access_to(self.store)
            faulty, _ = look_at_ends(self.store, unit.files)
            wrong = {each.name for each in faulty}
            sound = [access.path(part.name) for part in unit.files if part.name not in wrong]
            return self._by_jvm(spark, faulty, sound, self.jvm_format, access.options)
        with ThreadPoolExecutor(_DOWNLOADS) as pool:
            found = list(pool.map(lambda part: self._on_disk(part, staging), unit.files))
        faulty = [each for each in found if isinstance(each, Faulty)]
        sound = [each for each in found if isinstance(each, str)]
        return self._by_jvm(spark, faulty, sound, self.jvm_format, {})

    def _by_jvm(
        self,
        spark: SparkSession,
        faulty: Sequence[Faulty],
        sound: Sequence[str],
        jvm_format: str,
        options: Mapping[str, str],
    ) -> DataFrame:
        frames = [fault_rows(spark, faulty)] if faulty or not sound else []
        if sound:
            frames.append(
                spark.read.format(jvm_format)
                .options(**options)
                .option("avroSchema", orjson.dumps(READER_SCHEMA).decode())
                .load([literal(path) for path in sound])
                .transform(self._as_events)
            )
        return reduce(DataFrame.unionByName, frames)

    def _on_disk(self, part: FilePart, staging: Path) -> str | Faulty:
        """A sound file on this machine's disk, or what is wrong with it."""
        try:
            local = self.store.local_path(part.name) or self._stage(part, staging)
            check(local)
        except (BadFile, BadInput) as fault:
            return Faulty(part.name, str(fault))
        except OSError as fault:
            return Faulty(part.name, why_not(fault))
        return local

    def _stage(self, part: FilePart, staging: Path) -> str:
        """Bring it to this machine's disk."""
        to = staging / part.name.replace("/", "+")
        if not to.exists():
            self.store.fetch(part.name, to)
        return str(to)

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
