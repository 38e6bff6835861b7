"""What can never be committed becomes a dead letter with its reason; the good ones beside it are committed."""

import gzip
from dataclasses import replace

from service.local.cosmos.server import CosmosServer
from service.sink.container import Refused
from service.sink.cosmos import CosmosAccess
from service.sink.flood import FloodOptions
from service.sink.outcome import Outcome
from tests.integration.sink.conftest import QUICK, connected
from tests.simulation.sink.parts import MemoryBox

POISON = [
    (b"not json", "not JSON"),
    (b'{"key":"k"}', "the id /id is missing"),
    (b'{"id":"a/b","key":"k"}', "a character that Cosmos does not allow"),
    (b'{"id":"a"}', "the partition key /key is missing"),
    (b'{"id":"a","key":"k","x":"' + b"x" * 3_000_000 + b'"}', "Cosmos takes at most 2097152"),
    (b"null", "the record is null"),
    (b"[]", "the record is an array"),
    (b'{"id":"a","key":"\xff"}', "not JSON"),
    (gzip.compress(b"[" + b" " * 40_000_000), "grows beyond"),
]


async def test_the_poison_mix():
    box = MemoryBox()
    options = replace(QUICK, flood=FloodOptions(max_ratio=0.9))
    async with CosmosServer(partition_limit_bytes=20_000) as server:
        items = server.add_container("db", "items", partition_key="/key", ranges=4, unique_keys=[["/serial"]])
        access = CosmosAccess.from_connection_string(server.connection_string(), "db", "items")
        async with connected(access, options=options, box=box) as feeder:
            for number, (body, _) in enumerate(POISON):
                feeder.feed(body)
                feeder.feed({"id": f"good{number}", "key": f"g{number}", "serial": number})
            filling = [feeder.feed({"id": f"f{n}", "key": "full", "serial": n, "x": "y" * 9000}) for n in range(3)]
            twin = [feeder.feed({"id": f"t{n}", "key": "twin", "serial": 1}) for n in range(2)]
            large = feeder.feed({"id": "large", "key": "large", "x": "y" * 19_000})
            feeder.sink.flush()
            await feeder.drain()
            assert items.count() == len(POISON) + 2 + 1 + 1
    reasons = {letter.event.sequence: letter for letter in box.letters}
    for number, (_, reason) in enumerate(POISON):
        assert reason in reasons[number * 2].reason
    dead = [item for item in feeder.items if item.outcomes == [Outcome.DEAD_LETTERED]]
    assert len(dead) == len(POISON) + 2
    full = next(reasons[item.event.sequence] for item in filling if item.outcomes == [Outcome.DEAD_LETTERED])
    assert (full.status, full.sub_status) == (403, 1014)
    assert "full" in full.reason
    conflict = next(reasons[item.event.sequence] for item in twin if item.outcomes == [Outcome.DEAD_LETTERED])
    assert conflict.status == 409
    assert "Unique index constraint" in conflict.reason
    assert large.outcomes == [Outcome.COMMITTED]


async def test_one_poison_record_in_a_refused_request_costs_its_neighbours_nothing(items, connect):
    """The service refuses the whole request for the sake of one: here, whatever request has it in."""
    box = MemoryBox()
    async with connect(box=box) as feeder:
        send = feeder.sink._container.send_bulk

        async def picky(range_id, payload, *, minimal):
            if b'"bad"' in payload:
                raise Refused("Request size is too large", 413)
            return await send(range_id, payload, minimal=minimal)

        async def alone(operation):
            assert operation.id == "bad"
            return {"statusCode": 413, "subStatusCode": 0, "message": "Request size is too large"}

        feeder.sink._container.send_bulk = picky
        feeder.sink._container.send_single = alone
        for number in range(100):
            feeder.feed({"id": "bad" if number == 57 else f"d{number}", "key": "k"})
        feeder.sink.flush()
        await feeder.drain()
        assert items.count() == 99
    assert [(letter.event.sequence, letter.status) for letter in box.letters] == [(57, 413)]


async def test_a_document_of_nearly_two_megabytes_goes_through(items, connect):
    async with connect() as feeder:
        frame = 1000  # what the stamp and the service itself add
        feeder.feed({"id": "a", "key": "k", "x": "y" * (2 * 1024 * 1024 - frame)})
        await feeder.drain()
        assert feeder.outcomes() == {Outcome.COMMITTED: 1}
