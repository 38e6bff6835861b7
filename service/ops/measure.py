"""What `sluice plan` can find out by asking: a replica, the hub, the blobs, Cosmos. Each whatever became of the others.

Nobody is disturbed: descriptions, listings and statistics are read, and a sample of events only where no consumer
reads (see sample.py). What cannot be found out is left out, with a note that says why and which option tells it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azure.identity.aio import DefaultAzureCredential

from service import options
from service.config import Settings
from service.errors import SluiceError
from service.ops import replica
from service.ops.figures import Facts, Name
from service.ops.planner import hottest_key_of, shares
from service.ops.sample import Sample, read_sample, tally
from service.sink.container import Refused
from service.sink.cosmos import CosmosContainer
from service.sink.record import Decoder
from service.sink.routing import PartitionKeyDefinition, RangeMap
from service.source.connect import connect_blobs, connect_hub
from service.source.event_hubs import EventHubs
from service.source.events import Event, Hub, PartitionId
from service.source.hub import HubDescription, PartitionDescription
from service.source.receiver import ReceiverOptions
from service.source.store import Stored

TRY_SECONDS = 60.0
ARRIVING_SECONDS = 2.0
"""The hub is asked twice, so long apart, for what arrives meanwhile."""
ENOUGH_RECORDS = 100
"""Fewer, in all or in each part, say little: a plan made of them would only look measured."""


@dataclass(slots=True)
class _Hub:
    """What the hub gave that Cosmos' answer is needed for."""

    hub: Hub | None = None
    events: list[tuple[PartitionId, Event]] = field(default_factory=list)


@dataclass(slots=True)
class _Ranges:
    """What Cosmos gave that the sample is needed for."""

    definition: PartitionKeyDefinition | None = None
    ranges: Sequence[tuple[str, str, str]] = ()


async def measure(settings: Settings, sample: int) -> Facts:
    """All that can be found out; `sample`: so many events at most, 0 for none."""
    facts, hub, ranges = Facts(), _Hub(), _Ranges()
    await asyncio.gather(
        _tried("the replica", facts, lambda: _ask_replica(settings, facts)),
        _tried("Event Hubs", facts, lambda: _ask_hub(settings, sample, facts, hub)),
        _tried("Cosmos", facts, lambda: _ask_cosmos(settings, facts, ranges)),
    )
    if hub.hub is not None and hub.events and ranges.definition is not None:
        decoder = Decoder(options.documents(settings), ranges.definition)
        _use_sample(facts, tally(hub.events, decoder, hub.hub, RangeMap(ranges.definition, ranges.ranges)))
    return facts


async def _tried(what: str, facts: Facts, work: Callable[[], Awaitable[None]]) -> None:
    try:
        async with asyncio.timeout(TRY_SECONDS):
            await work()
    except (SluiceError, Refused) as fault:
        facts.notes.append(f"{what} could not be asked: {fault}")
    except TimeoutError:
        facts.notes.append(f"{what} did not answer within {TRY_SECONDS:.0f} s")


async def _ask_replica(settings: Settings, facts: Facts) -> None:
    where = replica.address(settings)
    try:
        status = await asyncio.to_thread(replica.fetch_status, where)
        completed, ru = _spent(status) if status else (0, 0.0)
    except (ValueError, KeyError, TypeError):
        facts.notes.append(f"what answers at {where} is no replica of this service")
        return
    if status is None:
        facts.notes.append(f"no consumer answers at {where}: RU per record is not measured")
    elif completed < ENOUGH_RECORDS or not ru:
        facts.notes.append(f"the consumer at {where} has committed {completed:,} records: too few to measure RU by")
    else:
        facts.measured(Name.RU_PER_RECORD, ru / completed, f"{completed:,} records of the consumer at {where}")


def _spent(status: Mapping[str, Any]) -> tuple[int, float]:
    """Records completed, and what they have cost, as the metric `sluice.request_units.per_record` has it."""
    return status["records"]["committed"] + status["records"]["superseded"], float(status["ru"])


async def _ask_hub(settings: Settings, sample: int, facts: Facts, found: _Hub) -> None:
    fetch = ReceiverOptions(prefetch=max(1, min(300, sample)), max_wait_seconds=2.0)
    client = connect_hub(options.hub(settings), fetch)
    try:
        description = await client.describe()
        before = await _describe_all(client, description)
        began = asyncio.get_running_loop().time()
        _use_descriptions(facts, before)
        found.hub = Hub(client.namespace, client.name, settings.eventhub_consumergroup, description.created_ms)
        held = await _ask_leases(settings, found.hub, before, facts)
        free = {name: one for name, one in before.items() if name not in held}
        if sample and free:
            found.events = await read_sample(client, free, sample)
        if sample and not found.events:
            facts.notes.append(
                "no sample of events was read: every partition with events has a reader, or there are none"
            )
        await asyncio.sleep(max(0.0, began + ARRIVING_SECONDS - asyncio.get_running_loop().time()))
        after = await _describe_all(client, description)
        seconds = asyncio.get_running_loop().time() - began
        arrived = sum(after[name].last - before[name].last for name in before)
        facts.measured(Name.ARRIVING, arrived / seconds, f"{arrived:,} events in {seconds:.1f} s")
    finally:
        await client.close()


async def _describe_all(client: EventHubs, description: HubDescription) -> dict[PartitionId, PartitionDescription]:
    """Every partition at once: each takes half a second."""
    names = description.partitions
    return dict(zip(names, await asyncio.gather(*map(client.describe_partition, names)), strict=True))


def _use_descriptions(facts: Facts, partitions: Mapping[PartitionId, PartitionDescription]) -> None:
    facts.read(Name.HUB_PARTITIONS, len(partitions), "the hub")
    counts = [one.last - one.first_kept + 1 for one in partitions.values()]
    if sum(counts) >= ENOUGH_RECORDS * len(counts):
        how = f"{sum(counts):,} events that the hub keeps"
        facts.measured(Name.HUB_HOTTEST, max(shares(counts)), how)
    # Offsets are opaque, but mostly they count bytes, and these are what throughput units are counted by.
    sized = [one for one in partitions.values() if one.last_offset.isdecimal() and one.last > 0]
    events = sum(one.last for one in sized)
    if events >= ENOUGH_RECORDS:
        total = sum(int(one.last_offset) for one in sized)
        facts.measured(Name.RECORD_BYTES, total / events, f"offsets of {events:,} events, one record each")


async def _ask_leases(
    settings: Settings, hub: Hub, partitions: Mapping[PartitionId, PartitionDescription], facts: Facts
) -> set[PartitionId]:
    """Lag and hosts, by the blobs; gives the partitions that somebody holds."""
    if not settings.cosmos_write:
        return set()  # a dry run has its leases in memory
    blobs = connect_blobs(settings.blob_container or "", **options.blob_account(settings))
    store = options.lease_store(settings, blobs, adopt=True)
    try:
        await store.prepare(hub)
        live = [lease for lease in await store.list(list(partitions)) if lease.live]
        stored = {name: await store.read(name) for name in partitions}
    except SluiceError as fault:
        facts.notes.append(f"lag is not known: {fault}")
        return set()
    finally:
        await store.close()
    lag = sum(_lag(one, stored[name]) for name, one in partitions.items())
    facts.read(Name.LAG, lag, "the hub and the checkpoints")
    if live:
        facts.read(Name.WORKERS, len({lease.owner for lease in live}), "hosts that hold a lease")
    return {lease.partition for lease in live}


def _lag(description: PartitionDescription, stored: Stored | None) -> int:
    checkpoint = stored.checkpoint if stored else None
    return max(0, description.last - (checkpoint.sequence if checkpoint else description.first_kept - 1))


async def _ask_cosmos(settings: Settings, facts: Facts, found: _Ranges) -> None:
    async with DefaultAzureCredential() as identity:
        container = CosmosContainer(options.cosmos(settings, identity))
        try:
            found.definition = await container.describe()
            found.ranges = await container.read_ranges()
            facts.read(Name.PHYSICAL_PARTITIONS, len(found.ranges), "Cosmos")
            await _ask_throughput(container, facts)
            await _ask_contents(container, facts, [one[0] for one in found.ranges])
        finally:
            await container.close()


async def _ask_throughput(container: CosmosContainer, facts: Facts) -> None:
    try:
        throughput = await container.read_throughput()
    except Refused as refused:
        facts.notes.append(f"Cosmos does not tell the throughput ({refused}): say --throughput")
        return
    if throughput is None:
        facts.notes.append("neither the container nor its database has throughput of its own (serverless?)")
        return
    facts.autoscale = throughput.autoscale
    how = ("the most of autoscale" if throughput.autoscale else "Cosmos") + (
        ", shared with the database's other containers" if throughput.shared else ""
    )
    facts.read(Name.THROUGHPUT, throughput.ru, how)


async def _ask_contents(container: CosmosContainer, facts: Facts, ranges: Sequence[str]) -> None:
    try:
        contents = await container.read_contents()
    except Refused as refused:
        facts.notes.append(f"Cosmos does not tell what its physical partitions hold ({refused})")
        return
    counts = [contents[name].documents for name in ranges if name in contents]
    facts.read(Name.STORED_BYTES, sum(one.bytes for one in contents.values()), "Cosmos")
    if sum(counts) >= ENOUGH_RECORDS * len(counts) and len(counts) == len(ranges) > 1:
        fullest = max(shares(counts))
        how = f"{sum(counts):,} documents in {len(counts)} physical partitions, the fullest with {fullest:.1%}"
        facts.measured(Name.HOTTEST_KEY, hottest_key_of(counts), how)


def _use_sample(facts: Facts, sample: Sample) -> None:
    """The traffic itself says more of its keys than what is stored; of its size, less than the hub's own count."""
    if sample.records < ENOUGH_RECORDS * len(sample.by_range):
        return
    hottest = max(shares(sample.by_range))
    how = f"{sample.records:,} sampled records, the hottest physical partition with {hottest:.1%}"
    facts.measured(Name.HOTTEST_KEY, hottest_key_of(sample.by_range, sample.largest_key), how)
    if Name.RECORD_BYTES not in facts.figures:
        facts.measured(Name.RECORD_BYTES, sample.event_bytes / sample.records, f"{sample.events:,} sampled events")
