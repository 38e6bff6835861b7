"""A server, and a real client of it."""

import pytest
from azure.cosmos.aio import CosmosClient

from service.local.cosmos.server import CosmosServer


@pytest.fixture
async def server():
    async with CosmosServer() as running:
        yield running


@pytest.fixture
async def client(server):
    # -1: the SDK's own waiting on 429 is off, so that a test sees what the server says
    async with CosmosClient.from_connection_string(server.connection_string(), retry_throttle_total=-1) as connected:
        yield connected
