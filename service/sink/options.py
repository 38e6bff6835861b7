"""How the sink writes."""

from dataclasses import dataclass, field
from typing import Literal

from service.sink.flood import FloodOptions
from service.sink.lane import BatchOptions


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Settings COSMOS_* and DEADLETTER_MAX_*."""

    batch: BatchOptions = field(default_factory=BatchOptions)
    guarded: bool = False
    """COSMOS_WRITE_MODE: guarded writes instead of upserts."""
    stamp: str = "_sluice"
    """Where guarded writes find the stamp."""
    leave_unstamped: bool = False
    """Guarded: a document without a stamp is left alone (backfill) instead of replaced."""
    bulk: Literal["auto", "off"] = "auto"
    retry_wait_seconds: float = 2.0
    """Between tries, where the service names no time."""
    ru_limit: float = 0.0
    """Request units per second; 0: no limit."""
    request_timeout_seconds: float = 65.0
    """As the SDK's: longer than the service itself takes to give up."""
    flood: FloodOptions = field(default_factory=FloodOptions)
