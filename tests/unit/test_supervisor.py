"""Shares of a replica: by owned partitions, and never more than the whole."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from service.config import Settings
from service.supervisor import Supervisor, assign, settled


def worker(held, share):
    return {"leases": {"held": held}, "share": str(share)}


def test_shares_go_by_owned_partitions():
    held = {0: worker(3, 0), 1: worker(1, 0)}
    assert dict(assign(held, {0: Fraction(0), 1: Fraction(0)})) == {0: Fraction(3, 4), 1: Fraction(1, 4)}


def test_nothing_changes_where_nothing_has_to():
    held = {0: worker(2, "1/2"), 1: worker(2, "1/2")}
    assert list(assign(held, {0: Fraction(1, 2), 1: Fraction(1, 2)})) == []


def test_a_share_is_given_on_only_when_its_worker_has_let_it_go():
    held = {0: worker(4, "1/2"), 1: worker(0, "1/2")}
    first = dict(assign(held, {0: Fraction(1, 2), 1: Fraction(1, 2)}))
    assert first == {1: Fraction(0)}
    held = {0: worker(4, "1/2"), 1: worker(0, 0)}
    assert dict(assign(held, {0: Fraction(1, 2), 1: Fraction(0)})) == {0: Fraction(1)}


def test_a_share_is_on_its_way_until_the_last_worker_has_taken_it():
    before, after = {0: Fraction(1), 1: Fraction(0)}, {0: Fraction(1, 2), 1: Fraction(1, 2)}
    assert settled({0: worker(4, 1), 1: worker(0, 0)}, before)
    assert not settled({0: worker(2, 1), 1: worker(2, 0)}, before)  # nobody was told yet
    assert not settled({0: worker(2, 1), 1: worker(2, 0)}, {**before, 0: Fraction(1, 2)})  # told, not yet let go
    assert not settled({0: worker(2, "1/2"), 1: worker(2, 0)}, {**before, 0: Fraction(1, 2)})  # let go, not given on
    assert not settled({0: worker(2, "1/2"), 1: worker(2, 0)}, after)  # given on, not yet taken
    assert settled({0: worker(2, "1/2"), 1: worker(2, "1/2")}, after)


def test_what_a_crashed_worker_had_is_free():
    assert dict(assign({1: worker(4, "1/4")}, {1: Fraction(1, 4)})) == {1: Fraction(1)}


@given(st.data())
def test_shares_never_sum_to_more_than_the_whole(data):
    count = data.draw(st.integers(1, 4))
    said = {number: Fraction(0) for number in range(count)}
    assigned = dict(said)
    for _ in range(data.draw(st.integers(1, 15))):
        held = {number: worker(data.draw(st.integers(0, 8)), said[number]) for number in range(count)}
        assigned.update(assign(held, assigned))
        # Some workers have heard of their new share by the next look, others have not.
        for number in range(count):
            if data.draw(st.booleans()):
                said[number] = assigned[number]
        in_force = sum(max(said[number], assigned[number]) for number in range(count))
        assert in_force <= 1


async def test_a_replica_is_ready_when_all_its_workers_are():
    supervisor = Supervisor(Settings(workers=2), None)
    assert supervisor.not_ready() == "2 of 2 workers are not up"
    supervisor._heard = {0: {"faults": []}, 1: {"faults": ["Cosmos has not been reached yet"]}}
    assert supervisor.not_ready() == "Cosmos has not been reached yet"
    supervisor._heard = {0: {"faults": []}, 1: {"faults": []}}
    assert supervisor.not_ready() is None
