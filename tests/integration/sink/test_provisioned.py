"""What a container is sold and holds, read through the SDK."""

from contextlib import asynccontextmanager

import orjson
import pytest

from service.local.cosmos.offers import Throughput as Offered
from service.sink.container import Refused
from service.sink.cosmos import CosmosAccess, CosmosContainer
from service.sink.provisioned import Content, Throughput

KEY = {"paths": ["/key"], "kind": "Hash", "version": 2}


@asynccontextmanager
async def opened(server, name="items"):
    container = CosmosContainer(CosmosAccess.from_connection_string(server.connection_string(), "db", name))
    await container.describe()
    try:
        yield container
    finally:
        await container.close()


@pytest.mark.parametrize(
    ("offered", "of_database", "seen"),
    [
        (Offered(12_000), None, Throughput(12_000, autoscale=False, shared=False)),
        (Offered(20_000, autoscale=True), None, Throughput(20_000, autoscale=True, shared=False)),
        (None, Offered(5_000), Throughput(5_000, autoscale=False, shared=True)),
        (Offered(700), Offered(5_000), Throughput(700, autoscale=False, shared=False)),
        (None, None, None),
    ],
)
async def test_throughput_is_the_containers_else_its_databases(server, offered, of_database, seen):
    database = server.account.create_database("db", of_database)
    server.account.create_container(database, {"id": "items", "partitionKey": KEY}, offered)
    async with opened(server) as container:
        assert await container.read_throughput() == seen


async def test_every_range_tells_its_documents(server, items):
    async with opened(server) as container:
        ranges = [one[0] for one in await container.read_ranges()]
        assert await container.read_contents() == dict.fromkeys(ranges, Content(0, 0))
        for number in range(40):
            operation = {
                "operationType": "Upsert",
                "partitionKey": f'["{number}"]',
                "resourceBody": {"id": str(number), "key": str(number), "padding": "x" * 2000},
            }
            await send(container, items, str(number), operation)
        contents = await container.read_contents()
        assert sum(one.documents for one in contents.values()) == 40
        assert 80_000 < sum(one.bytes for one in contents.values()) < 100_000


async def send(container, items, key, operation):
    place = items.route(items.rules.keys.parse(f'["{key}"]')).id
    answers = await container.send_bulk(place, orjson.dumps([operation]), minimal=True)
    assert answers[0]["statusCode"] == 201


async def test_a_container_that_was_not_described_is_refused(server):
    access = CosmosAccess.from_connection_string(server.connection_string(), "db", "items")
    with pytest.raises(Refused):
        await CosmosContainer(access).read_throughput()
    with pytest.raises(Refused):
        await CosmosContainer(access).read_contents()
