"""A sample of the newest events, read without disturbing anybody, and how its keys fall on the ranges of Cosmos.

Receivers without an epoch: the hub refuses them where a receiver with one is at work (every processor's is), and
whoever comes with one later takes the partition from them. So no processor can lose anything to a sample. What it does
take for a moment: egress of the namespace, and one of the five places for readers without an epoch.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.errors import SluiceError
from service.sink.record import Decoder, Operation
from service.sink.routing import RangeMap
from service.source.event_hubs import EventHubs
from service.source.events import Event, Hub, PartitionId
from service.source.hub import PartitionDescription
from service.source.start import AtSequence

SAMPLE_SECONDS = 20.0
"""Opening a receiver takes up to five; a partition that gives nothing for longer is left out."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was counted in a sample."""

    events: int
    event_bytes: int
    """Of the bodies, without what the hub adds to them."""
    records: int
    """Those that would be written."""
    by_range: tuple[int, ...]
    largest_key: int
    """Records of the key that has most."""


async def read_sample(
    client: EventHubs, partitions: Mapping[PartitionId, PartitionDescription], wanted: int
) -> list[tuple[PartitionId, Event]]:
    """The newest events, about `wanted` in all, as many of each partition; fewer where somebody reads it."""
    each = -(-wanted // len(partitions)) if partitions else 0
    read = await asyncio.gather(
        *(_newest(client, name, one, each) for name, one in partitions.items() if not one.empty)
    )
    return [event for events in read for event in events]


async def _newest(
    client: EventHubs, partition: PartitionId, description: PartitionDescription, wanted: int
) -> list[tuple[PartitionId, Event]]:
    first = max(description.begin, description.last - wanted + 1)
    there = description.last - first + 1
    events: list[Event] = []
    receiver = client.receiver(partition, None, AtSequence(first))
    try:
        async with asyncio.timeout(SAMPLE_SECONDS):
            while len(events) < there and (batch := await receiver.receive()):
                events.extend(batch)
    except (SluiceError, TimeoutError):
        pass  # somebody reads it, or it cannot be read now: what is there will do
    finally:
        await receiver.close()
    return [(partition, event) for event in events[:there]]


def tally(events: Sequence[tuple[PartitionId, Event]], decoder: Decoder, hub: Hub, ranges: RangeMap) -> Sample:
    """Decode as the service does and count where the records would go."""
    by_range: Counter[str] = Counter()
    by_key: Counter[bytes] = Counter()
    for partition, event in events:
        for record in decoder.decode(event, hub, partition):
            if record.operation in {Operation.UPSERT, Operation.DELETE}:
                by_range[ranges.find(record.effective_key)] += 1
                by_key[record.key] += 1
    return Sample(
        len(events),
        sum(len(event.body) for _, event in events),
        by_range.total(),
        tuple(by_range[name] for name in ranges.ids),
        max(by_key.values(), default=0),
    )
