"""What a container is sold and what it holds: for `sluice plan`, never for the way of an event."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosResourceNotFoundError


@dataclass(frozen=True, slots=True)
class Throughput:
    """RU/s: the fixed number, or the most of autoscale."""

    ru: int
    autoscale: bool
    shared: bool
    """It is the database's, and its containers share it."""


@dataclass(frozen=True, slots=True)
class Content:
    """What one range holds, as the service last counted it."""

    documents: int
    bytes: int


async def read_throughput(database: DatabaseProxy, container: ContainerProxy) -> Throughput | None:
    """Of the container, else of its database; None where neither has any, as in a serverless account."""
    for holder in (container, database):
        try:
            found = await holder.get_throughput()
        except (CosmosResourceNotFoundError, AttributeError) as fault:
            if not _says_none(fault):
                raise
            continue
        most = found.auto_scale_max_throughput
        ru = most or found.offer_throughput
        if ru:
            return Throughput(int(ru), bool(most), holder is database)
    return None


def _says_none(fault: BaseException | None) -> bool:
    """Whether it says that there is no throughput. azure-cosmos 4.17 stumbles over its own 404 while it handles it."""
    while fault is not None and not isinstance(fault, CosmosResourceNotFoundError):
        fault = fault.__context__
    return fault is not None


async def read_contents(container: ContainerProxy) -> dict[str, Content]:
    """By range; none where the service keeps no such statistics."""
    properties: Mapping[str, Any] = await container.read(populate_partition_key_range_statistics=True)
    return {
        str(one["id"]): Content(int(one.get("documentCount") or 0), int(one.get("sizeInKB") or 0) * 1024)
        for one in properties.get("statistics") or ()
    }
