"""Dead letters as events: what was given up before, to be tried again or to be accounted for."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - as all of Spark's documentation has it

from service.jobs.faults import BadInput
from service.jobs.plan import FilePart
from service.jobs.storage import Store
from service.source.events import Event

LETTERS = T.StructType(
    [
        T.StructField("incarnation", T.LongType(), nullable=False),
        T.StructField("partition", T.StringType(), nullable=False),
        T.StructField("sequence", T.LongType(), nullable=False),
        T.StructField("index", T.IntegerType(), nullable=False),
    ]
)
"""Which records are dead letters."""


@dataclass(frozen=True, slots=True)
class LetterFiles:
    """Files of dead letters, and those of them that can be parts of a plan."""

    parts: tuple[FilePart, ...]


def list_letters(store: Store) -> LetterFiles:
    """All files of letters; none where nobody ever wrote one."""
    try:
        found = store.list()
    except BadInput as fault:
        if "no such blob container" not in str(fault):
            raise
        found = []
    parts = [
        FilePart(file.name, file.size, file.version, at=file.modified_ms / 1000)
        for file in found
        if file.name.endswith(".jsonl") and file.size
    ]
    return LetterFiles(tuple(parts))


def letter_keys(spark: SparkSession, store: Store, files: LetterFiles) -> DataFrame:
    """Which records are dead letters, each once."""
    parts = files.parts

    def read_numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = list(_letters(store, parts[number].name))
                columns = [[row[name] for row in rows] for name in LETTERS.fieldNames()]
                kinds = (pa.int64(), pa.string(), pa.int64(), pa.int32())
                arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=LETTERS.fieldNames())

    if not parts:
        return spark.createDataFrame([], LETTERS)
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(read_numbers, LETTERS).dropDuplicates()


def read_one(path: Path, _part: FilePart) -> Iterator[tuple[str, list[Event]]]:
    """The events of a file of letters: of several letters of one event the first has its body, and stands for all."""
    for row in _rows(path.read_bytes()):
        if row.get("body") is not None:
            yield str(row["partition"]), [_event(row)]


def _event(row: dict[str, object]) -> Event:
    at = datetime.fromisoformat(str(row["enqueued"]))
    properties = row["properties"] if isinstance(row["properties"], dict) else {}
    return Event(
        int(str(row["sequence"])),
        str(row["offset"]),
        round(at.timestamp() * 1000),
        base64.b64decode(str(row["body"])),
        {name.encode(): value.encode() if isinstance(value, str) else value for name, value in properties.items()},
        content_type=str(row["content_type"]) if row["content_type"] else None,
        content_encoding=str(row["content_encoding"]) if row["content_encoding"] else None,
    )


def _letters(store: Store, name: str) -> Iterator[dict[str, object]]:
    import tempfile  # noqa: PLC0415 - only in tasks

    with tempfile.NamedTemporaryFile(prefix="sluice-") as file:
        store.fetch(name, Path(file.name))
        yield from _rows(Path(file.name).read_bytes())


def _rows(text: bytes) -> Iterator[dict[str, object]]:
    """A torn line, left by a process that died while appending, is no letter."""
    for line in text.splitlines():
        try:
            row = orjson.loads(line) if line else None
        except orjson.JSONDecodeError:
            continue
        if isinstance(row, dict):
            yield row
