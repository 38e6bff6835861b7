"""Documents through the Python SDK."""

import pytest
from azure.core import MatchConditions
from azure.cosmos import exceptions

from tests.contract.cosmos.raw import raw_client


@pytest.fixture
def container(server):
    return server.add_container("db", "items", partition_key="/key", ranges=3)


@pytest.fixture
def items(client, container):
    return client.get_database_client("db").get_container_client("items")


async def test_a_document_comes_back_as_it_was_written_with_system_properties(items):
    written = await items.upsert_item({"id": "a", "key": "k", "nested": {"n": [1, 2.5, None, True]}})
    read = await items.read_item("a", "k")
    assert dict(read) == dict(written)
    assert {"_rid", "_self", "_etag", "_ts", "_attachments"} <= set(read)


async def test_upsert_says_201_the_first_time_and_200_after(items, container):
    await items.upsert_item({"id": "a", "key": "k"})
    await items.upsert_item({"id": "a", "key": "k", "v": 2})
    assert [write.status for write in container.write_log] == [201, 200]
    assert container.get("a", "k")["v"] == 2


async def test_a_second_create_of_the_same_id_conflicts_but_not_under_another_key(items, container):
    await items.create_item({"id": "a", "key": "k"})
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await items.create_item({"id": "a", "key": "k"})
    await items.create_item({"id": "a", "key": "other"})
    assert container.count() == 2


async def test_replace_with_an_old_etag_is_412_and_changes_nothing(items, container):
    old = await items.create_item({"id": "a", "key": "k", "v": 1})
    await items.replace_item("a", {"id": "a", "key": "k", "v": 2})
    with pytest.raises(exceptions.CosmosAccessConditionFailedError):
        await items.replace_item(
            "a", {"id": "a", "key": "k", "v": 3}, etag=old["_etag"], match_condition=MatchConditions.IfNotModified
        )
    assert container.get("a", "k")["v"] == 2


async def test_delete_removes_and_a_second_delete_is_404(items, container):
    await items.create_item({"id": "a", "key": "k"})
    await items.delete_item("a", "k")
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        await items.delete_item("a", "k")
    assert container.count() == 0


async def test_a_transactional_batch_with_one_failure_writes_nothing(items, container):
    await items.create_item({"id": "there", "key": "k"})
    with pytest.raises(exceptions.CosmosBatchOperationError) as caught:
        await items.execute_item_batch(
            [
                ("upsert", ({"id": "new", "key": "k"},)),
                ("create", ({"id": "there", "key": "k"},)),
                ("delete", ("there",)),
            ],
            "k",
        )
    assert [one["statusCode"] for one in caught.value.operation_responses] == [424, 409, 424]
    assert caught.value.error_index == 1
    assert [document["id"] for document in container.documents()] == ["there"]


async def test_a_batch_sees_its_own_earlier_operations(items, container):
    results = await items.execute_item_batch(
        [
            ("create", ({"id": "a", "key": "k", "v": 1},)),
            ("replace", ("a", {"id": "a", "key": "k", "v": 2})),
            ("read", ("a",)),
            ("delete", ("a",)),
        ],
        "k",
    )
    assert [one["statusCode"] for one in results] == [201, 200, 200, 204]
    assert results[2]["resourceBody"]["v"] == 2
    assert container.count() == 0


async def test_feed_ranges_follow_a_split(items, container):
    before = [feed async for feed in items.read_feed_ranges()]
    container.split(into=5)
    after = [feed async for feed in items.read_feed_ranges(force_refresh=True)]
    assert len(before) == 3
    assert len(after) == 5


async def test_a_throttled_range_says_429_with_its_wait(items, container):
    for one in container.ranges.ranges:
        container.throttle_range(one.id)
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await items.upsert_item({"id": "a", "key": "k"})
    assert caught.value.status_code == 429
    assert caught.value.sub_status == 3200
    assert int(caught.value.headers["x-ms-retry-after-ms"]) > 0


async def test_a_wrong_key_is_401(server):
    from azure.cosmos.aio import CosmosClient

    stranger = CosmosClient(server.endpoint, "AAAA")
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await stranger.__aenter__()
    await stranger.close()
    assert caught.value.status_code == 401


async def test_answers_name_what_the_resource_lies_in(server):
    """Java's change feed addresses the container by this header of the answer that described it."""
    server.add_container("db", "a c", partition_key="/id")
    async with raw_client(server) as raw:
        for path, kind, owner in (
            ("dbs/db/colls/a%20c", "colls", "dbs/db"),
            ("dbs/db/colls/a%20c/pkranges", "pkranges", "dbs/db/colls/a%20c"),
        ):
            status, headers, _ = await raw.send("GET", path, kind, "dbs/db/colls/a c")
            assert (status, headers["x-ms-alt-content-path"]) == (200, owner)


async def test_answers_name_their_range_so_that_the_sdk_keeps_the_ranges_it_knows(container, items, monkeypatch):
    """azure-cosmos takes an answer without a range it knows for a sign of a split, and forgets all ranges."""
    asked = []
    changes = container.ranges.changes
    monkeypatch.setattr(container.ranges, "changes", lambda *given: asked.append(given) or changes(*given))
    for number in range(10):
        await items.upsert_item({"id": str(number), "key": f"k{number}"})
        assert (await items.read_item(str(number), f"k{number}"))["id"] == str(number)
        rows = [row async for row in items.query_items("SELECT * FROM c")]
        assert len(rows) == number + 1
    assert len(asked) <= 2  # once, and until the feed of ranges says that this was all


async def test_a_range_may_be_named_with_the_containers_resource_id_before_it(server, container):
    container.split(into=4)
    async with raw_client(server) as raw:
        place = container.route(container.rules.keys.of(("k",)))
        operation = {"operationType": "Create", "partitionKey": '["k"]', "resourceBody": {"id": "a", "key": "k"}}
        status, headers, answer = await raw.bulk(f"{container.rid},{place.id}", [operation])
        assert (status, answer[0]["statusCode"]) == (200, 201)
        assert headers["x-ms-documentdb-partitionkeyrangeid"] == place.id
