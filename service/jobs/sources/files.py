"""JSON lines and Parquet as events.

A row with `partition`, `sequence` and `body` is an event as it stands. Any other object is a document of its own: its
place is its file and its line, its time that of the file (so `--incarnation` has to say before or after what it ranks).
"""

import base64
import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import orjson
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from service.jobs.faults import BadInput
from service.jobs.plan import FilePart
from service.jobs.sources.avro_file import BadFile
from service.jobs.storage import Store
from service.source.events import Event

SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")
_BATCH: Final = 1000
_ALIKE: Final = {"partition", "sequence", "body"}


def list_files(store: Store) -> tuple[tuple[FilePart, ...], tuple[str, ...]]:
    """The files to read, and those without a byte. Raises BadInput."""
    found = [file for file in store.list() if file.name.endswith(SUFFIXES)]
    if not found:
        raise BadInput(f"under {store.text()} there is no file that ends in {', '.join(SUFFIXES)}.")
    parts = []
    for number, file in enumerate(found):
        if file.size:
            at = file.modified_ms / 1000
            parts.append(FilePart(file.name, file.size, file.version, f"file-{number}", at))
    return tuple(parts), tuple(file.name for file in found if not file.size)


def read_one(path: Path, part: FilePart) -> Iterator[tuple[str, list[Event]]]:
    """The events of a file. Raises BadFile."""
    rows = _parquet(path) if part.name.endswith(".parquet") else _lines(path, part.name)
    numbered = enumerate(rows)
    while some := list(islice(numbered, _BATCH)):
        by_partition: dict[str, list[Event]] = {}
        for number, row in some:
            partition, event = _event(number, row, part)
            by_partition.setdefault(partition, []).append(event)
        yield from by_partition.items()


def _event(number: int, row: tuple[dict[str, Any] | None, bytes], part: FilePart) -> tuple[str, Event]:
    fields, text = row
    if fields is None or not fields.keys() >= _ALIKE:
        return part.partition, Event(number, str(number), round(part.at * 1000), text, {})
    try:
        event = Event(
            int(fields["sequence"]),
            str(fields.get("offset") or ""),
            _milliseconds(fields.get("enqueued"), part),
            _body(fields["body"]),
            {name.encode(): value for name, value in (fields.get("properties") or {}).items()},
            content_type=fields.get("content_type"),
            content_encoding=fields.get("content_encoding"),
        )
    except (TypeError, ValueError, AttributeError) as fault:
        raise BadFile(f"row {number + 1} is no event: {fault}") from None
    return str(fields["partition"]), event


def _lines(path: Path, name: str) -> Iterator[tuple[dict[str, Any] | None, bytes]]:
    """A line that is no JSON stays as it is: the decoder makes a dead letter of it, with its reason."""
    with _opened(path, name) as file:
        try:
            for line in file:
                text = line.strip()
                if not text:
                    continue
                try:
                    found = orjson.loads(text) if b'"sequence"' in text else None
                except orjson.JSONDecodeError:
                    found = None
                yield (found if isinstance(found, dict) else None), text
        except (EOFError, gzip.BadGzipFile) as fault:
            raise BadFile(f"it is cut off or no gzip: {fault}") from None


def _opened(path: Path, name: str) -> IO[bytes]:
    return gzip.open(path, "rb") if name.endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def _parquet(path: Path) -> Iterator[tuple[dict[str, Any] | None, bytes]]:
    try:
        file = pq.ParquetFile(path)
        alike = set(file.schema_arrow.names) >= _ALIKE
        for batch in file.iter_batches(_BATCH):
            for row in batch.to_pylist(maps_as_pydicts="lossy"):
                yield (row, b"") if alike else (None, json.dumps(row, default=_plain).encode())
    except (pa.ArrowException, OSError) as fault:
        raise BadFile(f"it is no sound Parquet file: {fault}"[:300]) from None


def _plain(value: object) -> object:
    """What JSON has no word for."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _body(value: Any) -> bytes:  # noqa: ANN401 - whatever the file has
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


def _milliseconds(value: Any, part: FilePart) -> int:  # noqa: ANN401 - as above
    match value:
        case None:
            return round(part.at * 1000)
        case int() | float():
            return round(value)
        case datetime():
            at = value
        case _:
            at = datetime.fromisoformat(str(value))
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
