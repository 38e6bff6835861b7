"""The whole sink on a virtual clock, over a container in memory that gives every kind of trouble."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

import orjson
import pytest

from service.errors import DeadLetterFlood
from service.sink.container import Refused
from service.sink.flood import FloodOptions
from service.sink.lane import BatchOptions
from service.sink.options import SinkOptions
from service.sink.outcome import Outcome
from service.sink.record import DocumentOptions
from service.sink.routing import PartitionKeyDefinition
from tests.simulation.loop import simulate
from tests.simulation.memory_cosmos import MemoryContainer, Trouble
from tests.simulation.sink.parts import Feeder, MemoryBox, ownership, running

EVERYTHING = Trouble(
    throttle_operation=0.05,
    throttle_request=0.03,
    retry_with=0.02,
    server_error=0.03,
    lost_before=0.03,
    lost_after=0.03,
    short_answer=0.02,
    foreign_write=0.05,
)
QUICK = SinkOptions(batch=BatchOptions(wait_seconds=0.05), retry_wait_seconds=0.1)
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.proof) for seed in range(4, 200))]
"""The rest by `make proof`."""


def sequences(container: MemoryContainer) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """What each document saw: sequence and index of every write."""
    seen: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for write in container.log:
        if write.body is not None:
            stamp = write.body["_sluice"]
            seen[write.key, write.id].append((stamp["sequence"], stamp["index"]))
    return seen


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_each_record_is_settled_once_and_the_last_state_is_the_newest(seed, guarded):
    async def main():
        container = MemoryContainer(Random(seed), trouble=EVERYTHING)
        box = MemoryBox()
        async with running(container, box, replace(QUICK, guarded=guarded), seed) as sink:
            feeder = Feeder(sink, DocumentOptions(body="array"), guarded=guarded)
            random, last = Random(seed), {}
            for sequence in range(300):
                documents = [
                    {"id": f"d{random.randrange(40)}", "key": f"k{random.randrange(3)}"}
                    for _ in range(random.randrange(1, 4))
                ]
                last |= {(f'["{d["key"]}"]', d["id"]): (sequence, index) for index, d in enumerate(documents)}
                feeder.feed(orjson.dumps(documents))
                if sequence == 150:
                    container.split(6)
                await asyncio.sleep(random.random() * 0.005)
            await feeder.drain()
            statistics = sink.statistics()
        assert container.overlaps == [], "two operations of one document were in flight"
        assert box.letters == []
        assert set(feeder.outcomes()) == {Outcome.COMMITTED}
        assert statistics.committed == feeder.outcomes()[Outcome.COMMITTED]
        assert (statistics.queued, statistics.in_flight) == (0, 0)
        for document, writes in sequences(container).items():
            assert writes == sorted(writes), "written out of order"
            assert writes[-1] == last[document]

    simulate(main, seed)


def test_a_batch_leaves_when_it_is_full_or_its_oldest_record_has_waited():
    async def main():
        container = MemoryContainer(Random(1), ranges=1, trouble=Trouble(delay_seconds=(0.0, 0.0)))
        async with running(container) as sink:
            feeder = Feeder(sink)
            for number in range(100):
                feeder.feed({"id": f"a{number}", "key": "k"})
            await asyncio.sleep(0.1)
            assert len(container.log) == 100
            feeder.feed({"id": "late", "key": "k"})
            await asyncio.sleep(0.9)
            assert len(container.log) == 100
            await asyncio.sleep(0.2)
            assert len(container.log) == 101
            feeder.feed({"id": "last", "key": "k"})
            sink.flush()
            await asyncio.sleep(0.1)
            assert len(container.log) == 102

    simulate(main, 1)


def test_batches_hold_no_more_bytes_than_the_service_takes():
    async def main():
        container = MemoryContainer(Random(1), ranges=1)
        async with running(container, options=QUICK) as sink:
            feeder = Feeder(sink)
            for number in range(40):
                feeder.feed({"id": f"a{number}", "key": "k", "x": "y" * (10_000 if number else 900_000)})
            await feeder.drain()
            assert container.requests == 1 + -(-39 // 21)

    simulate(main, 1)


def test_a_waiting_record_counts_its_time_from_its_arrival():
    """Ten updates of one document that come together do not wait ten times for their batch."""

    async def main():
        container = MemoryContainer(Random(1))
        async with running(container) as sink:
            feeder = Feeder(sink)
            for number in range(10):
                feeder.feed({"id": "a", "key": "k", "n": number})
            begin = asyncio.get_running_loop().time()
            await feeder.drain()
            assert asyncio.get_running_loop().time() - begin < 1.5

    simulate(main, 1)


def test_a_hot_range_slows_only_itself():
    async def main():
        container = MemoryContainer(Random(1), ranges=4)
        hot = container._map.ids[0]
        container._budgets[hot].rate = 60.0
        async with running(container, options=QUICK) as sink:
            feeder = Feeder(sink)
            for number in range(2000):
                feeder.feed({"id": f"d{number}", "key": f"k{number}"})
            await asyncio.sleep(2.0)
            left = sum(not item.done for item in feeder.items)
            assert sink.statistics().paced.keys() == {hot}
            assert 300 < left < 600  # about a quarter of the keys are the hot range's
            for lane in sink._lanes.by_range.values():
                assert len(lane) == 0 or lane.range_id == hot

    simulate(main, 1)


def test_after_a_loss_nothing_more_is_sent_or_settled_for_the_partition():
    async def main():
        container = MemoryContainer(Random(3), trouble=replace(EVERYTHING, lost_after=0.2, throttle_request=0.3))
        async with running(container, options=QUICK) as sink:
            feeder = Feeder(sink)
            lost, kept = ownership("1"), ownership("2")
            for number in range(600):  # they share documents, so some wait for each other
                feeder.feed({"id": f"d{number % 50}", "key": "k", "n": number}, lost if number % 2 else kept)
            feeder.feed(b"poison", lost)
            await asyncio.sleep(0.3)
            sink.purge(lost)
            settled = {id(item): len(item.outcomes) for item in feeder.items if item.ownership is lost}
            await asyncio.sleep(1.0)  # what was on its way has landed
            writes = len([write for write in container.log if write.body["n"] % 2])
            await feeder.drain([item for item in feeder.items if item.ownership is kept])
            await asyncio.sleep(5.0)
            assert len([write for write in container.log if write.body["n"] % 2]) == writes
            assert settled == {id(item): len(item.outcomes) for item in feeder.items if item.ownership is lost}
            assert (sink.statistics().queued, sink.statistics().in_flight) == (0, 0)

    simulate(main, 3)


def test_past_its_deadline_a_record_waits_for_the_renewal():
    async def main():
        loop = asyncio.get_running_loop()
        container = MemoryContainer(Random(1))
        async with running(container, options=QUICK) as sink:
            feeder = Feeder(sink)
            late = ownership("0", loop.time, deadline=loop.time() - 1)
            item = feeder.feed({"id": "a", "key": "k"}, late)
            await asyncio.sleep(30)
            assert container.requests == 0
            late.deadline = loop.time() + 30
            await asyncio.sleep(1)
            assert item.outcomes == [Outcome.COMMITTED]

    simulate(main, 1)


def test_a_lost_lease_is_noticed_at_dispatch_even_without_a_purge():
    async def main():
        container = MemoryContainer(Random(1))
        async with running(container, options=QUICK) as sink:
            feeder = Feeder(sink)
            gone = ownership("0")
            gone.lost = True
            item = feeder.feed({"id": "a", "key": "k"}, gone)
            after = feeder.feed({"id": "a", "key": "k"})
            await feeder.drain([after])
            assert container.requests == 1
            assert item.outcomes == []

    simulate(main, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_at_any_point_no_event_is_completed_before_an_earlier_one_on_the_same_document(seed):
    """Promise 5, what keeps the done-ahead set safe: whatever is completed, an earlier event that shares one of its
    documents is wholly completed too, so doing the others again never writes over it.
    """

    async def main():
        random = Random(seed)
        container = MemoryContainer(Random(seed), trouble=EVERYTHING)
        async with running(container, options=QUICK, seed=seed) as sink:
            feeder = Feeder(sink, DocumentOptions(body="array"))
            shared: list[set[str]] = []
            for _ in range(60):
                documents = [{"id": f"d{random.randrange(12)}", "key": "k"} for _ in range(random.randrange(1, 5))]
                shared.append({document["id"] for document in documents})
                feeder.feed(orjson.dumps(documents))
            known: set[int] = set()
            while len(known) < len(feeder.items):
                await asyncio.sleep(0.001)  # each of these is a point at which the process might be killed
                completed = {number for number, item in enumerate(feeder.items) if item.done}
                for number in completed - known:
                    assert all(earlier in completed for earlier in range(number) if shared[earlier] & shared[number])
                known = completed

    simulate(main, seed)


@pytest.mark.parametrize("bulk", ["auto", "off"])
def test_a_thousand_updates_of_one_document_stay_in_order(bulk):
    async def main():
        container = MemoryContainer(Random(5), trouble=EVERYTHING)
        async with running(container, options=replace(QUICK, bulk=bulk)) as sink:
            feeder = Feeder(sink)
            for number in range(1000):
                feeder.feed({"id": "a", "key": "k", "n": number})
            begin = asyncio.get_running_loop().time()
            await feeder.drain()
            assert asyncio.get_running_loop().time() - begin < 60
        written = [write.body["n"] for write in container.log]
        assert written == sorted(written)
        assert written[-1] == 999
        assert set(written) == set(range(1000))
        assert container.overlaps == []

    simulate(main, 5)


def test_a_refused_batch_is_halved_until_the_poison_stands_alone():
    async def main():
        container, box = MemoryContainer(Random(1), ranges=1, poison_ids={"d42"}), MemoryBox()
        async with running(container, box, QUICK) as sink:
            feeder = Feeder(sink)
            for number in range(100):
                feeder.feed({"id": f"d{number}", "key": "k"})
            await feeder.drain()
            assert feeder.outcomes() == {Outcome.COMMITTED: 99, Outcome.DEAD_LETTERED: 1}
            assert [(letter.event.sequence, letter.status) for letter in box.letters] == [(42, 400)]
            assert sink.statistics().bulk
            assert container.requests <= 2 * 7 + 2

    simulate(main, 1)


def test_a_service_without_bulk_gets_records_one_by_one():
    async def main():
        container, box = MemoryContainer(Random(1)), MemoryBox()
        container.no_bulk = True
        async with running(container, box, QUICK) as sink:
            feeder = Feeder(sink)
            for number in range(500):
                feeder.feed({"id": f"d{number}", "key": f"k{number}"})
            await feeder.drain()
            assert feeder.outcomes() == {Outcome.COMMITTED: 500}
            assert not sink.statistics().bulk
            assert box.letters == []

    simulate(main, 1)


def test_the_ranges_are_read_again_after_a_split_and_nothing_is_lost():
    async def main():
        container = MemoryContainer(Random(1))
        async with running(container, options=QUICK) as sink:
            feeder = Feeder(sink)
            for number in range(3000):
                feeder.feed({"id": f"d{number}", "key": f"k{number}"})
                if number == 1500:
                    await asyncio.sleep(0.02)
                    container.split(6)
            await feeder.drain()
            assert len(container.documents) == 3000
            assert sink.statistics().ranges == 6
            assert sink.statistics().retried[410] > 0

    simulate(main, 1)


def test_a_set_up_fault_stops_everything_and_ends_by_itself():
    async def main():
        container, box = MemoryContainer(Random(1)), MemoryBox()
        async with running(container, box, QUICK) as sink:
            feeder = Feeder(sink)
            container.set_up_fault = Refused("wrong key", 401)
            for number in range(300):
                feeder.feed({"id": f"d{number}", "key": f"k{number}"})
            await asyncio.sleep(60)
            asked = container.requests
            assert sink.statistics().fault is not None
            assert asked < 20, "it should not go on asking"
            container.set_up_fault = None
            await feeder.drain()
            assert sink.statistics().fault is None
            assert feeder.outcomes() == {Outcome.COMMITTED: 300}
            assert box.letters == []

    simulate(main, 1)


def test_another_partition_key_needs_a_restart_and_says_so():
    async def main():
        container = MemoryContainer(Random(1))
        async with running(container, options=QUICK) as sink:
            container.definition = PartitionKeyDefinition.of("/tenant")
            container.set_up_fault = Refused("created anew", 400, 1024)
            Feeder(sink).feed({"id": "a", "key": "k"})
            await asyncio.sleep(5)
            container.set_up_fault = None
            await asyncio.sleep(60)
            assert "/tenant now" in (sink.statistics().fault or "")
            assert container.documents == {}

    simulate(main, 1)


def test_poison_is_durable_before_it_is_settled_and_storage_may_be_away():
    async def main():
        container, box = MemoryContainer(Random(1)), MemoryBox(failures=3)
        async with running(container, box, QUICK) as sink:
            feeder = Feeder(sink)
            poison = feeder.feed(b"not json")
            await asyncio.sleep(0.15)
            assert poison.outcomes == []
            assert sink.statistics().fault == "storage is away"
            while not poison.done:
                await asyncio.sleep(0.01)
                assert box.letters or not poison.outcomes
            assert sink.statistics().fault is None
            assert sink.statistics().dead_lettered == 1

    simulate(main, 1)


def test_a_flood_stops_the_sink_with_nothing_settled_also_the_second_time():
    async def main():
        for _ in range(2):
            container, box = MemoryContainer(Random(1)), MemoryBox()
            options = replace(QUICK, flood=FloodOptions(max_consecutive=100))
            flooded = None
            try:
                async with running(container, box, options) as sink:
                    feeder = Feeder(sink)
                    good = feeder.feed({"id": "a", "key": "k"})
                    await feeder.drain()
                    for _ in range(500):
                        feeder.feed(b"not json")
                        await asyncio.sleep(0.01)
            except DeadLetterFlood as stopped:
                flooded = stopped
            assert flooded is not None
            assert good.done
            assert feeder.outcomes() == {Outcome.COMMITTED: 1}, "the checkpoint would have passed the flood"

    simulate(main, 1)


def test_dropped_and_empty_events_are_settled_at_once():
    async def main():
        async with running(MemoryContainer(Random(1))) as sink:
            item = Feeder(sink, DocumentOptions(body="array")).feed(b"[]")
            assert item.outcomes == [Outcome.DROPPED]

    simulate(main, 1)


def test_guarded_writes_leave_what_is_newer_and_know_their_own():
    async def main():
        container = MemoryContainer(Random(1))
        options = replace(QUICK, guarded=True)
        async with running(container, options=options) as sink:
            first = Feeder(sink, guarded=True)
            for number in range(50):
                first.feed({"id": f"d{number % 10}", "key": "k", "n": number})
            await first.drain()
        before = container.requests, len(container.log)
        async with running(
            container, options=options
        ) as sink:  # a replay from the start, by a process that knows nothing
            again = Feeder(sink, guarded=True)
            for number in range(50):
                again.feed({"id": f"d{number % 10}", "key": "k", "n": number})
            await again.drain()
        assert again.outcomes() == {Outcome.SUPERSEDED: 40, Outcome.COMMITTED: 10}
        assert len(container.log) == before[1], "nothing was written over"

    simulate(main, 1)


def test_the_usual_guarded_update_is_one_operation():
    async def main():
        container = MemoryContainer(Random(1), ranges=1)
        async with running(container, options=replace(QUICK, guarded=True)) as sink:
            feeder = Feeder(sink, guarded=True)
            for number in range(100):
                feeder.feed({"id": f"d{number % 10}", "key": "k", "n": number})
            await feeder.drain()
        assert Counter(write.step for write in container.log) == {"Create": 10, "Replace": 90}
        assert sum(container.answers.values()) == 100

    simulate(main, 1)


def test_guarded_deletes_respect_what_is_newer():
    async def main():
        container = MemoryContainer(Random(1))
        options = DocumentOptions(delete="/gone")
        async with running(container, options=replace(QUICK, guarded=True)) as sink:
            feeder = Feeder(sink, options, guarded=True)
            feeder.feed({"id": "a", "key": "k"})
            feeder.feed({"id": "b", "key": "k"})
            feeder.feed({"id": "a", "key": "k", "gone": True})
            feeder.feed({"id": "never", "key": "k", "gone": True})
            await feeder.drain()
            assert {id_ for _, id_ in container.documents} == {"b"}
        async with running(container, options=replace(QUICK, guarded=True)) as sink:
            late = Feeder(sink, options, guarded=True)
            late.feed({"id": "b", "key": "k", "gone": True})  # sequence 0: older than what is there
            await late.drain()
            assert late.outcomes() == {Outcome.SUPERSEDED: 1}

    simulate(main, 1)


@pytest.mark.parametrize("leave", [False, True])
def test_documents_without_a_stamp_are_older_for_the_consumer_and_left_alone_by_backfill(leave):
    async def main():
        container = MemoryContainer(Random(1))
        container.documents['["k"]', "a"] = {"id": "a", "key": "k", "_etag": '"0"'}
        async with running(container, options=replace(QUICK, guarded=True, leave_unstamped=leave)) as sink:
            feeder = Feeder(sink, guarded=True)
            feeder.feed({"id": "a", "key": "k"})
            await feeder.drain()
            assert feeder.outcomes() == {Outcome.SUPERSEDED if leave else Outcome.COMMITTED: 1}

    simulate(main, 1)


def test_a_range_that_is_moving_but_not_yet_moved_is_not_asked_all_the_time():
    async def main():
        container = MemoryContainer(Random(1), ranges=1)
        container.set_up_fault = Refused("completing a split", 410, 1007)
        describe, container.describe = container.describe, None
        definition = container.definition
        container.describe = lambda: asyncio.sleep(0, definition)
        async with running(container, options=QUICK) as sink:
            feeder = Feeder(sink)
            feeder.feed({"id": "a", "key": "k"})
            await asyncio.sleep(10)
            assert 20 < container.requests < 120
            container.set_up_fault = None
            container.describe = describe
            await feeder.drain()

    simulate(main, 1)
