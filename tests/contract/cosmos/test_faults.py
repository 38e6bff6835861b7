"""Faults on demand, in process and over the control port."""

import asyncio
import contextlib

import aiohttp
import pytest
from azure.core.exceptions import ServiceResponseError
from azure.cosmos import exceptions

from tests.contract.cosmos.raw import raw_client, upsert


@pytest.fixture
def container(server):
    return server.add_container("db", "items", partition_key="/key", ranges=2)


@pytest.fixture
def items(client, container):
    return client.get_database_client("db").get_container_client("items")


async def test_the_next_requests_fail_as_asked_and_then_it_is_over(items, container):
    container.faults.fail_next(2, status=408, operation="Upsert")
    for _ in range(2):
        with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
            await items.upsert_item({"id": "a", "key": "k"})
        assert caught.value.status_code == 408
    await items.upsert_item({"id": "a", "key": "k"})
    assert container.faults.happened == 2


async def test_single_operations_of_a_bulk_request_fail_as_asked(server, container):
    container.faults.fail_next(1, status=449, scope="operation", document_id="doc-1", retry_after_ms=5)
    key = next(k for k in "abcdefgh" if container.route(container.rules.keys.of((k,))).id == "0")
    async with raw_client(server) as raw:
        status, _, results = await raw.bulk("0", [upsert(n, key) for n in range(3)])
    assert status == 207
    assert [one["statusCode"] for one in results] == [201, 449, 201]
    assert results[1]["retryAfterMilliseconds"] == 5


@pytest.mark.parametrize(("when", "written"), [("before", 0), ("after", 1)])
async def test_a_dropped_socket_gives_no_answer_before_or_after_the_write(server, container, when, written):
    container.faults.drop_next(when=when)
    async with raw_client(server) as raw:
        with pytest.raises(aiohttp.ClientError):
            await raw.post({"id": "a", "key": "k"}, **{"x-ms-documentdb-partitionkey": '["k"]'})
    assert container.count() == written


async def test_the_sdk_sends_an_upsert_again_after_a_dropped_socket(items, container):
    container.faults.drop_next(count=1, when="after")
    with contextlib.suppress(ServiceResponseError):
        await items.upsert_item({"id": "a", "key": "k"})
    assert container.count() == 1
    assert len(container.write_log) >= 1


async def test_a_delayed_answer_is_late_and_the_write_is_not(server, container):
    container.faults.delay_next(seconds=30)
    async with raw_client(server) as raw:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await raw.post({"id": "a", "key": "k"}, **{"x-ms-documentdb-partitionkey": '["k"]'})
    assert container.count() == 1


async def test_a_fault_for_one_range_leaves_the_other_alone(server, container):
    container.faults.fail_next(1, status=503, range_id="1")
    by_range = {container.route(container.rules.keys.of((k,))).id: k for k in "abcdefgh"}
    async with raw_client(server) as raw:
        assert (await raw.bulk("0", [upsert(1, by_range["0"])]))[0] == 200
        assert (await raw.bulk("1", [upsert(2, by_range["1"])]))[0] == 503
        assert (await raw.bulk("1", [upsert(2, by_range["1"])]))[0] == 200


async def test_what_is_no_document_fails_by_the_servers_own_faults(server, client, container):
    server.faults.fail_next(1, status=403, sub_status=5300, operation="Container")
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await client.get_database_client("db").get_container_client("items").read()
    assert (caught.value.status_code, caught.value.sub_status) == (403, 5300)


async def test_the_write_log_tells_what_was_tried_and_what_came_of_it(items, container):
    container.write_log.keep_bodies = True
    await items.create_item({"id": "a", "key": "k", "v": 1})
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await items.create_item({"id": "a", "key": "k", "v": 2})
    await items.delete_item("a", "k")
    assert [(one.operation, one.status) for one in container.write_log] == [
        ("Create", 201),
        ("Create", 409),
        ("Delete", 204),
    ]
    assert [one.lsn for one in container.write_log.committed()] == [1, 2]
    assert b'"v":1' in container.write_log.of("a")[0].body


async def test_the_control_port_does_the_same_from_another_process(server, container):
    base = f"http://127.0.0.1:{await server.start_control()}"
    here = f"{base}/containers/db/items"
    async with aiohttp.ClientSession() as session, raw_client(server) as raw:

        async def ask(method, path, **body):
            async with session.request(method, path, json=body or None) as answer:
                return answer.status, await answer.json()

        assert await ask("GET", base) == (200, [{"database": "db", "container": "items", "documents": 0}])
        assert await ask("POST", f"{here}/faults", status=503, count=1) == (200, {"armed": 1})
        key = {"x-ms-documentdb-partitionkey": '["k"]'}
        assert (await raw.post({"id": "a", "key": "k"}, **key))[0] == 503
        assert (await raw.post({"id": "a", "key": "k"}, **key))[0] == 201
        assert await ask("POST", f"{here}/split", into=3) == (200, {"ranges": ["2", "3", "1"]})
        for one in container.ranges.ranges:
            assert (await ask("POST", f"{here}/throttle", range_id=one.id))[0] == 200
        assert (await raw.post({"id": "b", "key": "k"}, **key))[0] == 429
        _, log = await ask("GET", f"{here}/writes")
        assert [one["status"] for one in log["writes"]] == [201, 429]
        assert (await ask("POST", f"{here}/throughput", request_units=1000))[1] == {"request_units": 1000}
        assert {one["rate"] for one in (await ask("GET", f"{here}/ranges"))[1]} == {1000 / 3}
        assert (await ask("DELETE", f"{here}/faults"))[1] == {"happened": 1}
        for body in ({"status": "x"}, {"unknown": 1}, {"scope": "all"}, {"count": 0}, {"delay_seconds": 1e9}):
            assert (await ask("POST", f"{here}/faults", **body))[0] == 400
        assert (await ask("POST", f"{here}/split", into=1, range_id="1"))[0] == 400
        assert (await ask("POST", f"{here}/nonsense"))[0] == 405
        assert (await ask("GET", f"{base}/containers/db/none/ranges"))[0] == 404
        async with session.get(base, headers={"Host": "evil.example"}) as answer:
            assert answer.status == 403
