"""What each job can be told. The command line, spark-submit and tests all build these."""

from dataclasses import dataclass, field
from typing import Literal

CAPTURE_NAMES = "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"
"""The service's default `archiveNameFormat`."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where the events come from."""

    source: Literal["capture", "hub", "files", "deadletters"]
    path: str = ""
    """A folder, or `blob://container/prefix` in the storage account of BLOB_*. Default for Capture: `blob://capture`,
    for dead letters: the container of DEADLETTER_CONTAINER."""
    path_format: str = CAPTURE_NAMES
    """Capture: how the files are named (`archiveNameFormat`)."""
    since: str = ""
    """ISO time: leave out what was enqueued before."""
    until: str = ""
    """ISO time: leave out what was enqueued at or after."""
    incarnation: int = 0
    """Which life of the hub the events are of: its created_at in ms. 0: ask the hub."""
    consumer_group: str = ""
    """Hub: the group to read with; never that of the live consumer."""
    first_sequence: int = 0
    """Hub: the first sequence of each partition that is read."""
    last_sequence: int = -1
    """Hub: the last one; -1: as far as `up_to` goes."""
    reader: Literal["auto", "jvm", "python"] = "auto"
    """Capture: by Spark's own Avro reader or by fastavro. `auto`: the first that this Spark can do."""
    strict: bool = False
    """A file that is empty or cannot be read ends the job before anything is written."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which Spark."""

    master: str = ""
    """`local[*]` unless given here or by spark-submit."""
    tasks: int = 0
    """Tasks that write or read Cosmos at a time; 0: as many as Spark has cores."""
    window_bytes: int = 256 * 1024 * 1024
    """How much of the source makes one unit."""


@dataclass(frozen=True, slots=True)
class BudgetOptions:
    """What all tasks together may spend per second. 0: no limit."""

    records_per_second: float = 0.0
    ru_per_second: float = 0.0
    in_flight: int = 2000
    """Records that one task may have on their way."""


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """`sluice backfill`."""

    source: SourceOptions
    report: str
    """Folder for summary.json and report.html."""
    engine: EngineOptions = field(default_factory=EngineOptions)
    budget: BudgetOptions = field(default_factory=BudgetOptions)
    run_id: str = ""
    """Which run to begin or to go on with. Empty: the unfinished one of the same command, else a new one."""
    up_to: Literal["checkpoint", "end"] = "checkpoint"
    """How far: to the live consumer's checkpoints (to the end where there are none), or to the end."""
    ignore_live: bool = False
    """Do not slow down while the live consumer falls behind."""
    dry_run: bool = False
    """Read, decode and choose, and write nothing."""
    explain: bool = False
    """Only say what would be done: units, records, bytes, RU and time."""


@dataclass(frozen=True, slots=True)
class ReconcileOptions:
    """`sluice reconcile`."""

    source: SourceOptions
    report: str
    engine: EngineOptions = field(default_factory=EngineOptions)
    up_to: Literal["checkpoint", "end"] = "checkpoint"
    changed_since: str = ""
    """ISO time: look only at events enqueued, and at documents changed (by change feed), since then."""
    recheck_seconds: float = 10.0
    """How long to wait before suspects are read again."""
    threshold: int = 0
    """So many differences are let pass."""


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """`sluice repair`."""

    report: str
    """The folder that reconcile wrote."""
    engine: EngineOptions = field(default_factory=EngineOptions)
    budget: BudgetOptions = field(default_factory=BudgetOptions)
    write: bool = False
    """Without it: a dry run, which says what would be done."""
