"""What containers allow: keys, TTL, unique keys, sizes; and patches, throughput and properties through the SDK."""

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey, ThroughputProperties, exceptions

from service.local.cosmos.server import CosmosServer
from tests.contract.cosmos.raw import raw_client


@pytest.fixture
async def database(server, client):
    return await client.create_database("db")


async def status_of(awaitable):
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await awaitable
    return caught.value.status_code, caught.value.sub_status or 0


@pytest.mark.parametrize("version", [1, 2])
async def test_keys_of_every_kind_are_found_again(server, database, version):
    items = await database.create_container("c", PartitionKey("/key", version=version), offer_throughput=30_000)
    values = ["text", "x" * 300, "", 5, -1.5, True, False, None]
    for number, value in enumerate(values):
        await items.upsert_item({"id": str(number), "key": value})
        assert (await items.read_item(str(number), value))["key"] == value
    found = [item["id"] async for item in items.query_items("SELECT * FROM c", partition_key=5)]
    assert found == ["3"]
    assert len(server.container("db", "c").ranges.ranges) == 5


async def test_hierarchical_keys_work_whole_and_as_prefixes(database):
    items = await database.create_container("c", PartitionKey(["/tenant", "/user"]), offer_throughput=30_000)
    for tenant in "ab":
        for user in "xyz":
            await items.upsert_item({"id": "1", "tenant": tenant, "user": user})
    assert (await items.read_item("1", ["a", "y"]))["user"] == "y"
    under = [item["user"] async for item in items.query_items("SELECT * FROM c", partition_key=["a"])]
    assert sorted(under) == ["x", "y", "z"]
    assert await status_of(items.read_item("1", ["a"])) == (400, 1001)


async def test_unique_keys_hold_within_a_partition_and_in_batches(server, client):
    container = server.add_container("db", "c", partition_key="/key", unique_keys=[["/email"]])
    items = client.get_database_client("db").get_container_client("c")
    await items.upsert_item({"id": "1", "key": "k", "email": "a@x"})
    assert await status_of(items.upsert_item({"id": "2", "key": "k", "email": "a@x"})) == (409, 0)
    await items.upsert_item({"id": "2", "key": "other", "email": "a@x"})
    await items.upsert_item({"id": "1", "key": "k", "email": "b@x"})
    await items.upsert_item({"id": "3", "key": "k", "email": "a@x"})
    batch = [("delete", ("3",)), ("create", ({"id": "4", "key": "k", "email": "a@x"},))]
    assert [one["statusCode"] for one in await items.execute_item_batch(batch, "k")] == [204, 201]
    assert container.count() == 3


async def test_documents_go_away_when_their_time_is_over():
    now = [1_800_000_000.0]
    async with CosmosServer(now=lambda: now[0]) as server:
        container = server.add_container("db", "c", default_ttl=100)
        # the clock of the server is not the world's, so only its inner side can be asked
        async with raw_client(server, container="c") as raw:
            assert (await raw.post({"id": "refused"}))[0] in {401, 403}
        from service.local.cosmos.execution import run
        from service.local.cosmos.operations import Operation

        for document in ({"id": "a"}, {"id": "b", "ttl": 10}, {"id": "c", "ttl": -1}):
            key = container.rules.keys.of((document["id"],))
            run(container, Operation("Create", key, None, document), container.route(key))
        now[0] += 10
        assert [document["id"] for document in container.documents()] == ["a", "c"]
        now[0] += 90
        assert [document["id"] for document in container.documents()] == ["c"]


async def test_a_full_logical_partition_is_403_1014_and_others_go_on():
    async with CosmosServer(partition_limit_bytes=10_000) as server:
        container = server.add_container("db", "items", partition_key="/key")
        async with raw_client(server) as raw:

            async def write(number, key):
                document = {"id": str(number), "key": key, "text": "x" * 2000}
                status, headers, _ = await raw.post(document, **{"x-ms-documentdb-partitionkey": f'["{key}"]'})
                return status, headers.get("x-ms-substatus")

            statuses = [await write(number, "full") for number in range(8)]
            assert (403, "1014") in statuses
            assert (await write(1, "other"))[0] == 201
            container.delete(('["full"]', "0"))
            assert (await write(99, "full"))[0] == 201


async def test_conditional_reads_and_writes_go_by_the_etag(server, client):
    container = server.add_container("db", "c", partition_key="/key")
    items = client.get_database_client("db").get_container_client("c")
    first = await items.create_item({"id": "a", "key": "k", "v": 1})
    second = await items.upsert_item(
        {"id": "a", "key": "k", "v": 2}, etag=first["_etag"], match_condition=MatchConditions.IfNotModified
    )
    assert second["_etag"] != first["_etag"]
    assert (second["_rid"], second["_self"]) == (first["_rid"], first["_self"])
    old = {"etag": first["_etag"], "match_condition": MatchConditions.IfNotModified}
    assert await status_of(items.upsert_item({"id": "a", "key": "k"}, **old)) == (412, 0)
    assert await status_of(items.delete_item("a", "k", **old)) == (412, 0)
    assert await status_of(items.patch_item("a", "k", [{"op": "set", "path": "/v", "value": 9}], **old)) == (412, 0)
    assert container.get("a", "k")["v"] == 2
    async with raw_client(server, container="c") as raw:
        link = f"{raw.link}/docs/a"
        key = {"x-ms-documentdb-partitionkey": '["k"]'}
        status, _, body = await raw.send("GET", link, "docs", link, **key, **{"If-None-Match": second["_etag"]})
        assert (status, body) == (304, None)


async def test_a_patch_changes_a_part_and_only_under_its_condition(server, client):
    container = server.add_container("db", "c", partition_key="/key")
    items = client.get_database_client("db").get_container_client("c")
    await items.create_item({"id": "a", "key": "k", "n": 1, "state": "new"})
    steps = [{"op": "incr", "path": "/n", "value": 5}, {"op": "set", "path": "/state", "value": "seen"}]
    answer = await items.patch_item("a", "k", steps, filter_predicate="from c where c.state = 'new'")
    assert (answer["n"], answer["state"]) == (6, "seen")
    again = items.patch_item("a", "k", steps, filter_predicate="from c where c.state = 'new'")
    assert await status_of(again) == (412, 0)
    assert container.get("a", "k")["n"] == 6


async def test_throughput_can_be_read_and_changed_and_more_of_it_splits(server, database):
    items = await database.create_container("c", PartitionKey("/key"), offer_throughput=400)
    assert (await items.get_throughput()).offer_throughput == 400
    await items.replace_throughput(11_000)
    assert (await items.get_throughput()).offer_throughput == 11_000
    container = server.container("db", "c")
    assert len(container.ranges.ranges) == 2
    assert container.ranges.ranges[0].budget.rate == 5500
    scaling = ThroughputProperties(auto_scale_max_throughput=4000, auto_scale_increment_percent=5)
    auto = await database.create_container("auto", PartitionKey("/key"), offer_throughput=scaling)
    read = await auto.get_throughput()
    assert (read.auto_scale_max_throughput, read.auto_scale_increment_percent) == (4000, 5)
    assert await status_of(items.replace_throughput(150)) == (400, 0)


async def test_names_are_taken_once_and_gone_things_are_404(database, client):
    await database.create_container("c", PartitionKey("/key"))
    assert await status_of(database.create_container("c", PartitionKey("/key"))) == (409, 0)
    assert await status_of(client.create_database("db")) == (409, 0)
    await database.delete_container("c")
    assert await status_of(database.get_container_client("c").read()) == (404, 1003)
    await client.delete_database("db")
    assert (await status_of(database.read()))[0] == 404


async def test_a_container_made_anew_refuses_those_who_mean_the_old_one(server, client):
    server.add_container("db", "c", partition_key="/key")
    items = client.get_database_client("db").get_container_client("c")
    old = (await items.read())["_rid"]
    await client.get_database_client("db").delete_container("c")
    server.add_container("db", "c", partition_key="/key")
    async with raw_client(server, container="c") as raw:
        meant = {"x-ms-documentdb-partitionkey": '["k"]', "x-ms-cosmos-intended-collection-rid": old}
        status, headers, _ = await raw.post({"id": "a", "key": "k"}, **meant)
    assert (status, headers["x-ms-substatus"]) == (400, "1024")


async def test_a_replace_may_change_the_id_but_not_onto_another(server, client):
    container = server.add_container("db", "c", partition_key="/key")
    items = client.get_database_client("db").get_container_client("c")
    first = await items.create_item({"id": "a", "key": "k"})
    await items.create_item({"id": "b", "key": "k"})
    renamed = await items.replace_item("a", {"id": "c", "key": "k"})
    assert renamed["_rid"] == first["_rid"]
    assert await status_of(items.replace_item("c", {"id": "b", "key": "k"})) == (409, 0)
    assert sorted(document["id"] for document in container.documents()) == ["b", "c"]
