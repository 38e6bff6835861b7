"""The folder that a job leaves behind: summary.json, one HTML file, and of a reconciliation the differences."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from service.jobs.cosmos_reader import STAMP_ARROW
from service.jobs.explain import Explanation
from service.jobs.faults import BadInput
from service.jobs.page import backfill_page, page, reconcile_page

_CHUNK_ROWS: Final = 10_000
_EXAMPLES: Final = 20
_SCHEMA: Final = pa.schema(
    [
        ("state", pa.string()),
        ("key", pa.string()),
        ("id", pa.string()),
        ("operation", pa.string()),
        ("stamp", STAMP_ARROW),
        ("hash", pa.string()),
        ("found_stamp", STAMP_ARROW),
        ("found_hash", pa.string()),
        ("etag", pa.string()),
    ]
)


def prepare(folder: str) -> Path:
    """The folder, there and writable. Raises BadInput, before an hour of work is done for nothing."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as fault:
        raise BadInput(f"--report: {path} cannot be written ({fault.strerror}). Give a folder that can.") from None


def write_backfill(folder: Path, summary: Mapping[str, Any]) -> None:
    """summary.json and report.html."""
    _put(folder / "report.html", backfill_page(summary).encode())
    _put(folder / "summary.json", orjson.dumps(summary, option=orjson.OPT_INDENT_2))


def write_reconcile(folder: Path, summary: Mapping[str, Any], differences: DataFrame) -> None:
    """The differences go through the driver, so that the folder need not be one that all machines share."""
    keys: Counter[str] = Counter()
    examples: list[dict[str, Any]] = []
    place = folder / "differences"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    rows = (row.asDict(recursive=True) for row in differences.select(*_SCHEMA.names).toLocalIterator())
    for number, chunk in enumerate(_chunks(rows)):
        keys.update(row["key"] for row in chunk)
        examples += chunk[: _EXAMPLES - len(examples)]
        pq.write_table(pa.Table.from_pylist(chunk, _SCHEMA), place / f"part-{number:05d}.parquet")
    _put(folder / "report.html", reconcile_page(summary, examples, keys).encode())
    _put(folder / "summary.json", orjson.dumps(summary, option=orjson.OPT_INDENT_2))


def write_explanation(folder: Path, found: Explanation) -> None:
    """summary.json and report.html of a run that was only explained."""
    lines = "".join(f"<p>{escape(line)}</p>" for line in found.text().splitlines())
    _put(folder / "report.html", page("Backfill: what would be done", "Nothing was written.", "part", [lines]).encode())
    _put(
        folder / "summary.json",
        orjson.dumps({"job": "explain", "exit_code": 0, **found.encode()}, option=orjson.OPT_INDENT_2),
    )


def write_repair(folder: Path, found: Mapping[str, Any]) -> None:
    """repair.json, beside what the reconciliation wrote."""
    _put(folder / "repair.json", orjson.dumps(found, option=orjson.OPT_INDENT_2))


def _chunks(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while chunk := list(islice(rows, _CHUNK_ROWS)):
        yield chunk


def _put(path: Path, body: bytes) -> None:
    """Whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".report")
    with os.fdopen(handle, "wb") as file:
        file.write(body)
    Path(name).chmod(0o644)
    Path(name).replace(path)
