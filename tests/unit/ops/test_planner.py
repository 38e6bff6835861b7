"""The planner's arithmetic: the original sample's own runs, limits, and laws that hold for any load."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.ops.capacity import Cost, Reach, Supply
from service.ops.planner import (
    RU_PER_CONTAINER,
    RU_PER_PARTITION,
    hottest_key_of,
    hottest_share,
    plan,
    reach,
    shares,
)

RECORDS = 4_200_000
SAMPLE = Cost(ru_per_record=6, record_bytes=1024, hottest_key=0.0, records_per_core=3_000)
"""The original sample: 1 KB, one indexed path, 70,000 keys; its .NET replicas took 3,000 a second on a core each."""
HUB = Supply(hub_partitions=16)

costs = st.builds(
    Cost,
    ru_per_record=st.floats(1, 50),
    record_bytes=st.floats(50, 100_000),
    hottest_key=st.floats(0, 0.9),
    records_per_core=st.floats(500, 20_000),
)
supplies = st.builds(
    Supply,
    physical_partitions=st.none() | st.integers(1, 40),
    autoscale=st.booleans(),
    stored_bytes=st.floats(0, 1e12),
    hub_partitions=st.none() | st.integers(1, 64),
    hub_hottest=st.none() | st.floats(0, 0.5),
)
rates = st.floats(0.5, 100_000)
headrooms = st.floats(0, 1)


def needs(made):
    """All that a plan asks for, as numbers; nothing is as much as what cannot be had."""
    never = float("inf")
    cosmos, fleet = made.cosmos, made.fleet
    return (
        cosmos.throughput if cosmos else never,
        cosmos.physical_partitions if cosmos else never,
        made.hub.units_out,
        made.hub.units_in,
        made.hub.partitions,
        fleet.workers if fleet else never,
        fleet.replicas if fleet else never,
    )


def bought(made, supply):
    """What is there when all of the plan was bought."""
    return Supply(
        throughput=made.cosmos.throughput,
        physical_partitions=made.cosmos.physical_partitions,
        hub_partitions=supply.hub_partitions,
        hub_hottest=supply.hub_hottest,
        workers=made.fleet.workers,
    )


def test_the_samples_first_run_fits_its_fifty_thousand_request_units():
    """50k RU, 8 replicas of 1,000/s: 4.2 M records in about 525 s (531 s were reported)."""
    made = plan(RECORDS / 525, SAMPLE, HUB, headroom=0.0)
    assert made.rate == 8_000
    assert (made.cosmos.throughput, made.cosmos.physical_partitions) == (48_000, 5)
    there = reach(SAMPLE, Supply(throughput=50_000, physical_partitions=5, rate_limit=8 * 1_000))
    assert there.limits[0].what == "EVENTHUB_RATELIMIT"
    assert there.seconds_for(RECORDS) == 525


def test_the_samples_second_run_needs_its_fifteen_partitions_of_ten_thousand():
    """150k RU, 15 physical partitions, 8 replicas of 3,000/s: 4.2 M records in about 175 s (180 s were reported)."""
    made = plan(RECORDS / 175, SAMPLE, HUB, headroom=0.0)
    assert made.rate == 24_000
    assert (made.cosmos.throughput, made.cosmos.physical_partitions) == (144_000, 15)
    assert made.cosmos.hottest_use == pytest.approx(1.0)
    assert made.fleet.workers == 8
    assert (made.hub.units_out, made.hub.units_in) == (13, 25)
    assert plan(24_000, SAMPLE, HUB, headroom=0.04).cosmos.throughput == pytest.approx(150_000, abs=300)
    there = reach(SAMPLE, Supply(throughput=150_000, physical_partitions=15, rate_limit=8 * 3_000))
    assert 175 <= there.seconds_for(RECORDS) <= 180


def test_head_room_is_a_number_of_its_own():
    made = plan(1_000, SAMPLE, Supply(), headroom=0.2)
    assert (made.cosmos.ru, made.cosmos.headroom_ru, made.cosmos.skew_ru) == pytest.approx((6_000, 1_200, 0))
    assert made.cosmos.throughput == 7_200
    assert made.cosmos.hottest_use == pytest.approx(1 / 1.2)


def test_a_key_with_a_fifth_of_the_records_makes_the_other_partitions_idle():
    made = plan(1_000, Cost(6, 1024, 0.2, 8_000), Supply(physical_partitions=5), headroom=0.0)
    assert made.cosmos.hottest_share == pytest.approx(0.36)
    assert made.cosmos.throughput == 10_800
    assert made.cosmos.skew_ru == pytest.approx(4_800)


def test_a_key_hotter_than_a_physical_partition_cannot_be_helped():
    made = plan(10_000, Cost(6, 1024, 0.2, 8_000), Supply(), headroom=0.0)
    assert made.cosmos is None
    assert not made.reachable
    assert "12,000 RU/s" in made.obstacles[0]
    assert made.settings == {}


def test_more_than_a_container_is_sold_cannot_be_helped_either():
    made = plan(200_000, SAMPLE, Supply(), headroom=0.0)
    assert not made.reachable
    assert f"{RU_PER_CONTAINER:,}" in made.obstacles[0]


def test_a_hub_with_too_few_partitions_limits_whatever_runs():
    made = plan(24_000, SAMPLE, Supply(hub_partitions=4), headroom=0.0)
    assert made.fleet is None
    assert "4 partitions" in made.obstacles[0]


def test_a_busy_partition_of_the_hub_counts_for_its_one_reader():
    assert plan(8_000, SAMPLE, Supply(hub_partitions=16, hub_hottest=0.3), headroom=0.0).fleet is not None
    assert plan(8_000, SAMPLE, Supply(hub_partitions=16, hub_hottest=0.4), headroom=0.0).fleet is None


def test_workers_that_cannot_share_the_partitions_evenly_are_one_more():
    """Four partitions on three workers: one has two of them, half of the records."""
    assert plan(8_000, SAMPLE, Supply(hub_partitions=4), headroom=0.0).fleet.workers == 4
    assert plan(6_000, SAMPLE, Supply(hub_partitions=4), headroom=0.0).fleet.workers == 2


def test_more_units_than_partitions_are_not_promised():
    made = plan(8_000, Cost(6, 4096, 0.0, 8_000), Supply(hub_partitions=4), headroom=0.0)
    assert made.hub.units_out == 17
    assert made.reachable
    assert "guaranteed one unit" in made.warnings[0]


def test_a_skewed_hub_stays_below_a_rate_that_several_workers_share():
    skewed = Supply(hub_partitions=16, hub_hottest=0.2)
    assert "3.2 times an even share" in plan(8_000, SAMPLE, skewed, headroom=0.0).warnings[0]
    assert plan(1_000, SAMPLE, skewed, headroom=0.0).warnings == ()  # one worker has all slots
    assert plan(8_000, SAMPLE, HUB, headroom=0.0).warnings == ()


def test_storage_can_need_more_partitions_than_throughput():
    made = plan(100, SAMPLE, Supply(stored_bytes=60e9), headroom=0.0, records=50_000_000)
    assert made.cosmos.physical_partitions == 3  # 60 + 51 GB


def test_autoscale_is_sold_by_the_thousand():
    assert plan(10, SAMPLE, Supply(autoscale=True), headroom=0.0).cosmos.throughput == 1_000
    assert plan(10, SAMPLE, Supply(), headroom=0.0).cosmos.throughput == 400


def test_settings_hold_the_rate_over_the_fleet_and_let_the_busiest_replica_spend_its_part():
    made = plan(24_000, SAMPLE, HUB, headroom=0.25)
    assert made.settings == {
        "EVENTHUB_RATELIMIT": 24_000,
        "EVENTHUB_RATELIMIT_SCOPE": "fleet",
        "WORKERS": 4,
        "COSMOS_RULIMIT": 90_000,  # of 180,000; two replicas
    }


def test_lag_that_grows_faster_than_it_is_taken_has_no_end():
    there = reach(SAMPLE, Supply(rate_limit=1_000))
    assert there.seconds_for(10_000, arriving=500) == 20
    assert there.seconds_for(10_000, arriving=1_000) is None
    assert there.seconds_for(0, arriving=1_000) == 0
    assert Reach(()).seconds_for(1) is None


def test_unevenness_is_put_down_to_one_key():
    assert hottest_key_of([100, 100, 100, 100]) == 0
    assert hottest_key_of([625, 125, 125, 125]) == pytest.approx(0.5)
    assert hottest_key_of([50, 50], largest_key=40) == pytest.approx(0.4)
    assert hottest_key_of([1_000]) == 0
    assert hottest_key_of([0, 0]) == 0


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50))
def test_shares_sum_to_one(counts):
    assert sum(shares(counts)) == pytest.approx(1)


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=50))
def test_the_hottest_share_is_again_the_one_that_was_counted(counts):
    assert hottest_share(hottest_key_of(counts), len(counts)) == pytest.approx(max(shares(counts)))


@given(st.floats(0, 1), st.integers(1, 1_000))
def test_the_hottest_partition_and_the_others_have_all_records_between_them(key, partitions):
    hottest = hottest_share(key, partitions)
    others = (1 - key) / partitions
    assert hottest + (partitions - 1) * others == pytest.approx(1)
    assert hottest >= hottest_share(key, partitions + 1)


@given(rates, st.floats(1, 10), costs, supplies, headrooms)
def test_more_rate_never_needs_less_of_anything(rate, times, cost, supply, headroom):
    less, more = (plan(each, cost, supply, headroom=headroom) for each in (rate, rate * times))
    assert all(a <= b for a, b in zip(needs(less), needs(more), strict=True))


@given(rates, costs, supplies, headrooms, st.floats(0, 1))
def test_more_head_room_or_a_hotter_key_never_needs_less_throughput(rate, cost, supply, headroom, more):
    base = needs(plan(rate, cost, supply, headroom=headroom))[:2]
    assert all(a <= b for a, b in zip(base, needs(plan(rate, cost, supply, headroom=headroom + more)), strict=False))
    hotter = Cost(cost.ru_per_record, cost.record_bytes, min(1, cost.hottest_key + more), cost.records_per_core)
    assert all(a <= b for a, b in zip(base, needs(plan(rate, hotter, supply, headroom=headroom)), strict=False))


@given(rates, costs, supplies, headrooms)
def test_what_a_plan_buys_reaches_its_rate(rate, cost, supply, headroom):
    made = plan(rate, cost, supply, headroom=headroom)
    assume(made.reachable)
    there = reach(cost, bought(made, supply))
    assert there.rate >= rate * (1 - 1e-6)
    assert made.next_limit == there.limits[0]


@given(rates, costs, supplies, headrooms)
def test_no_partition_is_asked_for_more_than_it_serves_nor_for_less_than_its_head_room(rate, cost, supply, headroom):
    made = plan(rate, cost, supply, headroom=headroom)
    assume(made.cosmos is not None)
    assert made.cosmos.throughput <= RU_PER_PARTITION * made.cosmos.physical_partitions
    assert made.cosmos.hottest_use * (1 + headroom) <= 1 + 1e-6
    assert made.cosmos.throughput >= made.cosmos.ru + made.cosmos.headroom_ru + made.cosmos.skew_ru - 1e-3
