"""Checkpoints that another layout left in the same container: refused at a first start, and read for an import."""

from collections.abc import Mapping
from typing import Literal

from service.errors import BadSettings
from service.source.blobs import Blobs
from service.source.events import Hub, PartitionId
from service.source.layout import lease_prefix
from service.source.lease_document import decode
from service.source.ownership_document import stored_in
from service.source.peers import latest_folder
from service.source.store import Stored

Layout = Literal["lease", "ownership"]
"""The values of LEASE_MODE."""


async def refuse_foreign(blobs: Blobs, hub: Hub, layout: Layout) -> None:
    """BadSettings where this layout has nothing yet for the hub and the other one has."""
    other: Layout = "ownership" if layout == "lease" else "lease"
    if await _names(blobs, hub, layout) or not await stored_by(blobs, hub, other):
        return
    message = (
        f"the container {blobs.container} has checkpoints of {hub.name} and consumer group {hub.group} in the layout "
        f"of LEASE_MODE={other}, and none for {layout}: a start would begin from EVENTHUB_START and do all over again; "
        f"take them over with `sluice checkpoints import --from {other}`, or set LEASE_MODE={other}"
    )
    raise BadSettings([message])


async def stored_by(blobs: Blobs, hub: Hub, layout: Layout) -> Mapping[PartitionId, Stored]:
    """The checkpoints that a layout has for this hub, by partition."""
    found: dict[PartitionId, Stored] = {}
    for partition, name in (await _names(blobs, hub, layout)).items():
        blob = await blobs.get(name)
        if blob is None:
            continue
        if layout == "lease":
            document = decode(partition, blob.body)
            stored = document.stored if document.is_of(hub) else None
        else:
            stored = stored_in(blob)
        if stored is not None and stored.checkpoint is not None:
            found[partition] = stored
    return found


async def _names(blobs: Blobs, hub: Hub, layout: Layout) -> Mapping[PartitionId, str]:
    """The blobs that have a layout's checkpoints, by partition."""
    prefix = lease_prefix(hub) if layout == "lease" else f"{await latest_folder(blobs, hub)}checkpoint/"
    names = {blob.name.removeprefix(prefix): blob.name for blob in await blobs.list(prefix)}
    return {PartitionId(each): names[each] for each in sorted(filter(str.isdecimal, names), key=int)}
