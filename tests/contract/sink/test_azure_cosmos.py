"""What we lean on in azure-cosmos and azure-core, seen on the wire: an upgrade that changes it fails here."""

import asyncio
from dataclasses import replace

import aiohttp
import pytest
from azure.core.pipeline.transport import AioHttpTransport
from azure.cosmos.aio import CosmosClient
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from service.local.cosmos.server import CosmosServer
from service.sink.container import Refused, SingleOperation
from service.sink.cosmos import CosmosAccess, CosmosContainer
from service.sink.outcomes import Step
from service.sink.wire import Captured

UPSERT = b'[{"operationType":"Upsert","partitionKey":"[\\"k\\"]","resourceBody":{"id":"%b","key":"k"}}]'
STAND_IN = [("read", ("-",))]


@pytest.fixture
async def server():
    async with CosmosServer() as running:
        yield running


@pytest.fixture
def items(server):
    return server.add_container("db", "items", partition_key="/key", ranges=4)


@pytest.fixture
async def container(server, items):
    made = CosmosContainer(CosmosAccess.from_connection_string(server.connection_string(), "db", "items"))
    await made.describe()
    yield made
    await made.close()


def range_of(items, key: str = "k") -> str:
    return items.route(items.rules.keys.parse(f'["{key}"]')).id


async def sends(server, items, **options) -> int:
    """How often one upsert is sent while everything is answered 429."""
    async with CosmosClient(server.endpoint, server.key, **options) as client:
        proxy = client.get_database_client("db").get_container_client("items")
        await proxy.read()
        items.faults.fail_next(50, 429, 3200, retry_after_ms=1)
        before = items.faults.happened
        with pytest.raises(CosmosHttpResponseError) as refused:
            await proxy.upsert_item({"id": "a", "key": "k"})
        assert refused.value.status_code == 429
        happened = items.faults.happened - before
        items.faults.clear()
        return happened


async def test_only_minus_one_turns_the_retry_of_429_off(server, items):
    assert await sends(server, items, retry_throttle_total=-1) == 1
    assert await sends(server, items, retry_throttle_total=0) > 1


async def test_our_client_sends_everything_once(server, items, container):
    await container.send_bulk(range_of(items), UPSERT % b"warm", minimal=True)
    for status in (429, 408, 410, 449, 500):
        items.faults.fail_next(5, status, retry_after_ms=1)
        before = server.requests
        with pytest.raises(Refused) as refused:
            await container.send_bulk(range_of(items), UPSERT % b"a", minimal=True)
        assert refused.value.status == status
        assert server.requests - before == 1
        items.faults.clear()


async def test_the_hook_sees_the_request_signed_and_can_end_it_before_it_is_sent(server, container):
    seen = {}

    def look(request):
        seen.update(request.http_request.headers, url=request.http_request.url)
        raise Captured

    before = server.requests
    with pytest.raises(Captured):
        await container._container.execute_item_batch(STAND_IN, "-", raw_request_hook=look)
    assert server.requests == before
    assert seen["url"] == f"{server.endpoint}dbs/db/colls/items/docs/"
    assert seen["authorization"].startswith("type%3Dmaster")
    assert seen["x-ms-cosmos-is-batch-request"] == "True"
    assert seen["x-ms-cosmos-intended-collection-rid"]
    assert seen["x-ms-version"] == "2020-07-15"
    assert seen["x-ms-documentdb-partitionkey"] == '["-"]'


async def test_the_hook_may_replace_body_and_headers_of_a_batch(items, container):
    """The way through the SDK, which is taken after a failure."""
    answers = await container._send_through_sdk(range_of(items), UPSERT % b"a", minimal=True)
    assert [answer["statusCode"] for answer in answers] == [201]
    assert "resourceBody" not in answers[0]
    assert items.get("a", "k") is not None


async def test_a_mixed_answer_is_an_exception_that_holds_every_operation(items, container):
    payload = b"[" + UPSERT[1:-1] % b"a" + b"," + UPSERT[1:-1] % b"b" + b"]"
    items.faults.fail_next(1, 429, 3200, scope="operation", retry_after_ms=7)

    def replace(request):
        request.http_request.data = payload
        request.http_request.headers["Content-Length"] = str(len(payload))
        request.http_request.headers["x-ms-cosmos-batch-atomic"] = "False"
        request.http_request.headers["x-ms-cosmos-batch-continue-on-error"] = "True"
        request.http_request.headers["x-ms-documentdb-partitionkeyrangeid"] = range_of(items)
        request.http_request.headers.pop("x-ms-documentdb-partitionkey")

    with pytest.raises(CosmosBatchOperationError) as mixed:
        await container._container.execute_item_batch(STAND_IN, "-", raw_request_hook=replace)
    first, second = mixed.value.operation_responses
    assert (first["statusCode"], first["retryAfterMilliseconds"]) == (429, 7)
    assert second["statusCode"] == 201


async def test_both_ways_give_the_same_answers(items, container):
    there = await container._send_through_sdk(range_of(items), UPSERT % b"a", minimal=True)
    straight = await container.send_bulk(range_of(items), UPSERT % b"b", minimal=True)
    assert [set(answer) for answer in there] == [set(answer) for answer in straight]


async def test_both_shapes_of_429_are_told_apart(items, container):
    items.faults.fail_next(1, 429, 3200, scope="operation", retry_after_ms=66)
    (answer,) = await container.send_bulk(range_of(items), UPSERT % b"a", minimal=True)
    assert (answer["statusCode"], answer["retryAfterMilliseconds"]) == (429, 66)
    items.faults.fail_next(1, 429, 3200, retry_after_ms=66)
    with pytest.raises(Refused) as refused:
        await container.send_bulk(range_of(items), UPSERT % b"a", minimal=True)
    assert (refused.value.status, refused.value.sub_status, refused.value.retry_after_seconds) == (429, 3200, 0.066)


async def test_the_ranges_are_read_with_their_ids_and_read_again_after_a_split(items, container):
    ranges = await container.read_ranges()
    assert len(ranges) == 4
    assert min(low for _, low, _ in ranges) == ""
    items.split(into=6)
    with pytest.raises(Refused) as gone:
        await container.send_bulk(ranges[0][0], UPSERT % b"a", minimal=True)
    assert (gone.value.status, gone.value.sub_status) == (410, 1002)
    again = await container.read_ranges()
    assert len(again) == 6
    assert sorted(low for _, low, _ in again)[1:] == sorted(high for _, _, high in again)[:-1]


async def test_a_dropped_socket_is_no_answer_and_the_next_request_goes_the_whole_way(items, container, monkeypatch):
    whole_way = []
    real = container._send_through_sdk

    async def watched(*args, **more):
        whole_way.append(args)
        return await real(*args, **more)

    monkeypatch.setattr(container, "_send_through_sdk", watched)
    await container.send_bulk(range_of(items), UPSERT % b"a", minimal=True)
    items.faults.drop_next(1, when="after")
    with pytest.raises(Refused) as refused:
        await container.send_bulk(range_of(items), UPSERT % b"b", minimal=True)
    assert refused.value.status == 0
    assert items.get("b", "k") is not None
    await container.send_bulk(range_of(items), UPSERT % b"c", minimal=True)
    assert len(whole_way) == 1
    await container.send_bulk(range_of(items), UPSERT % b"d", minimal=True)
    assert len(whole_way) == 1


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"[1]", b"<html>", b'[{"statusCode":201}'])
async def test_an_odd_answer_is_a_fault_and_never_a_success(body):
    from aiohttp import web
    from multidict import CIMultiDict
    from yarl import URL

    from service.sink.wire import Template, Wire

    async def answer(request):
        await request.read()
        return web.Response(body=body, content_type="application/json")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with aiohttp.ClientSession() as session:
            template = Template(URL(f"http://127.0.0.1:{port}/docs"), CIMultiDict(), 0.0)
            with pytest.raises(Refused) as refused:
                await Wire(session, {}).post(template, "0", b"[]", minimal=True)
            assert refused.value.status == 200
    finally:
        await runner.cleanup()


async def test_single_operations_and_their_conditions(items, container):
    def operation(step, etag="", body=b'{"id":"a","key":"k","n":1.10}'):
        return SingleOperation(step, "a", b'"[\\"k\\"]"', body, etag)

    created = await container.send_single(operation(Step.CREATE))
    assert created["statusCode"] == 200
    assert created["requestCharge"] > 0
    assert (await container.send_single(operation(Step.CREATE)))["statusCode"] == 409
    read = await container.send_single(operation(Step.READ))
    assert read["resourceBody"]["n"] == 1.10
    assert read["eTag"] == read["resourceBody"]["_etag"]
    assert (await container.send_single(operation(Step.REPLACE, '"wrong"')))["statusCode"] == 412
    assert (await container.send_single(operation(Step.REPLACE, read["eTag"])))["statusCode"] == 200
    assert (await container.send_single(operation(Step.DELETE, read["eTag"])))["statusCode"] == 412
    assert (await container.send_single(operation(Step.DELETE)))["statusCode"] == 200
    assert (await container.send_single(operation(Step.READ)))["statusCode"] == 404


async def test_the_environment_is_not_looked_up_for_each_request(server, items, container, monkeypatch):
    """aiohttp with trust_env reads .netrc and proxies in a thread, each time."""
    assert container._wire._session.trust_env is False
    assert isinstance(container._client.client_connection.pipeline_client._pipeline._transport, AioHttpTransport)
    monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", None)
    await container.send_bulk(range_of(items), UPSERT % b"a", minimal=True)
    await container._send_through_sdk(range_of(items), UPSERT % b"b", minimal=True)


async def test_a_pinned_endpoint_is_used_whatever_the_account_says(server, items, monkeypatch):
    """An emulator behind a port mapping, or a private endpoint, advertises an address that leads nowhere."""
    from service.local.cosmos import resources

    real = resources.serve

    def elsewhere(account, request):
        response = real(account, request)
        if not request.path and isinstance(response.body, bytes):
            response = replace(response, body=response.body.replace(b"127.0.0.1", b"127.0.0.9"))
        return response

    monkeypatch.setattr("service.local.cosmos.server.serve", elsewhere)
    access = CosmosAccess.from_connection_string(server.connection_string(), "db", "items", pinned=True)
    pinned = CosmosContainer(access)
    await pinned.describe()
    await pinned.send_bulk(range_of(items), UPSERT % b"a", minimal=True)
    await pinned.close()
    assert items.count() == 1
