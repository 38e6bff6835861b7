"""The figures that a plan is made of, each with where it came from: given, measured, read from a service, assumed."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from service.config import Settings
from service.ops.capacity import Cost, Supply

RECORDS_PER_CORE = 8_000
"""Of 1 KB, the lower end of what docs/benchmarks.md comes to."""
RECORD_BYTES = 1_024
HEADROOM = 0.2
"""A fifth, as the runbook advises: keys and seconds are never quite even."""
RULE_OF_THUMB_RU = 6.0
"""For a document of 1 KB with one indexed path: the original sample's figure, and that of Microsoft's own samples."""


class Name(StrEnum):
    """The figures, in the order in which they are shown."""

    RATE = "records per second"
    RU_PER_RECORD = "RU per record"
    RECORD_BYTES = "bytes per record"
    HOTTEST_KEY = "share of the hottest key"
    RECORDS_PER_CORE = "records per second and core"
    HEADROOM = "head-room"
    THROUGHPUT = "RU/s of the container"
    PHYSICAL_PARTITIONS = "physical partitions"
    STORED_BYTES = "bytes stored"
    HUB_PARTITIONS = "partitions of the hub"
    HUB_HOTTEST = "share of the hub's busiest partition"
    WORKERS = "workers at work"
    ARRIVING = "arriving per second"
    LAG = "lag"


SHARES = frozenset({Name.HOTTEST_KEY, Name.HUB_HOTTEST, Name.HEADROOM})
"""Those that are parts of one."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, and where it came from."""

    value: float
    source: Literal["given", "measured", "read", "assumed"]
    how: str


@dataclass(slots=True)
class Facts:
    """What is known. Filled while asking, read afterwards."""

    figures: dict[Name, Figure] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    autoscale: bool = False

    def value(self, name: Name) -> float | None:
        """The number alone; None where it is not known."""
        figure = self.figures.get(name)
        return figure.value if figure else None

    def read(self, name: Name, value: float, how: str) -> None:
        """A service has said so."""
        self.figures[name] = Figure(value, "read", how)

    def measured(self, name: Name, value: float, how: str) -> None:
        """It was counted."""
        self.figures[name] = Figure(value, "measured", how)

    def give(self, name: Name, value: float | None, how: str) -> None:
        """The user says so, which counts more than anything found out; None: says nothing."""
        if value is not None:
            self.figures[name] = Figure(value, "given", how)

    def assume(self) -> None:
        """Fill in what neither was given nor could be found out, as far as there is a rule for it."""
        self._assume(Name.RECORD_BYTES, RECORD_BYTES, "say --record-bytes")
        kilobytes = self.figures[Name.RECORD_BYTES].value / 1024
        # Grows with size, at most by 1 RU a KB (documented: 50 RU for 100 KB); never below the rule for 1 KB.
        ru = max(RULE_OF_THUMB_RU, RULE_OF_THUMB_RU - 1 + kilobytes)
        self._assume(Name.RU_PER_RECORD, ru, "rule of thumb, one indexed path; run a while, or say --ru-per-record")
        self._assume(Name.HOTTEST_KEY, 0.0, "no key stands out; say --hottest-share")
        self._assume(Name.RECORDS_PER_CORE, RECORDS_PER_CORE, "benchmark with 1 KB; say --records-per-core")
        self._assume(Name.HEADROOM, HEADROOM, "say --headroom")

    def _assume(self, name: Name, value: float, how: str) -> None:
        self.figures.setdefault(name, Figure(value, "assumed", how))

    def cost(self) -> Cost:
        """What a record takes. Only after `assume`."""
        figures = self.figures
        return Cost(
            figures[Name.RU_PER_RECORD].value,
            figures[Name.RECORD_BYTES].value,
            figures[Name.HOTTEST_KEY].value,
            figures[Name.RECORDS_PER_CORE].value,
        )

    def supply(self, settings: Settings | None) -> Supply:
        """What is there, and what the settings allow of it."""
        workers = _whole(self.value(Name.WORKERS))
        replicas = -(-workers // settings.workers) if workers and settings else 1
        return Supply(
            throughput=self.value(Name.THROUGHPUT),
            physical_partitions=_whole(self.value(Name.PHYSICAL_PARTITIONS)),
            autoscale=self.autoscale,
            stored_bytes=self.value(Name.STORED_BYTES) or 0.0,
            hub_partitions=_whole(self.value(Name.HUB_PARTITIONS)),
            hub_hottest=self.value(Name.HUB_HOTTEST),
            workers=workers,
            rate_limit=_rate_limit(settings, replicas) if settings else None,
            ru_limit=settings.cosmos_rulimit * replicas if settings and settings.cosmos_rulimit else None,
        )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _rate_limit(settings: Settings, replicas: int) -> float | None:
    if not settings.eventhub_ratelimit:
        return None
    return settings.eventhub_ratelimit * (1 if settings.eventhub_ratelimit_scope == "fleet" else replicas)
