"""What a plan speaks of: the cost of a record, what is there, what is needed, what can be reached. Values only."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """What one record takes of each part."""

    ru_per_record: float
    record_bytes: float
    hottest_key: float
    """Share of the records that have the hottest partition key; 0: no key stands out."""
    records_per_core: float
    """Records per second that one worker, which is one core, takes from the hub to Cosmos."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What is there; None: not known, so it limits nothing."""

    throughput: float | None = None
    """RU/s of the container: what it is sold, or the most of its autoscale."""
    physical_partitions: int | None = None
    autoscale: bool = False
    stored_bytes: float = 0.0
    hub_partitions: int | None = None
    hub_hottest: float | None = None
    """Share of the events that the busiest partition of the hub has; None: an even one."""
    workers: int | None = None
    """Workers that run now, in all replicas together."""
    rate_limit: float | None = None
    """Records per second that the settings allow all replicas together."""
    ru_limit: float | None = None
    """RU/s that the settings allow all replicas together."""


@dataclass(frozen=True, slots=True)
class CosmosNeed:
    """What the container must have."""

    ru: float
    """RU/s that the records cost, without head-room and as if keys were even."""
    headroom_ru: float
    skew_ru: float
    """RU/s that lie idle in the other partitions while the hottest has what it needs."""
    throughput: int
    """The three together, rounded up to what is sold."""
    physical_partitions: int
    hottest_share: float
    hottest_ru: float
    """What the hottest partition must serve, without head-room."""

    @property
    def hottest_use(self) -> float:
        """The part of its own RU/s that the hottest partition spends."""
        return self.hottest_ru / (self.throughput / self.physical_partitions)


@dataclass(frozen=True, slots=True)
class HubNeed:
    """What the event hub must have."""

    units_out: int
    """Throughput units to read at this rate."""
    units_in: int
    """Throughput units to send at this rate."""
    partitions: int
    """Those it has; where that is not known, as many as workers and as units to read: a partition has one reader, and
    is guaranteed one unit."""


@dataclass(frozen=True, slots=True)
class FleetNeed:
    """What runs."""

    workers: int
    """Workers without which the busiest would have more than a core's work."""
    replicas: int
    workers_per_replica: int
    busiest_replica: float
    """The largest share of the hub's partitions that one replica may come to own."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that holds the rate back."""

    what: str
    rate: float


@dataclass(frozen=True, slots=True)
class Reach:
    """What can be reached, and by what it is limited: the lowest first."""

    limits: tuple[Limit, ...]

    @property
    def rate(self) -> float | None:
        """Records per second; None where nothing is known that limits it."""
        return self.limits[0].rate if self.limits else None

    def seconds_for(self, records: float, arriving: float = 0.0) -> float | None:
        """How long so many records take while others arrive; None: for ever, or not known."""
        if not records:
            return 0.0
        return records / (self.rate - arriving) if self.rate is not None and self.rate > arriving else None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rate needs. A part is None where no amount of it is enough; `obstacles` say why, in words."""

    rate: float
    headroom: float
    cosmos: CosmosNeed | None
    hub: HubNeed
    fleet: FleetNeed | None
    obstacles: tuple[str, ...]
    warnings: tuple[str, ...]
    next_limit: Limit | None
    """What would stop a higher rate first, with everything as planned."""

    @property
    def reachable(self) -> bool:
        """Whether money can buy it."""
        return not self.obstacles

    @property
    def settings(self) -> dict[str, int | str]:
        """The settings of each replica for this plan; none where it cannot be reached."""
        if self.cosmos is None or self.fleet is None:
            return {}
        spent = (self.cosmos.ru + self.cosmos.headroom_ru) * self.fleet.busiest_replica
        return {
            "EVENTHUB_RATELIMIT": math.ceil(self.rate),
            "EVENTHUB_RATELIMIT_SCOPE": "fleet",
            "WORKERS": self.fleet.workers_per_replica,
            "COSMOS_RULIMIT": math.ceil(spent),
        }
