"""The simulation's own event loop."""

import asyncio

import pytest

from tests.simulation.loop import Deadlock, OutOfTime, simulate


async def _trace():
    seen = []

    async def worker(name):
        for step in range(3):
            await asyncio.sleep(0)
            seen.append(f"{name}{step}")

    async with asyncio.TaskGroup() as tasks:
        for name in "abcd":
            tasks.create_task(worker(name))
    return "".join(seen)


def test_the_same_seed_gives_the_same_order_and_others_give_others():
    runs = {seed: simulate(_trace, seed) for seed in range(20)}
    assert runs == {seed: simulate(_trace, seed) for seed in range(20)}
    assert len(set(runs.values())) > 10


def test_a_day_passes_at_once_and_timers_come_in_order():
    async def main():
        loop = asyncio.get_running_loop()
        begin, seen = loop.time(), []
        for delay in (3600.0, 0.1, 60.0):
            loop.call_later(delay, seen.append, delay)
        await asyncio.sleep(80_000)
        return loop.time() - begin, seen

    assert simulate(main, 1) == (80_000, [0.1, 60.0, 3600.0])


def test_a_timeout_ends_what_waits():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()

    simulate(main, 1)


def test_waiting_for_nothing_is_a_deadlock_and_running_on_is_an_error():
    with pytest.raises(Deadlock):
        simulate(lambda: asyncio.Event().wait(), 1)

    async def busy():
        for _ in range(1000):
            await asyncio.sleep(1)

    with pytest.raises(OutOfTime):
        simulate(busy, 1, seconds=100)
