"""What all commands share: options, settings, and running something async."""

import os
import sys
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import typer
import uvloop
from dotenv import dotenv_values
from rich.console import Console
from rich.table import Table

from service.config import Settings, load
from service.ops import logs

T = TypeVar("T")

EnvFile = Annotated[
    Path | None,
    typer.Option("--env-file", metavar="FILE", help="Read NAME=value lines from FILE; the environment wins over it."),
]
Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Force = Annotated[bool, typer.Option("--force", help="Also where another host holds the partition: it loses it.")]


def read_settings(env_file: Path | None) -> Settings:
    """The settings, with logs set up by them. Other variables of the file (AZURE_*, OTEL_*) go into the environment."""
    settings = load(env_file)
    if env_file is not None:
        for name, value in dotenv_values(env_file, interpolate=False).items():
            if name.lower() not in Settings.model_fields and value is not None:
                os.environ.setdefault(name, value)
    logs.configure(settings.log_level, settings.log_format)
    return settings


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run something async to its end."""
    return uvloop.run(work)


def answer_json(content: Any) -> None:  # noqa: ANN401 - anything that JSON has
    """Print an answer as JSON."""
    typer.echo(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode())


def answer_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print an answer as a table; as plain columns where nobody looks at a terminal."""
    if sys.stdout.isatty():
        Console().print(table(columns, rows, title))
        return
    typer.echo("\t".join(columns))
    for row in rows:
        typer.echo("\t".join("" if cell is None else str(cell) for cell in row))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> Table:
    """A table for a terminal."""
    made = Table(title=title)
    for column in columns:
        made.add_column(column)
    for row in rows:
        made.add_row(*("" if cell is None else str(cell) for cell in row))
    return made
