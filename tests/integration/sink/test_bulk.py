"""The sink over the real SDK against a Cosmos server: bulk, splits, dropped sockets, throttling, guarded writes."""

import asyncio
from collections import Counter
from dataclasses import replace
from random import Random

import orjson
import pytest

from service.sink.cosmos import CosmosAccess
from service.sink.outcome import Outcome
from service.sink.record import DocumentOptions
from tests.integration.sink.conftest import QUICK
from tests.simulation.sink.parts import MemoryBox


def document(number: int, keys: int = 200) -> dict:
    return {"id": f"d{number}", "key": f"k{number % keys}", "n": number}


async def test_records_arrive_as_they_are_with_their_stamp(items, connect):
    async with connect() as feeder:
        feeder.feed(b'{"z":1.10,"id":"a","key":"k\xc3\xa9","big":123456789012345678901234567890}')
        await feeder.drain()
    (stored,) = items.documents()
    assert list(stored)[:5] == ["z", "id", "key", "big", "_sluice"]
    assert stored["_sluice"] == {
        "incarnation": 1_700_000_000_000,
        "partition": "0",
        "sequence": 0,
        "index": 0,
        "enqueued": 1_700_000_000,
    }


async def test_a_hundred_records_of_a_range_are_one_request(server, items, connect):
    async with connect() as feeder:
        before = server.requests
        for number in range(2000):
            feeder.feed(document(number))
        await feeder.drain()
        assert items.count() == 2000
        assert server.requests - before <= 30
        statistics = feeder.sink.statistics()
        assert statistics.committed == 2000
        assert statistics.ru == pytest.approx(items.request_units(), rel=0.01)


async def test_a_split_in_the_middle_loses_nothing(items, connect):
    async with connect() as feeder:
        for number in range(6000):
            feeder.feed(document(number))
            if number == 3000:
                await feeder.drain(feeder.items[:500])
                items.split(into=6)
        await feeder.drain()
        assert items.count() == 6000
        assert feeder.sink.statistics().ranges == 6
        assert feeder.outcomes() == {Outcome.COMMITTED: 6000}


async def test_sockets_dropped_after_the_write_lose_nothing_and_settle_each_record_once(items, connect):
    async with connect() as feeder:
        items.faults.drop_next(5, when="after")
        items.faults.drop_next(5, when="before")
        for number in range(3000):
            feeder.feed(document(number))
        await feeder.drain()
        assert items.count() == 3000
        assert feeder.outcomes() == {Outcome.COMMITTED: 3000}
        assert feeder.sink.statistics().retried[0] > 0


@pytest.mark.parametrize(
    ("status", "sub_status"), [(429, 3200), (408, 0), (410, 1002), (410, 1000), (449, 0), (403, 3), (500, 0), (503, 0)]
)
@pytest.mark.parametrize("scope", ["request", "operation"])
async def test_faults_that_pass_are_waited_out(items, connect, status, sub_status, scope):
    box = MemoryBox()
    async with connect(box=box) as feeder:
        items.faults.fail_next(3, status, sub_status, scope=scope, retry_after_ms=10 if status == 429 else None)
        for number in range(200):
            feeder.feed(document(number))
        await feeder.drain()
        assert items.count() == 200
        assert feeder.sink.statistics().retried[status] >= 3
    assert box.letters == []


async def test_a_thousand_updates_of_one_document_with_throttling_and_drops(items, connect):
    random = Random(7)
    items.write_log.keep_bodies = True
    async with connect() as feeder:
        for number in range(1000):
            feeder.feed({"id": "a", "key": "k", "n": number})
        begin = asyncio.get_running_loop().time()
        for _ in range(60):
            items.faults.fail_next(1, 429, 3200, scope="operation", retry_after_ms=5, skip=random.randrange(900))
        for _ in range(15):
            items.faults.drop_next(1, when=random.choice(["before", "after"]), skip=random.randrange(900))
        await feeder.drain()
        assert asyncio.get_running_loop().time() - begin < 60
    written = [orjson.loads(write.body)["n"] for write in items.write_log if write.lsn]
    assert written == sorted(written)
    assert set(written) == set(range(1000))
    assert items.get("a", "k")["n"] == 999


async def test_guarded_writes_against_the_server(items, connect):
    guarded = replace(QUICK, guarded=True)
    deletes = DocumentOptions(delete="/gone")
    async with connect(options=guarded, documents=deletes) as feeder:
        for number in range(500):
            feeder.feed(document(number % 100) | {"n": number})
        feeder.feed(document(3) | {"gone": True})
        await feeder.drain()
        assert feeder.outcomes() == {Outcome.COMMITTED: 501}
        assert items.count() == 99
    async with connect(options=guarded, documents=deletes) as again:
        for number in range(500):
            again.feed(document(number % 100) | {"n": number})
        again.feed(document(3) | {"gone": True})
        await again.drain()
        assert again.outcomes()[Outcome.SUPERSEDED] >= 396
        assert {stored["n"] for stored in items.documents()} == set(range(400, 500)) - {403}


async def test_one_by_one_if_bulk_is_off(server, items, connect):
    async with connect(options=replace(QUICK, bulk="off"), documents=DocumentOptions(delete="/gone")) as feeder:
        before = server.requests
        body = b'{"z":1.10,"id":"a","key":"k","big":123456789012345678901234567890}'
        feeder.feed(body)
        for number in range(100):
            feeder.feed(document(number))
        feeder.feed(document(5) | {"gone": True})
        await feeder.drain()
        assert items.count() == 100
        assert server.requests - before >= 102
        assert items.get("a", "k")["z"] == 1.10


async def test_guarded_writes_one_by_one(items, connect):
    options = replace(QUICK, bulk="off", guarded=True)
    for expected in ({Outcome.COMMITTED: 40}, {Outcome.COMMITTED: 10, Outcome.SUPERSEDED: 30}):
        async with connect(options=options) as feeder:
            for number in range(40):
                feeder.feed(document(number % 10) | {"n": number})
            await feeder.drain()
            assert feeder.outcomes() == expected


async def test_hierarchical_keys_and_old_hashes_reach_their_ranges(server, connect):
    for name, options in (
        ("deep", {"partition_key": ["/key", "/n"]}),
        ("old", {"partition_key": "/key", "key_version": 1}),
    ):
        made = server.add_container(name, "items", ranges=4, **options)
        access = CosmosAccess.from_connection_string(server.connection_string(), name, "items")
        async with connect(access=access) as feeder:
            for number in range(400):
                feeder.feed(document(number) | {"key": [f"k{number}", number, None, True][number % 4]})
            await feeder.drain()
        assert made.count() == 400
        assert Counter(write.status for write in made.write_log) == {201: 400}
