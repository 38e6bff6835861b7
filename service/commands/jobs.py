"""`sluice backfill`, `sluice reconcile`, `sluice repair`: the PySpark jobs, on `local[*]` unless told otherwise."""

import importlib.util
import os
import shutil
from enum import StrEnum
from types import ModuleType
from typing import Annotated

import typer

from service.commands.common import DryRun, EnvFile, read_settings
from service.errors import SetupFault
from service.jobs.options import (
    CAPTURE_NAMES,
    BackfillOptions,
    BudgetOptions,
    EngineOptions,
    ReconcileOptions,
    RepairOptions,
    SourceOptions,
)
from service.units import parse_bytes


class Source(StrEnum):
    """Where the events come from."""

    CAPTURE = "capture"
    HUB = "hub"
    FILES = "files"
    DEADLETTERS = "deadletters"


class UpTo(StrEnum):
    """How far to go."""

    CHECKPOINT = "checkpoint"
    END = "end"


class Reader(StrEnum):
    """What reads Capture's Avro."""

    AUTO = "auto"
    JVM = "jvm"
    PYTHON = "python"


From = Annotated[Source, typer.Option("--source", help="Where the events come from.")]
Report = Annotated[str, typer.Option("--report", metavar="DIR", help="Folder for summary.json and the HTML report.")]
Where = Annotated[str, typer.Option("--path", help="A folder, or blob://container/prefix in the account of BLOB_*.")]
PathFormat = Annotated[str, typer.Option(help="Capture: how files are named (archiveNameFormat).")]
Since = Annotated[str, typer.Option(help="ISO time: leave out what was enqueued before.")]
Until = Annotated[str, typer.Option(help="ISO time: leave out what was enqueued at or after.")]
Incarnation = Annotated[int, typer.Option(help="Life of the hub: its created_at in ms. 0 = ask the hub.")]
Group = Annotated[str, typer.Option("--consumer-group", help="Hub: a group of its own to read with.")]
FirstSequence = Annotated[int, typer.Option(min=0, help="Hub: first sequence of each partition that is read.")]
LastSequence = Annotated[int, typer.Option(min=-1, help="Hub: the last one; -1 = as far as --up-to goes.")]
AvroReader = Annotated[Reader, typer.Option("--reader", help="Capture: Spark's own Avro reader or fastavro.")]
Strict = Annotated[bool, typer.Option("--strict", help="An empty or unreadable file ends the job at its start.")]
Bound = Annotated[UpTo, typer.Option("--up-to", help="To the live consumer's checkpoints, or to the end.")]
Master = Annotated[str, typer.Option(help="Spark master; local[*] unless given.")]
WindowBytes = Annotated[str, typer.Option("--window", help="How much of the source makes one unit, such as 256MiB.")]
Tasks = Annotated[int, typer.Option(min=0, help="Tasks at a time; 0 = as many as Spark has cores.")]
Records = Annotated[float, typer.Option("--rate", min=0, help="Records/s of all tasks together; 0 = no limit.")]
Units = Annotated[float, typer.Option("--ru", min=0, help="RU/s of all tasks together; 0 = no limit.")]


def backfill(
    source: From,
    report: Report,
    env_file: EnvFile = None,
    path: Where = "",
    path_format: PathFormat = CAPTURE_NAMES,
    since: Since = "",
    until: Until = "",
    incarnation: Incarnation = 0,
    consumer_group: Group = "",
    first_sequence: FirstSequence = 0,
    last_sequence: LastSequence = -1,
    reader: AvroReader = Reader.AUTO,
    strict: Strict = False,
    up_to: Bound = UpTo.CHECKPOINT,
    run_id: Annotated[str, typer.Option(help="Run to begin or go on with; empty = the unfinished one, else new.")] = "",
    ignore_live: Annotated[bool, typer.Option("--ignore-live", help="Do not yield to the live consumer.")] = False,
    dry_run: DryRun = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what would be done: units, records, RU, time.")
    ] = False,
    rate: Records = 0.0,
    ru: Units = 0.0,
    master: Master = "",
    tasks: Tasks = 0,
    window: WindowBytes = "256MiB",
) -> None:
    """Load history into Cosmos, guarded: no newer document is ever overwritten. An interrupted run goes on."""
    options = BackfillOptions(
        source=SourceOptions(
            source.value,
            path,
            path_format,
            since,
            until,
            incarnation,
            consumer_group,
            first_sequence,
            last_sequence,
            reader.value,
            strict,
        ),
        report=report,
        engine=EngineOptions(master, tasks, parse_bytes(window)),
        budget=BudgetOptions(rate, ru),
        run_id=run_id,
        up_to=up_to.value,
        ignore_live=ignore_live,
        dry_run=dry_run,
        explain=explain,
    )
    raise typer.Exit(_jobs().backfill(options, read_settings(env_file)))


def reconcile(
    source: From,
    report: Report,
    env_file: EnvFile = None,
    path: Where = "",
    path_format: PathFormat = CAPTURE_NAMES,
    since: Since = "",
    until: Until = "",
    incarnation: Incarnation = 0,
    consumer_group: Group = "",
    first_sequence: FirstSequence = 0,
    last_sequence: LastSequence = -1,
    reader: AvroReader = Reader.AUTO,
    strict: Strict = False,
    up_to: Bound = UpTo.CHECKPOINT,
    changed_since: Annotated[str, typer.Option(help="ISO time: look only at what changed since then.")] = "",
    recheck: Annotated[float, typer.Option(min=0, help="Seconds before suspects are read again.")] = 10.0,
    threshold: Annotated[int, typer.Option(min=0, help="So many differences are let pass.")] = 0,
    master: Master = "",
    tasks: Tasks = 0,
) -> None:
    """Prove that nothing was lost: what the stream says against what Cosmos has. Exit code 4 on differences."""
    options = ReconcileOptions(
        source=SourceOptions(
            source.value,
            path,
            path_format,
            since,
            until,
            incarnation,
            consumer_group,
            first_sequence,
            last_sequence,
            reader.value,
            strict,
        ),
        report=report,
        engine=EngineOptions(master, tasks),
        up_to=up_to.value,
        changed_since=changed_since,
        recheck_seconds=recheck,
        threshold=threshold,
    )
    raise typer.Exit(_jobs().reconcile(options, read_settings(env_file)))


def repair(
    report: Annotated[str, typer.Option("--report", metavar="DIR", help="The folder that reconcile wrote.")],
    env_file: EnvFile = None,
    write: Annotated[bool, typer.Option("--write", help="Do it; without this it only says what it would do.")] = False,
    rate: Records = 0.0,
    ru: Units = 0.0,
    master: Master = "",
    tasks: Tasks = 0,
) -> None:
    """Mend what a reconciliation found: missing, stale and different documents. A dry run unless --write."""
    options = RepairOptions(report, EngineOptions(master, tasks), BudgetOptions(rate, ru), write)
    raise typer.Exit(_jobs().repair(options, read_settings(env_file)))


def _jobs() -> ModuleType:
    """The jobs, where Spark and Java are there."""
    if importlib.util.find_spec("pyspark") is None:
        raise SetupFault("the jobs need PySpark: pip install 'sluice[spark]', or use the image's target `spark`.")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise SetupFault(
            "the jobs need Java 17 or newer, and there is no `java` on the PATH. Debian, Ubuntu: "
            "apt install openjdk-17-jre-headless. macOS: brew install openjdk@17."
        )
    from service.jobs import commands  # noqa: PLC0415 - extra `spark`

    return commands
