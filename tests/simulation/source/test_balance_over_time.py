"""Hosts that come and go, on the virtual clock."""

import asyncio
from contextlib import AsyncExitStack

import pytest

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
