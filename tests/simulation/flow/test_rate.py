"""Exactly N per second on a virtual clock, over whole minutes, with stalls, idling, sharing and changes."""

import asyncio
from collections import Counter
from fractions import Fraction

import pytest

from service.flow.slots import Slots
from tests.simulation.loop import simulate


class Meter:
    """Who took how many slots in which period of a tenth of a second."""

    def __init__(self):
        self.began = asyncio.get_running_loop().time()
        self.by_period = Counter()

    def note(self, slots):
        elapsed = asyncio.get_running_loop().time() - self.began
        self.by_period[int(elapsed * 10 + 1e-6)] += slots

    def between(self, first, last):
        """Slots taken from second `first` up to second `last`."""
        return sum(count for period, count in self.by_period.items() if first * 10 <= period < last * 10)


async def greedy(slots, meter, wanted=500, pause=0.0):
    while True:
        taken = await slots.take(wanted)
        meter.note(taken)
        if pause:
            await asyncio.sleep(pause)


async def for_a_while(seconds, *work):
    tasks = [asyncio.create_task(each) for each in work]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("rate", [5, 11, 95, 1000, 3000])
def test_with_surplus_input_every_twenty_seconds_admit_exactly_their_slots(rate):
    async def main():
        slots = Slots(rate)
        meter = Meter()
        await for_a_while(60.05, *(greedy(slots, meter) for _ in range(4)))
        per_period = Fraction(rate, 10) if rate >= 10 else rate
        for first in range(40):
            assert abs(meter.between(first, first + 20) - rate * 20) <= per_period
        if rate >= 10:
            assert max(meter.by_period.values()) <= -(-rate // 10)

    simulate(main, seed=rate)


def test_after_ten_idle_seconds_there_is_no_burst():
    async def main():
        slots = Slots(1000)
        meter = Meter()
        await for_a_while(2.0, greedy(slots, meter))
        await asyncio.sleep(10)
        before = meter.between(0, 100)
        await for_a_while(1.0, greedy(slots, meter))
        assert meter.between(0, 100) - before <= 1100

    simulate(main, seed=1)


def test_two_workers_that_own_three_and_one_partitions_admit_exactly_n():
    async def main():
        rate = 1000
        meter = Meter()
        three, one = Slots(rate * Fraction(3, 4)), Slots(rate * Fraction(1, 4))
        await for_a_while(20.05, *(greedy(three, meter) for _ in range(3)), greedy(one, meter))
        assert abs(meter.between(0, 20) - rate * 20) <= rate / 10

    simulate(main, seed=2)


def test_partitions_that_wait_get_even_shares():
    async def main():
        slots = Slots(900)
        meters = [Meter() for _ in range(3)]
        await for_a_while(10.05, *(greedy(slots, meter, wanted=1000) for meter in meters))
        counts = [meter.between(1, 10) for meter in meters]
        assert max(counts) - min(counts) <= 30

    simulate(main, seed=3)


def test_a_slow_partition_does_not_slow_the_others():
    async def main():
        slots = Slots(1000)
        fast, slow = Meter(), Meter()
        await for_a_while(20.05, greedy(slots, fast), greedy(slots, slow, wanted=5, pause=1.0))
        assert fast.between(0, 20) + slow.between(0, 20) >= 20_000 - 100

    simulate(main, seed=4)


def test_a_change_of_rate_holds_from_the_next_period_on():
    async def main():
        slots = Slots(1000)
        meter = Meter()
        work = [greedy(slots, meter) for _ in range(2)]

        async def change():
            await asyncio.sleep(5)
            slots.set_rate(100)

        await for_a_while(15.05, *work, change())
        assert abs(meter.between(0, 5) - 5000) <= 100
        assert abs(meter.between(6, 15) - 900) <= 10

    simulate(main, seed=5)


@pytest.mark.parametrize("seed", range(20))
def test_changes_of_rate_never_add_up_to_a_burst(seed):
    async def main():
        random = asyncio.get_running_loop().random
        slots = Slots(1000)
        meter = Meter()
        rates = []  # by hundredths of a second

        async def change():
            while True:
                rate = random.choice((0, 5, 37, 100, 333, 1000))
                slots.set_rate(rate)
                pause = random.choice((1, 3, 20, 150))
                rates.extend([rate] * pause)
                await asyncio.sleep(pause / 100)

        await for_a_while(20, *(greedy(slots, meter) for _ in range(2)), change())
        for first in range(20):
            for last in range(first + 1, 21):
                allowed = sum(rates[first * 100 : last * 100]) / 100
                # A period has the rate of its beginning: what changes within it evens out, but not at once.
                assert meter.between(first, last) <= allowed + 400

    simulate(main, seed=seed)


def test_a_share_that_goes_back_and_forth_loses_next_to_nothing():
    async def main():
        slots = Slots(1000)
        meter = Meter()

        async def change():
            for turn in range(100):
                slots.set_rate((500, 1000)[turn % 2])
                await asyncio.sleep(0.2)

        await for_a_while(20, *(greedy(slots, meter) for _ in range(2)), change())
        assert abs(meter.between(0, 20) - 15_000) <= 200

    simulate(main, seed=1)
