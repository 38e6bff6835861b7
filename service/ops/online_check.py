"""`sluice config check --online`: try each service with the settings as they are, and say what came of it.

Nothing of the user's is changed: the hub is only described, the blob container is made if it is missing (the service
would do so too), and the one bulk request reads a document that does not exist.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import orjson
from azure.identity.aio import DefaultAzureCredential

from service import options
from service.config import Settings
from service.errors import SluiceError
from service.sink.container import Refused
from service.sink.cosmos import CosmosContainer
from service.source.connect import connect_blobs, connect_hub

TRY_SECONDS = 60.0
_NO_SUCH_ID = "sluice-online-check"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried."""

    what: str
    ok: bool
    said: str


async def online_check(settings: Settings) -> list[Finding]:
    """Try the hub, the blobs, the container, and one bulk request, each whatever became of the others."""
    tries: list[tuple[str, Callable[[Settings], Awaitable[str]]]] = [("event hub", _hub), ("cosmos", _cosmos)]
    if settings.cosmos_write:
        tries.insert(1, ("blob storage", _blobs))
    return list(await asyncio.gather(*(_tried(what, work, settings) for what, work in tries)))


async def _tried(what: str, work: Callable[[Settings], Awaitable[str]], settings: Settings) -> Finding:
    try:
        async with asyncio.timeout(TRY_SECONDS):
            return Finding(what, True, await work(settings))
    except (SluiceError, Refused) as fault:
        return Finding(what, False, str(fault))
    except TimeoutError:
        return Finding(what, False, f"no answer within {TRY_SECONDS:.0f} s")


async def _hub(settings: Settings) -> str:
    hub = connect_hub(options.hub(settings), options.receiver(settings))
    try:
        described = await hub.describe()
        await hub.describe_partition(described.partitions[0])
    finally:
        await hub.close()
    return f"{hub.name} has {len(described.partitions)} partitions"


async def _blobs(settings: Settings) -> str:
    blobs = connect_blobs(settings.blob_container or "", **options.blob_account(settings))
    try:
        await blobs.make()
        found = await blobs.list("")
    finally:
        await blobs.close()
    return f"container {settings.blob_container} has {len(found)} blobs"


async def _cosmos(settings: Settings) -> str:
    async with DefaultAzureCredential() as identity:
        container = CosmosContainer(options.cosmos(settings, identity))
        try:
            definition = await container.describe()
            ranges = await container.read_ranges()
            key = orjson.dumps([_NO_SUCH_ID] * len(definition.paths)).decode()
            operation = {"operationType": "Read", "id": _NO_SUCH_ID, "partitionKey": key}
            refused = await _bulk(container, ranges[0][0], orjson.dumps([operation]))
        finally:
            await container.close()
    name = f"container {settings.cosmos_container} has {len(ranges)} ranges"
    if refused is not None:
        return f"{name}; it refuses the bulk protocol ({refused}): records go one by one, set COSMOS_BULK=off"
    return f"{name}; it takes bulk requests"


async def _bulk(container: CosmosContainer, range_id: str, payload: bytes) -> str | None:
    """None when the protocol is spoken: the answer to the one operation may be 404, or 400 for another range's key."""
    try:
        answers = await container.send_bulk(range_id, payload, minimal=True)
    except Refused as refused:
        return str(refused) if refused.status in (400, 404, 405, 501) else None
    return None if len(answers) == 1 else "an odd answer"
