"""The Cosmos container as a job finds it at its start."""

import asyncio
from dataclasses import dataclass

from azure.cosmos.aio import CosmosClient
from azure.identity.aio import DefaultAzureCredential

from service import options
from service.config import Settings
from service.sink.cosmos import CosmosContainer
from service.sink.routing import PartitionKeyDefinition


@dataclass(frozen=True, slots=True)
class Target:
    """What decides how records become documents there."""

    definition: PartitionKeyDefinition
    default_ttl: int | None
    """Seconds; -1: only documents that say so expire; None: none does."""


def describe(settings: Settings) -> Target:
    """Ask the container. Raises SetupFault, saying what to mend."""
    return asyncio.run(_describe(settings))


async def _describe(settings: Settings) -> Target:
    async with DefaultAzureCredential() as identity:
        access = options.cosmos(settings, identity)
        container = CosmosContainer(access)
        try:
            definition = await container.describe()
        finally:
            await container.close()
        async with CosmosClient(access.endpoint, access.credential) as client:
            proxy = client.get_database_client(access.database).get_container_client(access.container)
            ttl = (await proxy.read()).get("defaultTtl")
    return Target(definition, ttl if isinstance(ttl, int) else None)
