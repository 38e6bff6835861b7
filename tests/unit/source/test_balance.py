"""The pure balancing rules, on tables."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.source.balance import Plan, Policy, Strategy, balance
from service.source.events import PartitionId
from service.source.store import Lease

RANDOM = Random(1)


def _table(owners, **more):
    return [Lease(PartitionId(str(n)), owner, bool(owner), 1, "v", **more) for n, owner in enumerate(owners)]


def _plan(table, host="me", policy=None, **more):
    return balance(table, host, policy or Policy(), RANDOM, **more)


def test_a_lone_host_takes_everything_at_once():
    assert len(_plan(_table([""] * 32)).take) == 32


def test_balanced_takes_one_at_a_time():
    assert len(_plan(_table([""] * 32), policy=Policy(Strategy.BALANCED)).take) == 1


def test_free_partitions_are_taken_up_to_the_fair_share():
    table = _table(["a"] * 4 + [""] * 4 + ["b"] * 2)
    assert len(_plan(table).take) == 4  # ten over three hosts: at most four each


def test_an_expired_lease_is_free():
    table = [replace(lease, live=False) for lease in _table(["dead"] * 4)]
    assert len(_plan(table).take) == 4


def test_a_newcomer_counts_itself_and_asks_the_biggest():
    plan = _plan(_table(["a"] * 6 + ["b"] * 3))
    assert Counter(lease.owner for lease in plan.ask) == {"a": 3}
    assert plan.take == plan.steal == ()


def test_nothing_is_asked_for_where_that_would_not_make_it_more_even():
    assert _plan(_table(["a"] * 2 + ["me"])).settled
    assert _plan(_table(["a", "b", "c"])) == Plan()  # a hot standby


def test_an_owner_that_did_not_answer_in_time_is_robbed():
    asked = replace(_table(["a"])[0], wanted_by="me", wanted_seconds=4.0)
    table = [asked, *_table(["a"] * 4)[1:]]
    assert _plan(table).steal == ()
    late = replace(asked, wanted_seconds=6.0)
    assert _plan([late, *table[1:]]).steal == (late,)


def test_an_owner_that_cannot_answer_is_robbed_at_once():
    plan = _plan(_table(["a"] * 4, asks=False))
    assert len(plan.steal) == 2
    assert plan.ask == ()


def test_what_another_host_asked_for_counts_as_its_own():
    table = [replace(lease, wanted_by="b", wanted_seconds=1.0) for lease in _table(["a"] * 2)] + _table(["a"] * 4)[2:]
    assert len(_plan(table).ask) == 1  # a has two left, not four


def test_a_partition_let_go_waits_for_who_asked():
    free = replace(_table([""])[0], wanted_by="b", wanted_seconds=1.0)
    assert _plan([free]).take == ()
    assert balance([free], "b", Policy(), RANDOM).take == (free,)
    assert _plan([replace(free, wanted_seconds=11.0)]).take != ()


def test_what_moved_lately_stays():
    assert _plan(_table(["a"] * 4, moved_seconds=5.0)).settled
    assert len(_plan(_table(["a"] * 4, moved_seconds=31.0)).ask) == 2


def test_never_more_than_the_maximum():
    assert len(_plan(_table([""] * 8), policy=Policy(max_partitions=3)).take) == 3
    assert _plan(_table(["me"] * 3 + ["a"] * 9), policy=Policy(max_partitions=3)).settled


def test_what_nobody_takes_for_long_is_taken_beyond_the_share():
    table = _table(["a"] * 2 + ["me"] * 4 + [""] * 2)
    assert _plan(table).take == ()
    left = frozenset(lease.partition for lease in table[-2:])
    assert len(_plan(table, left_over=left).take) == 2


def test_beside_the_sdks_one_is_stolen_at_a_time_and_only_below_the_floor():
    sdk = Policy(as_the_sdks=True)
    assert len(_plan(_table(["a"] * 4, asks=False), policy=sdk).steal) == 1
    assert _plan(_table(["a"] * 3 + ["me"] * 2, asks=False), policy=sdk).settled


@given(st.integers(1, 40), st.integers(1, 8), st.integers(0, 2**32))
def test_any_start_comes_to_rest_evenly(partitions, hosts, seed):
    """Hosts act one after another on the true table, asks are answered at once: it settles, and evenly."""
    random = Random(seed)
    names = [f"h{n}" for n in range(hosts)]
    owners = [random.choice(["", *names]) for _ in range(partitions)]
    for _ in range(200):
        moved = False
        for name in names:
            plan = balance(_table(owners), name, Policy(), random)
            for lease in (*plan.take, *plan.ask, *plan.steal):
                owners[int(lease.partition)] = name
                moved = True
        if not moved:
            break
    counts = [owners.count(name) for name in names]
    assert sum(counts) == partitions
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("strategy", list(Strategy))
def test_the_three_parts_of_a_plan_are_disjoint(strategy):
    table = [
        replace(lease, wanted_by="me" if n % 3 == 0 else "", wanted_seconds=6.0)
        for n, lease in enumerate(_table(["a"] * 9 + [""] * 4))
    ]
    plan = _plan(table, policy=Policy(strategy))
    chosen = [lease.partition for lease in (*plan.take, *plan.ask, *plan.steal)]
    assert len(chosen) == len(set(chosen))
