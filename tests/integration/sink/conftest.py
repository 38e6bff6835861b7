"""A Cosmos server on loopback, and a sink over the real SDK to it."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from service.local.cosmos.server import CosmosServer
from service.sink.cosmos import CosmosAccess, CosmosContainer
from service.sink.lane import BatchOptions
from service.sink.options import SinkOptions
from service.sink.sink import open_sink
from tests.simulation.sink.parts import Feeder, MemoryBox

QUICK = SinkOptions(batch=BatchOptions(wait_seconds=0.05), retry_wait_seconds=0.1)


@pytest.fixture
async def server():
    async with CosmosServer() as running:
        yield running


@pytest.fixture
def items(server):
    """The container that records go to: partition key /key, 4 ranges."""
    return server.add_container("db", "items", partition_key="/key", ranges=4)


@asynccontextmanager
async def connected(access: CosmosAccess, *, options=QUICK, box=None, documents=None):
    """A feeder over a running sink over the real SDK."""
    container = CosmosContainer(access)
    task = None
    try:
        sink = await open_sink(container, box or MemoryBox(), options)
        task = asyncio.create_task(sink.run())
        yield Feeder(sink, documents, guarded=options.guarded)
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await container.close()


@pytest.fixture
def connect(server):
    """Connect a feeder to the server: `async with connect(options=...) as feeder`."""

    def begin(**more):
        access = CosmosAccess.from_connection_string(server.connection_string(), "db", "items")
        return connected(more.pop("access", access), **more)

    return begin
