"""Hosts that come and go, on the virtual clock."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from service.source.balance import Strategy
from service.source.processor import ProcessorOptions
from tests.simulation.loop import simulate
from tests.simulation.source.world import World


async def _until(condition, seconds):
    loop = asyncio.get_running_loop()
    begin = loop.time()
    while not condition():
        assert loop.time() - begin < seconds, f"not within {seconds} s"
        await asyncio.sleep(0.1)
    return loop.time() - begin


@pytest.mark.parametrize("seed", range(5))
def test_a_second_host_gets_half_within_30_s_and_then_nothing_moves_for_10_minutes(seed):
    async def main():
        world = World(32)
        async with world.host("a"):
            await _until(lambda: world.counts() == [32], 5)
            async with world.host("b"):
                await _until(lambda: world.counts() == [16, 16], 30)
                await asyncio.sleep(5)
                moves = len(world.moves)
                await asyncio.sleep(600)
                assert len(world.moves) == moves
                assert world.counts() == [16, 16]

    simulate(main, seed)


@pytest.mark.parametrize("seed", range(5))
def test_16_partitions_over_5_hosts_differ_by_at_most_one(seed):
    async def main():
        world = World(16)
        async with AsyncExitStack() as hosts:
            for name in "abcde":
                await hosts.enter_async_context(world.host(name))
                await asyncio.sleep(world.random.random() * 20)
            await _until(lambda: world.counts() == [3, 3, 3, 3, 4], 120)
            await asyncio.sleep(5)
            moves = len(world.moves)
            await asyncio.sleep(600)
            assert world.moves[moves:] == []

    simulate(main, seed)


def test_a_host_beyond_the_partitions_is_a_hot_standby_and_takes_over():
    async def main():
        world = World(2)
        async with world.host("a") as a, world.host("b"), world.host("c"):
            await _until(lambda: world.counts() == [0, 1, 1], 60)
            await asyncio.sleep(100)
            assert world.counts() == [0, 1, 1]
            if not a.processor.statistics().partitions:
                return
            await a.kill()
            await _until(lambda: world.counts() == [1, 1], world.options.lease_seconds + 10)

    for seed in range(4):
        simulate(main, seed)


def test_the_maximum_is_kept_and_the_rest_goes_to_who_has_room():
    async def main():
        world = World(8)
        small = replace(world.options, max_partitions=2)
        async with world.host("a", options=small), world.host("b") as b:
            await _until(lambda: world.counts() == [2, 6], 120)
            assert len(b.processor.statistics().partitions) == 6
            await asyncio.sleep(300)
            assert world.counts() == [2, 6]

    simulate(main, 1)


def test_balanced_hosts_come_to_the_same_rest_one_partition_at_a_time():
    async def main():
        world = World(8, ProcessorOptions(strategy=Strategy.BALANCED))
        async with world.host("a"), world.host("b"):
            await _until(lambda: world.counts() == [4, 4], 240)
            await asyncio.sleep(60)
            moves = len(world.moves)
            await asyncio.sleep(300)
            assert len(world.moves) == moves

    simulate(main, 1)
