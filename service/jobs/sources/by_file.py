"""Files read by Python tasks, one task for each: the way of everything that Spark's own readers cannot open.

A file that cannot be read whole gives no event but one fault row, which goes along with the events to the end: so it
is counted where they are, and a unit with a fault is never called done.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from service.jobs.events import EVENTS, FAULT, to_arrow
from service.jobs.faults import BadInput
from service.jobs.plan import FilePart
from service.jobs.sources.avro_file import BadFile
from service.jobs.storage import Store
from service.source.events import Event

ReadFile = Callable[[Path, FilePart], Iterator[tuple[str, list[Event]]]]
"""From a local file to partition and events, list by list. Raises BadFile."""


@dataclass(frozen=True, slots=True)
class Faulty:
    """A file that is left out, and why."""

    name: str
    why: str

    def event(self) -> Event:
        """As a row among events."""
        return Event(-1, self.name, 0, self.why.encode(), {}, FAULT)  # type: ignore[arg-type] # a kind of ours


def fault_rows(spark: SparkSession, faults: Sequence[Faulty]) -> DataFrame:
    """Fault rows only."""
    rows = [(0, "", -1, each.name, 0, None, None, None, FAULT, each.why.encode()) for each in faults]
    return spark.createDataFrame(rows, EVENTS)


def events_by_file(
    spark: SparkSession, parts: Sequence[FilePart], store: Store, incarnation: int, read_file: ReadFile
) -> DataFrame:
    """The events of the files, one task per file."""

    def read_numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _read_part(parts[number], store, incarnation, read_file)

    count = len(parts)
    if not count:
        return fault_rows(spark, [])
    return spark.range(0, count, 1, count).mapInArrow(read_numbers, EVENTS)


def _read_part(part: FilePart, store: Store, incarnation: int, read_file: ReadFile) -> Iterator[pa.RecordBatch]:
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        try:
            local = store.local_path(part.name)
            if local is None:
                local = str(Path(folder) / "file")
                store.fetch(part.name, Path(local))
            for partition, events in read_file(Path(local), part):
                yield to_arrow(incarnation, partition, events)
        except (BadFile, BadInput) as fault:
            yield _fault(part.name, str(fault))
        except OSError as fault:
            yield _fault(part.name, why_not(fault))


def why_not(fault: OSError) -> str:
    """Why a file cannot be opened."""
    if isinstance(fault, PermissionError):
        return f"it may not be read: {fault.strerror}. Check its permissions."
    return f"it cannot be opened: {fault.strerror or fault}"


def _fault(name: str, why: str) -> pa.RecordBatch:
    return to_arrow(0, "", [Faulty(name, why).event()])
