"""Bulk: batches that are not atomic, by range, as the JS and Java SDKs send them."""

import pytest

from tests.contract.cosmos.raw import raw_client, upsert


@pytest.fixture
def container(server):
    return server.add_container("db", "items", partition_key="/key", ranges=2)


@pytest.fixture
async def raw(server, container):
    async with raw_client(server) as client:
        yield client


def keys_of(container, range_id, count):
    found = (f"k{n}" for n in range(1000))
    return [key for key in found if container.route(container.rules.keys.of((key,))).id == range_id][:count]


async def test_each_operation_has_its_own_result_in_order(raw, container):
    key = keys_of(container, "0", 1)[0]
    status, headers, results = await raw.bulk("0", [upsert(1, key), upsert(1, key, again=True), upsert(2, key)])
    assert status == 200
    assert [one["statusCode"] for one in results] == [201, 200, 201]
    assert results[1]["resourceBody"]["again"] is True
    assert results[1]["eTag"] == results[1]["resourceBody"]["_etag"]
    assert float(headers["x-ms-request-charge"]) == pytest.approx(sum(one["requestCharge"] for one in results))


async def test_minimal_answers_carry_no_bodies(raw, container):
    key = keys_of(container, "0", 1)[0]
    _, _, results = await raw.bulk("0", [upsert(1, key)], Prefer="return=minimal")
    assert "resourceBody" not in results[0]
    assert "eTag" in results[0]


async def test_one_bad_operation_leaves_the_others_alone(raw, container):
    key = keys_of(container, "0", 1)[0]
    operations = [
        upsert(1, key),
        {"operationType": "Create", "partitionKey": f'["{key}"]', "resourceBody": {"id": "doc-1", "key": key}},
        {
            "operationType": "Replace",
            "partitionKey": f'["{key}"]',
            "id": "none",
            "resourceBody": {"id": "none", "key": key},
        },
        {"operationType": "Upsert", "partitionKey": f'["{key}"]', "resourceBody": {"id": "x", "key": "another"}},
        {"operationType": "Upsert", "partitionKey": f'["{key}"]', "resourceBody": {"key": key}},
        {"operationType": "Nonsense", "partitionKey": f'["{key}"]'},
        {"operationType": "Upsert"},
        {"operationType": "Delete", "partitionKey": f'["{key}"]', "id": "doc-1"},
        {"operationType": "Read", "partitionKey": f'["{key}"]', "id": "doc-1"},
    ]
    status, _, results = await raw.bulk("0", operations)
    assert status == 207
    assert [one["statusCode"] for one in results] == [201, 409, 404, 400, 400, 400, 400, 204, 404]
    assert container.count() == 0


async def test_a_key_of_another_range_is_refused_for_that_operation_only(raw, container):
    mine, other = keys_of(container, "0", 1)[0], keys_of(container, "1", 1)[0]
    status, _, results = await raw.bulk("0", [upsert(1, mine), upsert(2, other)])
    assert status == 207
    assert [(one["statusCode"], one.get("subStatusCode", 0)) for one in results] == [(201, 0), (400, 1001)]


async def test_without_continue_on_error_the_rest_is_424(raw, container):
    key = keys_of(container, "0", 1)[0]
    failing = {"operationType": "Delete", "partitionKey": f'["{key}"]', "id": "none"}
    _, _, results = await raw.bulk(
        "0", [upsert(1, key), failing, upsert(2, key)], **{"x-ms-cosmos-batch-continue-on-error": "false"}
    )
    assert [one["statusCode"] for one in results] == [201, 404, 424]


async def test_a_range_that_was_split_is_410_1002_for_the_whole_request(raw, container):
    key = keys_of(container, "0", 1)[0]
    container.split(range_id="0")
    status, headers, _ = await raw.bulk("0", [upsert(1, key)])
    assert (status, headers["x-ms-substatus"]) == (410, "1002")
    status, _, _ = await raw.bulk(container.route(container.rules.keys.of((key,))).id, [upsert(1, key)])
    assert status == 200


async def test_more_than_100_operations_or_none_are_refused(raw, container):
    key = keys_of(container, "0", 1)[0]
    assert (await raw.bulk("0", [upsert(n, key) for n in range(101)]))[0] == 400
    assert (await raw.bulk("0", []))[0] == 400
    assert (await raw.bulk("0", [upsert(n, key) for n in range(100)]))[0] == 200


async def test_more_than_2_mb_is_413(raw, container):
    key = keys_of(container, "0", 1)[0]
    status, _, _ = await raw.bulk("0", [upsert(n, key, text="x" * 300_000) for n in range(8)])
    assert status == 413


async def test_throttling_shows_in_single_operations_first_and_then_in_whole_requests(server):
    now = [100.25]
    server.account.clock = lambda: now[0]
    server.add_container("db", "slow", partition_key="/key", throughput=400)
    operations = [upsert(n, "k", text="x" * 800) for n in range(100)]
    async with raw_client(server, container="slow") as raw:
        status, _, results = await raw.bulk("0", operations)
        statuses = [one["statusCode"] for one in results]
        assert status == 207
        assert 55 <= statuses.count(201) <= 80
        assert statuses == sorted(statuses), "once it is spent, nothing more passes"
        refused = results[-1]
        assert (refused["subStatusCode"], refused["retryAfterMilliseconds"]) == (3200, 750)
        status, headers, _ = await raw.bulk("0", operations)
        assert (status, headers["x-ms-substatus"], headers["x-ms-retry-after-ms"]) == (429, "3200", "750")
        now[0] = 101.0
        status, _, results = await raw.bulk("0", operations[statuses.count(201) :])
        assert {one["statusCode"] for one in results} == {201}


async def test_each_range_has_its_own_share(server):
    server.account.clock = lambda: 100.0
    container = server.add_container("db", "slow", partition_key="/key", throughput=400, ranges=2)
    async with raw_client(server, container="slow") as raw:
        busy = [upsert(n, keys_of(container, "0", 1)[0]) for n in range(100)]
        await raw.bulk("0", busy)
        assert (await raw.bulk("0", busy))[0] == 429
        assert (await raw.bulk("1", [upsert(1, keys_of(container, "1", 1)[0])]))[0] == 200


async def test_an_atomic_batch_dearer_than_a_seconds_share_passes_into_debt(server):
    server.account.clock = lambda: 100.0
    server.add_container("db", "slow", partition_key="/key", throughput=400)
    entries = [{"operationType": "Upsert", "resourceBody": {"id": str(n), "key": "k"}} for n in range(100)]
    marks = {
        "x-ms-cosmos-is-batch-request": "True",
        "x-ms-cosmos-batch-atomic": "True",
        "x-ms-documentdb-partitionkey": '["k"]',
    }
    async with raw_client(server, container="slow") as raw:
        status, _, results = await raw.post(entries, **marks)
        assert status == 200
        assert {one["statusCode"] for one in results} == {201}
        status, headers, _ = await raw.post(entries, **marks)
        assert status == 429
        assert int(headers["x-ms-retry-after-ms"]) == 1000
