"""The whole local stack on loopback: Event Hubs, Cosmos and Azurite, started together and stopped together."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from service.local.azurite import Azurite
from service.local.cosmos.server import CosmosServer
from service.local.event_hubs.server import EventHubsServer

HUB = "hub"
BLOB_CONTAINER = "sluice"
DATABASE = "sluice"
CONTAINER = "documents"
PARTITION_KEY = "/key"


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What `sluice local up` can be told."""

    partitions: int = 4
    physical_partitions: int = 3
    throughput: int = 0
    """RU/s of the Cosmos container, shared by its ranges; 0 = never throttle."""
    event_hubs_port: int = 0
    cosmos_port: int = 0
    blob_port: int = 0


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack, with its servers at hand for tests."""

    event_hubs: EventHubsServer
    cosmos: CosmosServer
    azurite: Azurite

    def settings(self) -> dict[str, str]:
        """The settings that point `sluice` at this stack."""
        return {
            "EVENTHUB_CONNSTRING": self.event_hubs.connection_string(),
            "EVENTHUB_NAME": HUB,
            "BLOB_CONNSTRING": self.azurite.connection_string,
            "BLOB_CONTAINER": BLOB_CONTAINER,
            "COSMOS_CONNSTRING": self.cosmos.connection_string(),
            "COSMOS_DATABASE": DATABASE,
            "COSMOS_CONTAINER": CONTAINER,
        }


@asynccontextmanager
async def running(options: StackOptions) -> AsyncIterator[Stack]:
    """A stack that answers on all three ports."""
    async with AsyncExitStack() as parts:
        azurite = Azurite(port=options.blob_port)
        parts.push_async_callback(azurite.stop)
        event_hubs = EventHubsServer()
        event_hubs.add_hub(HUB, partitions=options.partitions)
        cosmos = CosmosServer()
        cosmos.add_container(
            DATABASE,
            CONTAINER,
            partition_key=PARTITION_KEY,
            ranges=options.physical_partitions,
            throughput=options.throughput,
        )
        await event_hubs.start(port=options.event_hubs_port)
        parts.push_async_callback(event_hubs.stop)
        await cosmos.start(port=options.cosmos_port)
        parts.push_async_callback(cosmos.stop)
        await azurite.start()
        yield Stack(event_hubs, cosmos, azurite)


def write_env_file(path: Path, settings: dict[str, str]) -> None:
    """Write the file whole or not at all: others wait for it to appear."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w") as file:
        file.writelines(f"{key}={value}\n" for key, value in settings.items())
    Path(name).replace(path)


async def up(options: StackOptions, env_file: Path | None, stop: asyncio.Event) -> None:
    """Run the stack until told to stop; says `ready` when every part answers."""
    async with running(options) as stack:
        settings = stack.settings()
        if env_file is not None:
            write_env_file(env_file, settings)
        where = f", settings in {env_file}" if env_file else ""
        print(f"ready: Event Hubs, Cosmos and Azurite on loopback{where}", flush=True)  # noqa: T201 - the command's answer
        if env_file is None:
            for key, value in settings.items():
                print(f"{key}={value}", flush=True)  # noqa: T201 - the command's answer
        await stop.wait()
