"""Capacity by arithmetic: what a rate needs, and what rate can be reached with what is there.

Pure: numbers in, a frozen `Plan` or `Reach` out, with what limits it in words. Where the numbers come from is the
business of `measure.py`. Head-room is a figure of its own everywhere and never part of another one unsaid.

The model of skew has one number, `hottest_key`: the share of the records that stay in one physical partition however
many there are, because they have one partition key. All others spread evenly, so the hottest of n partitions has
`hottest_key + (1 - hottest_key) / n`. What was measured as uneven is put down to one such key: the careful reading,
since a hot key is the one thing that more partitions do not mend.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from service.ops.capacity import CosmosNeed, Cost, FleetNeed, HubNeed, Limit, Plan, Reach, Supply

RU_PER_PARTITION: Final = 10_000
"""The most a physical partition of Cosmos serves ("Azure Cosmos DB service quotas")."""
BYTES_PER_PARTITION: Final = 50 * 10**9
"""The most it stores (same page)."""
RU_PER_CONTAINER: Final = 1_000_000
"""The most a container is sold without asking Microsoft for more (same page)."""
LEAST_FIXED_RU: Final = 400
LEAST_AUTOSCALE_RU: Final = 1_000
STEP_FIXED_RU: Final = 100
STEP_AUTOSCALE_RU: Final = 1_000

# "Scaling with Event Hubs": a throughput unit of the Standard tier. A megabyte is taken for the smaller of its two
# meanings, so that a unit too many may be bought, never one too few.
UNIT_IN_EVENTS: Final = 1_000
UNIT_IN_BYTES: Final = 1_000_000
UNIT_OUT_EVENTS: Final = 4_096
UNIT_OUT_BYTES: Final = 2_000_000

CORES_PER_REPLICA: Final = 4
"""The most that Container Apps give a replica in the Consumption plan; a worker fills one."""
UNEVEN_HUB: Final = 1.25
"""Times an even share, from which on it is worth a word; chosen, not measured."""
_ROUNDING: Final = 1e-9
"""Far below any figure here: 5.000000000001 partitions are five."""


def plan(rate: float, cost: Cost, supply: Supply, *, headroom: float, records: int = 0) -> Plan:
    """What it takes to move `rate` records per second; `records`: so many in all, 0 where they never end."""
    obstacles: list[str] = []
    cosmos = _cosmos(rate, cost, supply, headroom, records, obstacles)
    fleet = _fleet(rate, cost, supply, obstacles)
    hub = _hub(rate, cost, supply)
    next_limit = None
    if cosmos and fleet:
        planned = replace(
            supply,
            throughput=cosmos.throughput,
            physical_partitions=cosmos.physical_partitions,
            workers=fleet.workers,
            rate_limit=None,
            ru_limit=None,
        )
        next_limit = reach(cost, planned).limits[0]
    return Plan(rate, headroom, cosmos, hub, fleet, tuple(obstacles), tuple(_warnings(hub, fleet, supply)), next_limit)


def reach(cost: Cost, supply: Supply) -> Reach:
    """The highest rate that what is there carries, spent to the last unit."""
    limits: list[Limit] = []
    if supply.throughput is not None and supply.physical_partitions is not None:
        each = min(RU_PER_PARTITION, supply.throughput / supply.physical_partitions)
        hottest = hottest_share(cost.hottest_key, supply.physical_partitions)
        even = cost.hottest_key * supply.physical_partitions < 1 / 10  # it costs less than a tenth of the throughput
        what = "RU/s of the container" if even else "RU/s of the hottest physical partition"
        limits.append(Limit(what, each / (cost.ru_per_record * hottest)))
    if supply.hub_partitions is not None:
        readers = cost.records_per_core / _busiest(supply, supply.hub_partitions)
        limits.append(Limit("one reader for each partition of the hub", readers))
    if supply.workers is not None:
        limits.append(Limit("cores of the workers", cost.records_per_core / _busiest(supply, supply.workers)))
    if supply.rate_limit is not None:
        limits.append(Limit("EVENTHUB_RATELIMIT", supply.rate_limit))
    if supply.ru_limit is not None:
        limits.append(Limit("COSMOS_RULIMIT", supply.ru_limit / cost.ru_per_record))
    return Reach(tuple(sorted(limits, key=lambda limit: limit.rate)))


def hottest_share(hottest_key: float, partitions: int) -> float:
    """The share of the records that the hottest of so many physical partitions has."""
    return hottest_key + (1 - hottest_key) / partitions


def shares(counts: Collection[float]) -> tuple[float, ...]:
    """Counts as parts of one; even where nothing was counted."""
    total = sum(counts)
    return tuple(count / total if total else 1 / len(counts) for count in counts)


def hottest_key_of(by_partition: Collection[float], largest_key: float = 0.0) -> float:
    """The hottest key's share by what was counted in each physical partition, and in the largest key if that is known.

    One partition alone shows nothing of how keys are spread.
    """
    total, number = sum(by_partition), len(by_partition)
    if not total:
        return 0.0
    uneven = (max(shares(by_partition)) * number - 1) / (number - 1) if number > 1 else 0.0
    return min(1.0, max(0.0, uneven, largest_key / total))


def ceil(value: float) -> int:
    """The next whole number, and never less than one of anything."""
    return max(1, math.ceil(value - _ROUNDING))


def _cosmos(
    rate: float, cost: Cost, supply: Supply, headroom: float, records: int, obstacles: list[str]
) -> CosmosNeed | None:
    ru = rate * cost.ru_per_record
    wanted = ru * (1 + headroom)
    alone = wanted * cost.hottest_key
    if alone >= RU_PER_PARTITION:
        obstacles.append(
            f"One partition key has {cost.hottest_key:.1%} of the records and needs {alone:,.0f} RU/s with the "
            f"head-room; a physical partition serves {RU_PER_PARTITION:,}, and a key cannot be split. Another "
            "partition key, or a lower rate."
        )
        return None
    # The hottest partition's share of the demand must fit into what one partition serves.
    by_ru = (1 - cost.hottest_key) * wanted / (RU_PER_PARTITION - alone)
    by_size = (supply.stored_bytes + records * cost.record_bytes) / BYTES_PER_PARTITION
    # Never fewer than there are: Cosmos splits, and does not merge by itself.
    partitions = max(ceil(by_ru), ceil(by_size), supply.physical_partitions or 1)
    share = hottest_share(cost.hottest_key, partitions)
    throughput = _sold(wanted * share * partitions, autoscale=supply.autoscale)
    if throughput > RU_PER_CONTAINER:
        obstacles.append(
            f"{throughput:,} RU/s are needed; a container is sold at most {RU_PER_CONTAINER:,} unless Microsoft "
            "raises it. Fewer RU per record (index less), another partition key, or a lower rate."
        )
        return None
    idle = wanted * share * partitions - wanted
    return CosmosNeed(ru, wanted - ru, idle, throughput, partitions, share, ru * share)


def _sold(ru: float, *, autoscale: bool) -> int:
    step = STEP_AUTOSCALE_RU if autoscale else STEP_FIXED_RU
    return max(LEAST_AUTOSCALE_RU if autoscale else LEAST_FIXED_RU, ceil(ru / step) * step)


def _hub(rate: float, cost: Cost, supply: Supply) -> HubNeed:
    units_out = ceil(max(rate / UNIT_OUT_EVENTS, rate * cost.record_bytes / UNIT_OUT_BYTES))
    units_in = ceil(max(rate / UNIT_IN_EVENTS, rate * cost.record_bytes / UNIT_IN_BYTES))
    partitions = supply.hub_partitions or max(ceil(rate / cost.records_per_core), units_out)
    return HubNeed(units_out, units_in, partitions)


def _warnings(hub: HubNeed, fleet: FleetNeed | None, supply: Supply) -> Iterator[str]:
    if hub.units_out > hub.partitions:
        yield (
            f"{hub.units_out} throughput units are to be read from {hub.partitions} partitions of the hub, but a "
            "partition is guaranteed one unit: more may go through, and is not promised."
        )
    uneven = (supply.hub_hottest or 0.0) * hub.partitions
    if fleet is not None and fleet.workers > 1 and uneven > UNEVEN_HUB:
        yield (
            f"The busiest partition of the hub has {uneven:.1f} times an even share. The rate is shared by partitions "
            "owned, so its worker gets fewer slots than it has events, and the fleet stays below the rate."
        )


def _fleet(rate: float, cost: Cost, supply: Supply, obstacles: list[str]) -> FleetNeed | None:
    workers = _workers(rate, cost, supply)
    if workers is None:
        busiest = rate * _busiest(supply, supply.hub_partitions or 1)
        obstacles.append(
            f"The busiest of the hub's {supply.hub_partitions} partitions would bring {busiest:,.0f} records/s to its "
            f"one reader, which takes {cost.records_per_core:,.0f}. More partitions (a Standard hub: a new hub), keys "
            "that spread better over them, or a lower rate."
        )
        return None
    replicas = ceil(workers / CORES_PER_REPLICA)
    each = ceil(workers / replicas)
    return FleetNeed(workers, replicas, each, _busiest_replica(supply, replicas, each))


def _workers(rate: float, cost: Cost, supply: Supply) -> int | None:
    """The fewest of which none has more than a core's work; None if that is more than there are partitions."""
    if supply.hub_partitions is None:
        return ceil(rate / cost.records_per_core)
    room = cost.records_per_core / rate + _ROUNDING
    return next((each for each in range(1, supply.hub_partitions + 1) if _busiest(supply, each) <= room), None)


def _busiest(supply: Supply, workers: int) -> float:
    """The share of the busiest worker: the hottest partition, and as many others as an even split gives it."""
    partitions = supply.hub_partitions
    if partitions is None:
        return 1 / workers
    hottest = max(supply.hub_hottest or 0.0, 1 / partitions)
    others = math.ceil(partitions / min(workers, partitions)) - 1
    return hottest + (others * (1 - hottest) / (partitions - 1) if others else 0.0)


def _busiest_replica(supply: Supply, replicas: int, workers_each: int) -> float:
    """By partitions owned, since a rate of the fleet is shared by them."""
    partitions = supply.hub_partitions
    if partitions is None:
        return 1 / replicas
    return min(1.0, math.ceil(partitions / (replicas * workers_each)) * workers_each / partitions)
