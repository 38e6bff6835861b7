"""One trouble at a time, on the virtual clock."""

import asyncio

import pytest

from service.errors import BadSettings, Fatal, Retry, SetupFault
from service.source.events import PartitionId
from service.source.leases import Checkpoint, CloseReason
from service.source.memory_leases import Row
from service.source.position import OnAhead, OnGap, PositionPolicy
from service.source.processor import ProcessorOptions
from service.source.start import EARLIEST, parse_start
from service.source.store import Stored
from tests.simulation.loop import simulate
from tests.simulation.source.hub import SimulatedClient, SimulatedReceiver
from tests.simulation.source.world import World

P0 = PartitionId("0")


async def until(condition, seconds=60):
    loop = asyncio.get_running_loop()
    begin = loop.time()
    while not condition():
        assert loop.time() - begin < seconds, f"not within {seconds} s"
        await asyncio.sleep(0.05)
    return loop.time() - begin


def test_storage_gone_for_60_s_pauses_intake_at_the_deadline_and_goes_on_without_redo():
    async def main():
        world = World(2)
        async with world.host("a") as host:
            world.hub.publish(0, 50)
            await until(lambda: len(world.delivered["0"]) == 50)
            host.weather.gone = True
            deadline = host.handlers[0].ownership.deadline
            delivered_at = []
            begin = world.loop.time()
            while world.loop.time() < begin + 60:
                world.hub.publish(0, 1)
                before = len(world.delivered["0"])
                await asyncio.sleep(0.5)
                if len(world.delivered["0"]) > before:
                    delivered_at.append(world.loop.time())
            assert begin + 10 < max(delivered_at) <= deadline + 2  # it goes on while the lease surely holds, not longer
            assert any(part.paused for part in host.processor.statistics().partitions)
            assert "reached" in host.processor.statistics().storage_fault
            host.weather.gone = False
            await until(lambda: len(world.delivered["0"]) == 170, 30)
            assert world.delivered["0"] == list(range(170))  # each once
            assert {handler.ownership.epoch for handler in host.handlers} == {1}
            await until(lambda: host.processor.statistics().storage_fault == "", 15)

    simulate(main, 1)


def test_a_suspended_host_delivers_and_checkpoints_nothing_after_another_took_over():
    async def main():
        world = World(4)
        async with world.host("a") as a, world.host("b") as b:
            await until(lambda: world.counts() == [2, 2])
            await asyncio.sleep(10)
            a.suspend()
            theirs = {handler.ownership.partition for handler in a.handlers if handler.closed is None}
            await until(lambda: len(b.processor.statistics().partitions) == 4, 45)
            for partition in range(4):
                world.hub.publish(partition, 20)
            await until(lambda: all(len(world.delivered[each]) == 20 for each in theirs))
            a.resume()
            await asyncio.sleep(1)
            stale = [h for h in a.handlers if h.ownership.partition in theirs and h.ownership.epoch == 1]
            assert all(handler.taken == [] for handler in stale)
            await until(lambda: all(handler.closed is CloseReason.LOST for handler in stale))

    simulate(main, 3)


def test_a_killed_hosts_partitions_are_read_by_others_within_lease_duration_plus_10_s():
    async def main():
        world = World(8)
        async with world.host("a") as a, world.host("b") as b:
            await until(lambda: world.counts() == [4, 4])
            await asyncio.sleep(5)
            for partition in range(8):
                world.hub.publish(partition, 10)
            await asyncio.sleep(2)
            await a.kill()
            for partition in range(8):
                world.hub.publish(partition, 10)
            took = await until(lambda: all(len(set(seen)) == 20 for seen in world.delivered.values()), 60)
            assert took < world.options.lease_seconds + 10
            assert len(b.processor.statistics().partitions) == 8

    simulate(main, 4)


def test_refused_as_lower_epoch_it_goes_above_the_one_named_and_on():
    async def main():
        world = World(1)
        stranger = SimulatedReceiver(SimulatedClient(world.hub), world.hub, P0, 41, EARLIEST)
        await stranger.receive()
        async with world.host("a") as host:
            world.hub.publish(0, 5)
            await until(lambda: len(world.delivered["0"]) == 5)
            assert host.processor.statistics().partitions[0].epoch == 42
            assert world.storage.rows[P0].epoch == 42

    simulate(main, 5)


def test_a_partition_that_lags_and_brings_nothing_gets_a_new_receiver():
    async def main():
        world = World(1)
        async with world.host("a") as host:
            world.hub.publish(0, 5)
            await until(lambda: len(world.delivered["0"]) == 5)
            world.hub.partitions[P0].frozen = True
            world.hub.publish(0, 5)
            opened = len(world.hub.opened)
            await until(lambda: host.processor.statistics().partitions[0].reopened == 1, 60)
            assert "brings none of them" in host.processor.statistics().hub_fault
            world.hub.partitions[P0].frozen = False
            await until(lambda: world.delivered["0"] == list(range(10)))
            assert len(world.hub.opened) > opened
            assert host.processor.statistics().hub_fault == ""

    simulate(main, 6)


def test_what_retention_has_taken_is_not_waited_for():
    async def main():
        world = World(1)
        async with world.host("a") as host:
            world.hub.publish(0, 5)
            await until(lambda: len(world.delivered["0"]) == 5)
            world.hub.partitions[P0].frozen = True
            world.hub.publish(0, 5)
            await until(lambda: host.processor.statistics().hub_fault, 60)
            world.hub.partitions[P0].first = 10
            await until(lambda: not host.processor.statistics().hub_fault, 60)

    simulate(main, 6)


def test_the_watchdog_does_not_mind_a_handler_that_waits():
    async def main():
        world = World(1)
        async with world.host("a") as host:
            world.hub.publish(0, 1)
            await until(lambda: len(world.delivered["0"]) == 1)
            handler = host.handlers[0]
            release = asyncio.Event()
            original = handler.events

            async def waiting(events):
                await release.wait()
                await original(events)

            handler.events = waiting
            world.hub.publish(0, 200)
            await asyncio.sleep(300)
            assert host.processor.statistics().partitions[0].reopened == 0
            release.set()
            await until(lambda: len(world.delivered["0"]) == 201, 120)

    simulate(main, 7)


@pytest.mark.parametrize("error", [ValueError("no"), Retry("no"), SetupFault("no")])
def test_a_handler_that_raises_stops_its_partition_only_and_is_opened_again_from_the_checkpoint(error):
    async def main():
        world = World(2)
        async with world.host("a") as host:
            for partition in range(2):
                world.hub.publish(partition, 10)
            await until(lambda: all(len(seen) == 10 for seen in world.delivered.values()))
            bad = next(h for h in host.handlers if h.ownership.partition == "0")
            bad.fail = error
            for partition in range(2):
                world.hub.publish(partition, 10)
            await until(lambda: bad.closed is CloseReason.ERROR)
            assert bad.ownership.lost
            await until(lambda: set(world.delivered["0"]) == set(range(20)))
            assert world.delivered["1"] == list(range(20))
            assert len([h for h in host.handlers if h.ownership.partition == "1"]) == 1

    simulate(main, 8)


def test_a_fatal_handler_ends_the_host_after_the_other_partitions_drained():
    async def main():
        world = World(2)
        with pytest.raises(Fatal, match="limit"):  # noqa: PT012 - it is raised when the host ends
            async with world.host("a") as host:
                await until(lambda: len(host.handlers) == 2)
                world.hub.publish(1, 10)
                await until(lambda: len(world.delivered["1"]) == 10)
                next(h for h in host.handlers if h.ownership.partition == "0").fail = Fatal("limit")
                world.hub.publish(0, 1)
                await asyncio.wait([host.task])
                other = next(h for h in host.handlers if h.ownership.partition == "1")
                assert other.closed is CloseReason.SHUTDOWN
                assert world.durable["1"] == 9
                assert world.durable["0"] == -1

    simulate(main, 9)


def test_partitions_added_to_the_hub_are_found():
    async def main():
        world = World(2)
        async with world.host("a"):
            await until(lambda: world.counts() == [2])
            world.hub.partitions[PartitionId("2")] = type(world.hub.partitions[P0])()
            world.delivered["2"] = []
            world.hub.publish(2, 3)
            await until(lambda: world.delivered["2"] == [0, 1, 2])

    simulate(main, 10)


def test_a_hub_or_storage_that_is_not_there_at_the_start_is_waited_for():
    async def main():
        world = World(2)
        world.hub.gone = True
        async with world.host("a") as host:
            host.weather.gone = True
            await asyncio.sleep(100)
            assert "hub" in host.processor.statistics().hub_fault
            world.hub.gone = False
            await until(lambda: host.processor.statistics().storage_fault != "")
            await asyncio.sleep(100)
            host.weather.gone = False
            await until(lambda: world.counts() == [2])

    simulate(main, 11)


def _retained(world):
    world.hub.publish(0, 100)
    world.hub.partitions[P0].first = 60


def _stored(world, checkpoint, incarnation=None):
    """Leave a checkpoint behind, as an earlier host would."""
    world.storage.rows[P0] = Row(epoch=3, stored=Stored(checkpoint, incarnation or world.hub.created_ms))


def _policy(**policy):
    return ProcessorOptions(position=PositionPolicy(**policy))


def test_events_that_retention_took_are_counted_and_reading_goes_on_behind_them():
    async def main():
        world = World(1)
        _stored(world, Checkpoint(9, "900"))
        _retained(world)
        async with world.host("a") as host:
            await until(lambda: len(world.delivered["0"]) == 40)
            assert world.delivered["0"][0] == 60
            assert host.processor.statistics().partitions[0].skipped == 50

    simulate(main, 12)


def test_on_gap_stop_refuses():
    async def main():
        world = World(1, _policy(on_gap=OnGap.STOP))
        _stored(world, Checkpoint(9, "900"))
        _retained(world)
        async with world.host("a") as host:
            await asyncio.wait([host.task])

    with pytest.raises(BadSettings, match="50 events"):
        simulate(main, 13)


@pytest.mark.parametrize("checkpoint", [Checkpoint(500, "50000"), Checkpoint(5, "500")])
def test_a_checkpoint_of_another_life_stops_the_host_also_when_the_new_hub_is_past_it(checkpoint):
    async def main():
        world = World(1)
        _stored(world, checkpoint, incarnation=1)
        world.hub.publish(0, 100)
        async with world.host("a") as host:
            await asyncio.wait([host.task])

    with pytest.raises(BadSettings, match="not of this hub"):
        simulate(main, 14)


def test_on_ahead_earliest_starts_anew():
    async def main():
        world = World(1, _policy(on_ahead=OnAhead.EARLIEST))
        _stored(world, Checkpoint(500, "50000"), incarnation=1)
        world.hub.publish(0, 100)
        async with world.host("a"):
            await until(lambda: world.delivered["0"] == list(range(100)))

    simulate(main, 15)


@pytest.mark.parametrize(
    ("start", "first"), [("earliest", 60), ("latest", 100), ('{"0": 70}', 70), ('{"0": {"offset": "8000"}}', 80)]
)
def test_the_start_is_resolved_and_stored_before_reading(start, first):
    async def main():
        world = World(1, _policy(start=parse_start(start)))
        _retained(world)
        async with world.host("a"):
            await until(lambda: "0" in world.durable)
            assert world.durable["0"] == first - 1
            world.hub.publish(0, 10)
            await until(lambda: world.delivered["0"] == list(range(first, 110)))

    simulate(main, 16)


def test_a_start_by_time_begins_with_the_first_event_of_that_time():
    async def main():
        world = World(1, _policy(start=parse_start("1970-01-01T00:17:30Z")))  # 1,050 s: the run begins at 1,000 s
        world.hub.publish(0, 10)
        await asyncio.sleep(60)
        world.hub.publish(0, 10)
        async with world.host("a"):
            await until(lambda: world.delivered["0"] == list(range(10, 20)))

    simulate(main, 17)


def test_lease_calls_at_rest_and_under_load_are_few():
    async def main():
        world = World(32)
        async with world.host("a") as host:
            await until(lambda: world.counts() == [32])
            await asyncio.sleep(30)
            host.weather.calls.clear()
            await asyncio.sleep(600)
            at_rest = {kind: calls / 10 for kind, calls in host.weather.calls.items()}
            assert set(at_rest) == {"list", "renew"}
            assert at_rest["list"] <= 7  # one listing per 10 s
            assert at_rest["renew"] <= 32 * 6.1  # each lease every 10 s
        return at_rest

    simulate(main, 18)
