"""Seeded schedules of trouble: hosts die, freeze and join while storage and hub delay, fail and lose answers.

In every one: no checkpoint goes back (the storage checks each write), no handler sees a gap or an event twice within
one ownership (the handlers check), and once it is calm every event has been delivered, every partition is checkpointed
to its end, and the hosts have their even share.
"""

import asyncio
from contextlib import AsyncExitStack

import pytest

from service.source.processor import ProcessorOptions
from tests.simulation.loop import simulate
from tests.simulation.source.world import World

PARTITIONS = 6
OPTIONS = ProcessorOptions(lease_seconds=15, renew_seconds=5, handover_seconds=6, dwell_seconds=15)


async def _schedule():
    world = World(PARTITIONS, OPTIONS)
    random = world.random
    async with AsyncExitStack() as stack:

        async def join(number):
            host = await stack.enter_async_context(world.host(f"h{number}", skew=random.uniform(-1e6, 1e6)))
            _trouble(host.weather, random)
            return host

        for number in range(2):
            await join(number)
        world.hub.fault_rate = random.choice([0, 0.01, 0.05])
        world.hub.delay_seconds = random.choice([0.05, 1.0])
        for step in range(random.randint(3, 8)):
            for partition in range(PARTITIONS):
                world.hub.publish(partition, random.randint(0, 30))
            await asyncio.sleep(random.random() * 15)
            await _incident(world, random, join, 10 + step)
        await _calm(world)
        await _until_done(world)


async def _incident(world, random, join, number):
    host = random.choice(list(world.hosts.values())) if world.hosts else None
    match random.choice(["kill", "freeze", "join", "storage", "drop", "weather", "raise", "nothing"]):
        case "kill" if len(world.hosts) > 1:
            await host.kill()
        case "freeze":
            host.suspend()
            await asyncio.sleep(random.random() * 40)
            host.resume()
        case "join" if len(world.hosts) < 4:
            await join(number)
        case "storage":
            for each in world.hosts.values():
                each.weather.gone = True
            await asyncio.sleep(random.random() * 60)
            for each in world.hosts.values():
                each.weather.gone = False
        case "drop":
            world.hub.drop()
        case "weather":
            _trouble(host.weather, random)
        case "raise" if host.handlers:
            host.handlers[-1].fail = ValueError("the handler does not like it")


def _trouble(weather, random):
    weather.delay_seconds = random.choice([0.01, 0.5, 3.0])
    weather.slow_rate = random.choice([0, 0, 0.05])
    weather.fault_before = random.choice([0, 0.05, 0.3])
    weather.fault_after = random.choice([0, 0.05, 0.3])


async def _calm(world):
    world.hub.fault_rate, world.hub.delay_seconds = 0, 0.05
    for host in world.hosts.values():
        weather = host.weather
        weather.delay_seconds, weather.slow_rate, weather.fault_before, weather.fault_after = 0.01, 0, 0, 0
        for handler in host.handlers:
            handler.fail = None
    for partition in range(PARTITIONS):
        world.hub.publish(partition, 1)


async def _until_done(world):
    begin = world.loop.time()

    def done():
        at_end = {
            handler.ownership.partition
            for host in world.hosts.values()
            for handler in host.handlers
            if handler.closed is None and handler.position == world.hub.partitions[handler.ownership.partition].last
        }
        counts = world.counts()
        return len(at_end) == PARTITIONS and sum(counts) == PARTITIONS and counts[-1] - counts[0] <= 1

    while not done():
        assert world.loop.time() - begin < 300, (world.counts(), world.delivered)
        await asyncio.sleep(1)
    for host in list(world.hosts.values()):
        await host.processor.stop(world.loop.time() + 30)
    for name, part in world.hub.partitions.items():
        assert set(world.delivered[name]) == set(range(len(part.events))), name
        assert world.durable[name] == len(part.events) - 1, name


def _run(seeds):
    for seed in seeds:
        simulate(_schedule, seed)


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_no_checkpoint_goes_back_and_nothing_is_skipped_in_200_schedules(start):
    _run(range(start, start + 50))


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_no_checkpoint_goes_back_and_nothing_is_skipped_in_2000_schedules():
    _run(range(1_000, 3_000))
