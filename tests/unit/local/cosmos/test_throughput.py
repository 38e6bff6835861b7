"""Costs, and what a range may spend."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from service.local.cosmos.indexing import IndexPolicy
from service.local.cosmos.throughput import Budget, read_charge, write_charge


def test_a_write_of_1_kb_with_one_indexed_path_costs_about_6_and_a_read_1():
    assert 5.5 <= write_charge(1024, 1) <= 6.5
    assert read_charge(1024) == 1.0


def test_costs_grow_with_size_and_with_indexed_paths():
    assert write_charge(10_240, 1) > write_charge(1024, 1)
    assert write_charge(1024, 50) > write_charge(1024, 1)
    assert read_charge(102_400) > read_charge(1024)


def test_a_range_without_a_rate_never_waits():
    budget = Budget()
    budget.spend(1e9)
    assert budget.wait_ms(0.0) == 0


def test_a_spent_window_waits_until_the_next_one_begins():
    budget = Budget(rate=100)
    assert budget.wait_ms(10.25) == 0
    budget.spend(100)
    assert budget.wait_ms(10.25) == 750
    assert budget.wait_ms(11.0) == 0


def test_debt_is_paid_off_by_later_windows():
    budget = Budget(rate=100)
    budget.wait_ms(10.0)
    budget.spend(350)
    assert budget.wait_ms(10.0) == 3000
    assert budget.wait_ms(12.5) == 500
    assert budget.wait_ms(13.0) == 0


def test_idle_windows_save_up_nothing():
    budget = Budget(rate=100)
    budget.wait_ms(10.0)
    assert budget.wait_ms(1000.0) == 0
    budget.spend(100)
    assert budget.wait_ms(1000.5) == 500


@given(st.lists(st.tuples(st.floats(0, 0.5), st.floats(0.5, 50)), max_size=200))
def test_over_time_no_more_is_spent_than_the_rate_and_one_operation(steps):
    budget, now, accepted = Budget(rate=100), 0.0, 0.0
    for wait, charge in steps:
        now += wait
        if budget.wait_ms(now) == 0:
            budget.spend(charge)
            accepted += charge
    assert accepted <= 100 * (int(now) + 1) + 50


def test_the_index_policy_decides_how_many_values_count():
    document = {"id": "a", "key": "k", "big": {"x": 1, "y": [1, 2, 3]}}
    body = orjson.dumps(document)
    assert IndexPolicy.from_json(None).count(body) == 6
    assert IndexPolicy.from_json({"indexingMode": "none"}).count(body) == 0
    only_key = {"includedPaths": [{"path": "/key/?"}], "excludedPaths": [{"path": "/*"}]}
    assert IndexPolicy.from_json(only_key).count(body) == 1
    not_big = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/big/*"}]}
    assert IndexPolicy.from_json(not_big).count(body) == 2
