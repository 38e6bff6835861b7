"""Exactly N per second, whatever the loop, the clock or the callers do."""

import asyncio
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.flow.slots import SlotClock, Slots


def admitted(rate, seconds, *, step=0.01, wanted=10**6, start=0.0):
    """Slots used over a time by somebody who always wants more, looking every `step` seconds."""
    clock = SlotClock(Fraction(rate), start)
    used = clock.take(wanted)
    for tick in range(1, round(seconds / step)):
        clock.advance(start + tick * step, waited_for=True)
        used += clock.take(wanted)
    return used


@pytest.mark.parametrize("rate", [1, 5, 9, 10, 11, 15, 25, 95, 101, 1000, 1001, 3000])
def test_any_rate_admits_exactly_that_many_in_twenty_seconds(rate):
    assert admitted(rate, 20) == rate * 20


@pytest.mark.parametrize("rate", [5, 11, 95, 3000])
def test_no_period_gives_more_than_its_slots(rate):
    clock = SlotClock(Fraction(rate), 0.0)
    per_period = rate / 10 if rate >= 10 else rate
    for tick in range(1, 200):
        assert clock.free <= per_period + 1
        clock.take(clock.free)
        clock.advance(tick * clock.period_seconds, waited_for=True)


def test_periods_are_a_tenth_of_a_second_from_10_on_and_a_second_below():
    assert [SlotClock(Fraction(rate), 0.0).period_seconds for rate in (1, 9, 10, 3000)] == [1.0, 1.0, 0.1, 0.1]


def test_the_first_second_is_no_burst():
    assert admitted(1000, 1.0) == 1000


def test_idling_saves_up_nothing_beyond_one_period():
    clock = SlotClock(Fraction(1000), 0.0)
    clock.take(100)
    clock.advance(10.05, waited_for=False)
    assert clock.free == 100
    assert clock.take(10**6) == 100


def test_late_ticks_are_made_up():
    clock = SlotClock(Fraction(1000), 0.0)
    clock.take(100)
    clock.advance(0.45, waited_for=True)
    assert clock.free == 400


def test_a_long_stall_is_forgiven_without_a_burst():
    clock = SlotClock(Fraction(1000), 0.0)
    clock.take(100)
    clock.advance(7.0, waited_for=True)
    assert clock.free == 100


def test_unused_slots_are_counted():
    clock = SlotClock(Fraction(1000), 0.0)
    clock.take(30)
    clock.advance(0.1, waited_for=False)
    assert (clock.unused, clock.given) == (70, 200)


@given(
    rate=st.fractions(min_value=Fraction(1, 3), max_value=5000, max_denominator=32),
    origin=st.floats(0, 1e6),
    steps=st.lists(st.floats(0.001, 0.9), min_size=1, max_size=60),
)
def test_whatever_the_ticks_the_sum_is_the_rate_within_one_period(rate, origin, steps):
    clock = SlotClock(rate, origin)
    used = clock.take(10**9)
    now = origin
    for step in steps:
        now += step
        clock.advance(now, waited_for=True)
        used += clock.take(10**9)
    per_period = float(rate) * clock.period_seconds
    # Rates below one a second owe nothing until a whole slot is there.
    assert abs(used - float(rate) * (now - origin)) <= 2 * max(1.0, per_period) + 1


async def test_partitions_share_evenly():
    slots = Slots(400)
    taken = {"a": 0, "b": 0, "c": 0}

    async def partition(name):
        for _ in range(4):
            taken[name] += await slots.take(500)

    async with asyncio.timeout(10):
        await asyncio.gather(*(partition(name) for name in taken))
    # The very first period goes to who came first; every later one is shared by all who wait.
    assert abs(taken["b"] - taken["c"]) <= 4


async def test_a_cancelled_waiter_takes_no_slots_along():
    slots = Slots(10)
    assert await slots.take(1) == 1
    waiting = asyncio.create_task(slots.take(5))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(5):
        assert await slots.take(5) == 1
    assert slots.statistics().used == 2


async def test_no_limit_means_no_wait():
    slots = Slots(None)
    assert await slots.take(10_000) == 10_000


async def test_who_waits_profits_from_a_new_rate():
    slots = Slots(1)
    assert await slots.take(1) == 1
    waiting = asyncio.create_task(slots.take(50))
    await asyncio.sleep(0)
    slots.set_rate(None)
    assert await waiting == 50


async def test_returned_slots_are_for_the_next_one():
    slots = Slots(10)
    assert await slots.take(1) == 1
    slots.give_back(1)
    assert await slots.take(1) == 1
    assert slots.statistics().used == 1


async def test_a_rate_of_nothing_gives_nothing_until_it_rises():
    slots = Slots(0)
    waiting = asyncio.ensure_future(slots.take(5))
    await asyncio.sleep(0)
    assert not waiting.done()
    slots.set_rate(50)
    assert await waiting == 5
