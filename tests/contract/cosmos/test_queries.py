"""Queries and the change feed through the Python SDK, over several ranges."""

import itertools

import pytest
from azure.cosmos import exceptions


@pytest.fixture
def container(server):
    return server.add_container("db", "items", partition_key="/key", ranges=3)


@pytest.fixture
async def items(client, container):
    proxy = client.get_database_client("db").get_container_client("items")
    for number in range(40):
        await proxy.upsert_item({"id": str(number), "key": f"k{number % 7}", "n": number})
    return proxy


async def ask(items, query, **options):
    return [row async for row in items.query_items(query, **options)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT VALUE COUNT(1) FROM c", [40]),
        ("SELECT VALUE SUM(c.n) FROM c", [780]),
        ("SELECT VALUE AVG(c.n) FROM c", [19.5]),
        ("SELECT VALUE MIN(c.n) FROM c WHERE c.n > 10", [11]),
        ("SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 3", [38, 37, 36]),
        ("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.key, c.n DESC", [35, 28]),
        ("SELECT DISTINCT VALUE c.key FROM c ORDER BY c.key", [f"k{n}" for n in range(7)]),
        ("SELECT DISTINCT VALUE c.key FROM c ORDER BY c.key OFFSET 2 LIMIT 2", ["k2", "k3"]),
        ("SELECT VALUE c.n FROM c WHERE c.key = 'k3' AND c.n < 20 ORDER BY c.n DESC", [17, 10, 3]),
    ],
)
async def test_results_over_all_ranges_are_merged_by_the_sdk_from_our_plan(items, query, expected):
    assert await ask(items, query) == expected


async def test_within_a_partition_the_server_answers_by_itself(items):
    query = "SELECT c.key, COUNT(1) AS n, MAX(c.n) AS most FROM c GROUP BY c.key"
    assert await ask(items, query, partition_key="k1") == [{"key": "k1", "n": 6, "most": 36}]


async def test_parameters_reach_the_query(items):
    query = "SELECT VALUE c.n FROM c WHERE c.n >= @low AND ARRAY_CONTAINS(@keys, c.key)"
    given = [{"name": "@low", "value": 30}, {"name": "@keys", "value": ["k0", "k1"]}]
    assert sorted(await ask(items, query, parameters=given)) == [35, 36]


@pytest.mark.parametrize("size", [1, 7, 40, 100])
async def test_pages_have_the_size_that_was_asked_for_and_lose_nothing(items, size):
    pages = items.query_items("SELECT VALUE c.n FROM c", max_item_count=size).by_page()
    found = [[row async for row in page] async for page in pages]
    assert all(len(page) == size for page in found[:-1])
    assert sorted(row for page in found for row in page) == list(range(40))


async def test_a_continuation_token_goes_on_where_it_left_off(items):
    pager = items.query_items(
        "SELECT VALUE c.n FROM c WHERE c.key = 'k2'", partition_key="k2", max_item_count=2
    ).by_page()
    first = [row async for row in await anext(pager)]
    token = pager.continuation_token
    again = items.query_items("SELECT VALUE c.n FROM c WHERE c.key = 'k2'", partition_key="k2", max_item_count=2)
    rest = [row async for page in again.by_page(token) async for row in page]
    assert first + rest == [2, 9, 16, 23, 30, 37]


async def test_a_join_across_pages_gives_each_row_once(server, client):
    container = server.add_container("db", "joined", partition_key="/key")
    items = client.get_database_client("db").get_container_client("joined")
    for number in range(3):
        await items.upsert_item({"id": str(number), "key": "k", "tags": [f"{number}{letter}" for letter in "abc"]})
    query = "SELECT VALUE t FROM c JOIN t IN c.tags"
    pages = items.query_items(query, partition_key="k", max_item_count=2).by_page()
    assert [len([row async for row in page]) async for page in pages] == [2, 2, 2, 2, 1]
    assert container.count() == 3


async def test_feed_ranges_together_have_everything_once(items):
    found = []
    async for feed in items.read_feed_ranges():
        found += await ask(items, "SELECT VALUE c.n FROM c", feed_range=feed)
    assert sorted(found) == list(range(40))


async def test_a_query_goes_on_over_a_split(items, container):
    feeds = [feed async for feed in items.read_feed_ranges()]
    container.split(into=6)
    found = []
    for feed in feeds:
        found += await ask(items, "SELECT VALUE c.n FROM c", feed_range=feed)
    assert sorted(found) == list(range(40))


async def test_a_query_that_is_none_is_400(items):
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await ask(items, "SELECT * FORM c")
    assert caught.value.status_code == 400


async def test_the_change_feed_gives_the_latest_of_each_in_order_of_change(items):
    await items.upsert_item({"id": "3", "key": "k3", "n": 3, "again": True})
    changes = [row async for row in items.query_items_change_feed(partition_key="k3", start_time="Beginning")]
    assert [row["n"] for row in changes] == [10, 17, 24, 31, 38, 3]
    assert all(a["_lsn"] < b["_lsn"] for a, b in itertools.pairwise(changes))


async def test_the_change_feed_goes_on_from_its_continuation(items, client):
    feed = items.query_items_change_feed(start_time="Beginning", max_item_count=10)
    seen = [row["n"] async for row in feed]
    token = items.client_connection.last_response_headers["etag"]
    assert sorted(seen) == list(range(40))
    await items.upsert_item({"id": "new", "key": "k1", "n": 99})
    await items.delete_item("0", "k0")
    later = [row["n"] async for row in items.query_items_change_feed(continuation=token)]
    assert later == [99]


async def test_the_change_feed_from_now_has_only_what_comes(items):
    feed = items.query_items_change_feed(start_time="Now")
    assert [row async for row in feed] == []
    token = items.client_connection.last_response_headers["etag"]
    await items.upsert_item({"id": "new", "key": "k1", "n": 99})
    assert [row["n"] async for row in items.query_items_change_feed(continuation=token)] == [99]


async def test_databases_and_containers_can_be_listed_and_queried(client, items):
    assert [one["id"] async for one in client.list_databases()] == ["db"]
    database = client.get_database_client("db")
    assert [one["id"] async for one in database.query_containers("SELECT * FROM c WHERE c.id = 'items'")] == ["items"]


async def test_read_items_finds_many_at_once(items):
    wanted = [(str(number), f"k{number % 7}") for number in range(0, 40, 2)]
    found = await items.read_items([*wanted, ("missing", "k1")])
    assert sorted(int(item["id"]) for item in found) == list(range(0, 40, 2))


async def test_a_page_of_the_change_feed_does_not_end_within_a_transaction(server, client):
    server.add_container("db", "batched", partition_key="/key")
    items = client.get_database_client("db").get_container_client("batched")
    await items.upsert_item({"id": "before", "key": "k"})
    await items.execute_item_batch([("create", ({"id": str(n), "key": "k"},)) for n in range(5)], "k")
    pages = items.query_items_change_feed(partition_key="k", start_time="Beginning", max_item_count=2).by_page()
    found = [[row["id"] async for row in page] async for page in pages]
    assert [row for page in found for row in page] == ["before", "0", "1", "2", "3", "4"]


async def test_pages_lose_nothing_after_documents_were_renamed(items):
    for number in (0, 7, 21):
        await items.replace_item(str(number), {"id": f"renamed-{number}", "key": "k0", "n": number})
    pages = items.query_items("SELECT VALUE c.n FROM c", partition_key="k0", max_item_count=1).by_page()
    assert [row async for page in pages async for row in page] == [0, 7, 14, 21, 28, 35]
