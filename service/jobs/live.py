"""The live consumer, seen from a job: how far it has come, and how far behind it is. Nothing of it is changed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from service import options
from service.config import Settings
from service.errors import Retry, SetupFault
from service.jobs.faults import BadInput
from service.source.blobs import Blobs
from service.source.connect import connect_blobs, connect_hub
from service.source.event_hubs import EventHubs
from service.source.events import Hub, PartitionId
from service.source.hub import PartitionDescription
from service.source.layout import checkpoint_name, lease_name
from service.source.lease_document import decode
from service.source.ownership_document import stored_in
from service.source.peers import latest_folder
from service.source.store import Stored

_TRIES = 4


@dataclass(frozen=True, slots=True)
class Live:
    """Hub and consumer at one moment."""

    namespace: str
    incarnation: int
    partitions: Mapping[str, PartitionDescription]
    checkpoints: Mapping[str, int]
    """By partition: the sequence up to which everything is completed. Without an entry: no checkpoint."""

    @property
    def lag(self) -> int:
        """Events in the hub that are not checkpointed, where there are checkpoints."""
        return sum(
            max(0, self.partitions[name].last - at) for name, at in self.checkpoints.items() if name in self.partitions
        )

    def bounds(self) -> dict[str, int]:
        """How far each partition may be taken; empty where no consumer ever was here."""
        if not self.checkpoints:
            return {}
        return {name: self.checkpoints.get(name, -1) for name in self.partitions}


def look(settings: Settings) -> Live:
    """Ask hub and blobs. Raises SetupFault."""
    return asyncio.run(_patiently(settings))


async def _patiently(settings: Settings) -> Live:
    for left in reversed(range(_TRIES)):
        try:
            return await _look(settings)
        except Retry as fault:
            if not left:
                raise SetupFault(str(fault)) from None
            await asyncio.sleep(fault.after_seconds or 1.0)
    raise AssertionError


async def _look(settings: Settings) -> Live:
    address = options.hub(settings)
    client = connect_hub(address, options.receiver(settings))
    blobs = connect_blobs(settings.blob_container or "", **options.blob_account(settings))
    try:
        described = await client.describe()
        hub = Hub(client.namespace, client.name, address.group, described.created_ms)
        partitions = await _partitions(client, described.partitions)
        found = await asyncio.gather(*(_stored(blobs, settings, hub, name) for name in described.partitions))
    finally:
        await client.close()
        await blobs.close()
    checkpoints = {
        str(name): stored.checkpoint.sequence
        for name, stored in zip(described.partitions, found, strict=True)
        if stored is not None and stored.checkpoint is not None and stored.incarnation in (None, described.created_ms)
    }
    return Live(client.namespace, described.created_ms, partitions, checkpoints)


async def _partitions(client: EventHubs, names: tuple[PartitionId, ...]) -> dict[str, PartitionDescription]:
    found = await asyncio.gather(*(client.describe_partition(name) for name in names))
    return {str(name): each for name, each in zip(names, found, strict=True)}


async def _stored(blobs: Blobs, settings: Settings, hub: Hub, partition: PartitionId) -> Stored | None:
    if settings.lease_mode == "lease":
        blob = await blobs.get(lease_name(hub, partition))
        return decode(partition, blob.body).stored if blob else None
    blob = await blobs.get(checkpoint_name(await latest_folder(blobs, hub), partition))
    return stored_in(blob) if blob else None


def own_group(settings: Settings, wanted: str) -> str:
    """The consumer group a job reads with. Raises BadInput where it is the live consumer's."""
    if not wanted:
        raise BadInput(
            "--consumer-group: missing. A job reads the hub in a consumer group of its own, or it would push out the"
            " live consumer; make one and name it."
        )
    if wanted.lower() == settings.eventhub_consumergroup.lower():
        raise BadInput(
            f"--consumer-group: {wanted} is that of the live consumer, which would be pushed out. Name another."
        )
    return wanted
