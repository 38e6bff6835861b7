"""In which folder the processors of other SDKs keep the blobs of a consumer group (see `layout.folders`).

Two processors that look into different folders each believe the group is theirs alone, and take every partition from
one another without end. So ours goes where the others are.
"""

from datetime import UTC, datetime

from service.source.blobs import Blobs
from service.source.events import Hub
from service.source.layout import folders
from service.source.ownership_document import OURS, OWNER

_NEVER = datetime.min.replace(tzinfo=UTC)


async def latest_folder(blobs: Blobs, hub: Hub) -> str:
    """The one that was written to last; ours by right where there is none."""
    written: dict[str, datetime] = {}
    for folder in folders(hub):
        written[folder] = max([blob.modified or _NEVER for blob in await blobs.list(folder)], default=_NEVER)
    return max(written, key=lambda folder: written[folder])


async def folder_of_peers(blobs: Blobs, hub: Hub, folder: str, expiry_seconds: float) -> str | None:
    """Another folder than `folder` in which a processor that is not ours owns a partition now."""
    for other in folders(hub):
        if other == folder:
            continue
        found = await blobs.list(other)
        ours = {blob.metadata.get(OURS) for blob in found}
        for blob in found:
            owner = blob.metadata.get(OWNER)
            age = blobs.now - blob.modified.timestamp() if blob.modified else 0.0
            if owner and owner not in ours and age < expiry_seconds:
                return other
    return None
