"""Load: documents with `id` and `key`, sent to the hub through the real SDK."""

import asyncio
import random
import string
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson
from azure.core.credentials_async import AsyncTokenCredential
from azure.eventhub import EventData, EventDataBatch
from azure.eventhub.aio import EventHubProducerClient
from azure.eventhub.exceptions import EventHubError
from azure.identity.aio import DefaultAzureCredential

from service import options
from service.config import Settings
from service.errors import SetupFault
from service.ops.progress import Progress


@dataclass(frozen=True, slots=True)
class Load:
    """What to send."""

    count: int
    rate: int = 0
    """Events per second; 0 = as fast as it goes."""
    keys: int = 1000
    """Distinct values of `key`, the partition key of the container."""
    size: int = 1024
    """Bytes of a body, about."""
    seed: int | None = None
    """The same seed gives the same documents. None: another each time."""
    updates: float = 0.0
    """Share of events that write an earlier document again."""
    poison: int = 0
    """Events among them that are no JSON."""


async def produce(producer: EventHubProducerClient, load: Load, sent: Callable[[int], None] = lambda _: None) -> int:
    """Send the load; `sent` is told how many more have been taken by the hub. Gives the number of events."""
    partitions = await producer.get_partition_ids()
    loop = asyncio.get_running_loop()
    began = loop.time()
    done = 0
    rest = bodies(load)
    while chunk := list(islice(rest, _chunk_size(load))):
        if load.rate:
            await asyncio.sleep(max(0.0, began + done / load.rate - loop.time()))
        by_partition: dict[str, list[bytes]] = {}
        for key, body in chunk:
            # All writes of a document go to one partition, so that the hub keeps their order.
            by_partition.setdefault(partitions[zlib.crc32(key.encode()) % len(partitions)], []).append(body)
        async with asyncio.TaskGroup() as group:
            for partition, its in by_partition.items():
                group.create_task(_send(producer, partition, its))
        done += len(chunk)
        sent(len(chunk))
    return done


def bodies(load: Load) -> Iterator[tuple[str, bytes]]:
    """(key, body) of each event, in order."""
    seed = load.seed if load.seed is not None else random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)  # noqa: S311 - test data, made again by its seed
    poison = set(chance.sample(range(load.count), min(load.poison, load.count)))
    padding = "".join(chance.choices(string.ascii_letters, k=max(0, load.size - 120)))
    documents = 0
    for number in range(load.count):
        update = documents > 0 and chance.random() < load.updates
        document = chance.randrange(documents) if update else documents
        documents += 0 if update else 1
        # A document keeps its key for life: the key is part of which document it is.
        key = f"key-{zlib.crc32(f'{seed}-{document}'.encode()) % max(1, load.keys):06d}"
        if number in poison:
            yield key, b'{"id": "cut short'
            continue
        body = {"id": f"{seed:08x}-{document:08d}", "key": key, "number": number, "padding": padding}
        yield key, orjson.dumps(body)


def _chunk_size(load: Load) -> int:
    # A tenth of a second's worth, so that the rate is even.
    return max(1, min(2000, load.rate // 10)) if load.rate else 2000


async def _send(producer: EventHubProducerClient, partition: str, bodies: list[bytes]) -> None:
    batch: EventDataBatch = await producer.create_batch(partition_id=partition)
    for body in bodies:
        try:
            batch.add(EventData(body))
        except ValueError:  # the batch is full
            await producer.send_batch(batch)
            batch = await producer.create_batch(partition_id=partition)
            batch.add(EventData(body))
    await producer.send_batch(batch)


async def produce_with_progress(settings: Settings, load: Load) -> int:
    """Send the load to the hub of the settings, telling how far it is."""
    with Progress("events sent", load.count) as progress:
        try:
            async with client(settings) as producer:
                return await produce(producer, load, progress.advance)
        except EventHubError as error:
            raise SetupFault(
                f"the hub did not take the events ({type(error).__name__}). "
                "Look at EVENTHUB_CONNSTRING or EVENTHUB_NAMESPACE, EVENTHUB_NAME, and whether the hub can be reached."
            ) from None


def client(settings: Settings) -> EventHubProducerClient:
    """A producer for the hub of the settings."""
    hub = options.hub(settings)
    more: dict[str, Any] = {"connection_verify": hub.ca_file} if hub.ca_file else {}
    if hub.endpoint:
        more["custom_endpoint_address"] = hub.endpoint
    if hub.connection_string:
        return EventHubProducerClient.from_connection_string(hub.connection_string, eventhub_name=hub.name, **more)
    identity: AsyncTokenCredential = DefaultAzureCredential()
    return EventHubProducerClient(hub.namespace, hub.name, identity, **more)
