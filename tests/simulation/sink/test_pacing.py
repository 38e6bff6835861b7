"""Throughput under throttling, on a virtual clock: few refusals, nearly all that is sold; and COSMOS_RULIMIT."""

import asyncio
from random import Random

import pytest

from service.sink.options import SinkOptions
from tests.simulation.loop import simulate
from tests.simulation.memory_cosmos import CHARGE, MemoryContainer, Trouble
from tests.simulation.sink.parts import Feeder, running


@pytest.mark.parametrize("phase", [0.0, 0.15, 0.5, 0.85])
@pytest.mark.parametrize("bucket", [False, True], ids=["seconds", "bucket"])
@pytest.mark.parametrize("delay", [(0.005, 0.02), (0.05, 0.2)], ids=["near", "far"])
def test_at_twice_the_load_few_are_refused_and_nearly_all_that_is_sold_is_used(bucket, delay, phase):
    """Whatever part of one of the service's seconds is over when it begins; the first three are not counted."""
    throughput, seconds = 4_000.0, 15.0

    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(phase)
        trouble = Trouble(delay_seconds=delay)
        container = MemoryContainer(Random(1), throughput=throughput, bucket=bucket, trouble=trouble)
        async with running(container) as sink:
            feeder = Feeder(sink)
            begin = loop.time()
            number, settled = 0, None
            while loop.time() < begin + seconds:
                if settled is None and loop.time() > begin + 3:
                    settled = loop.time(), sink.statistics().ru
                while number < (loop.time() - begin) * throughput / CHARGE * 2:
                    feeder.feed({"id": f"d{number}", "key": f"k{number % 20_000}"})
                    number += 1
                await asyncio.sleep(0.01)
            statistics = sink.statistics()
            used = (statistics.ru - settled[1]) / (loop.time() - settled[0]) / throughput
            return used, statistics.retried.get(429, 0) / statistics.committed

    used, refused = simulate(main, 1)
    assert used >= 0.95, refused
    assert refused < 0.1, used


@pytest.mark.parametrize("times", [2, 20])
@pytest.mark.parametrize("delay", [(0.005, 0.02), (0.05, 0.2)], ids=["near", "far"])
@pytest.mark.parametrize("bucket", [False, True], ids=["seconds", "bucket"])
def test_a_rate_that_rises_is_found_again(times, delay, bucket):
    """Another client went away, or throughput was raised: within 14 s most of it is used, and nothing is flooded."""
    throughput, seconds = 400.0, 14

    async def main():
        trouble = Trouble(delay_seconds=delay)
        container = MemoryContainer(Random(1), ranges=1, throughput=throughput, bucket=bucket, trouble=trouble)
        async with running(container) as sink:
            feeder = Feeder(sink)
            for number in range(int(throughput / CHARGE * (8 + 20 * times))):
                feeder.feed({"id": f"d{number}", "key": f"k{number}"})
            await asyncio.sleep(8)
            before = sink.statistics()
            container._budgets[container._map.ids[0]].rate = throughput * times
            await asyncio.sleep(seconds)
            found = sink.statistics()
            await asyncio.sleep(5)
            now = sink.statistics()
            refused = now.retried.get(429, 0) - before.retried.get(429, 0)
            return (now.ru - found.ru) / 5 / (throughput * times), refused / (now.committed - before.committed)

    used, refused = simulate(main, 1)
    assert used > 0.9, refused
    assert refused < 0.1, used


def test_a_range_that_refused_nearly_everything_at_first_is_not_left_waiting():
    """Another client had it all, say. Nothing new comes in that would make the sink look again."""

    async def main():
        container = MemoryContainer(Random(1), ranges=1, throughput=0.001)
        async with running(container) as sink:
            feeder = Feeder(sink)
            for number in range(250):
                feeder.feed({"id": f"d{number}", "key": f"k{number}"})
            await asyncio.sleep(5)
            assert sink.statistics().retried[429] > 0
            container._budgets[container._map.ids[0]].rate = 10_000.0
            await asyncio.sleep(25)
            return sink.statistics().committed

    assert simulate(main, 1) == 250


@pytest.mark.parametrize("limit", [400.0, 5000.0])
def test_the_ru_limit_holds_within_3_percent_in_every_10_seconds(limit):
    """A full batch costs 600 here: at 400 RU/s more than a second."""

    async def main():
        container = MemoryContainer(Random(1), trouble=Trouble(delay_seconds=(0.0, 0.004)))
        async with running(container, options=SinkOptions(ru_limit=limit)) as sink:
            feeder = Feeder(sink)
            for number in range(int(limit * 6)):
                feeder.feed({"id": f"d{number}", "key": f"k{number}"})
            await asyncio.sleep(32)
            return [write.at for write in container.log]

    times = simulate(main, 1)
    begin = times[0] + 2  # the first prices have to be learnt
    for step in range(0, 180, 5):
        spent = sum(CHARGE for at in times if begin + step / 10 <= at < begin + step / 10 + 10)
        assert abs(spent / (limit * 10) - 1) <= 0.03, (step, spent)
