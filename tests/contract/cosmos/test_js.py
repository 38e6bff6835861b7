"""@azure/cosmos as a foreign client."""

import asyncio

from tests.contract.js import node


async def test_bulk_of_20000_documents_completes_over_a_split_while_throttled(server):
    container = server.add_container("db", "items", partition_key="/key", ranges=2, throughput=100_000)
    client = asyncio.create_task(
        node.run(
            "cosmos_bulk.mjs",
            connection=server.connection_string(),
            database="db",
            container="items",
            count=20_000,
            keys=500,
        )
    )

    async def until(happened):
        while not happened() and not client.done():  # noqa: ASYNC110 - the client is another process
            await asyncio.sleep(0.01)

    await until(lambda: container.count() > 3_000)
    # 5 ms: this SDK waits for each of a batch's operations, one after the other
    container.throttle_range("0", retry_after_ms=5)
    await until(lambda: container.throttled() > 0)
    container.throttle_range("0", on=False)
    await until(lambda: container.count() > 6_000)
    container.split(into=4)
    answer = await client
    log = container.write_log
    assert answer["statuses"] == {"201": 20_000}
    assert container.count() == 20_000
    assert answer["counted"] == 20_000
    assert answer["highest"] == [19_999, 19_998, 19_997]
    assert sorted(one["n"] for one in answer["groups"]) == [1] * 10
    assert answer["first"]["number"] == 0
    assert len({entry.range_id for entry in log if entry.status == 201}) > 2, "the split came in the middle"
    assert container.throttled() > 0
