"""Dead-letter limits: a flood stops before it is let by; single letters pass."""

import pytest

from service.errors import DeadLetterFlood
from service.sink.flood import FloodGate, FloodOptions


def gate(**options) -> FloodGate[int]:
    return FloodGate[int](FloodOptions(**options), 0.0)


def test_a_single_letter_passes_with_the_next_good_record():
    flood = gate()
    flood.good(10, 0.0)
    flood.dead([1], 1.0)
    assert flood.good(1, 1.1) == [1]


def test_too_many_in_a_row_stop_and_none_was_let_by():
    flood = gate(max_consecutive=10)
    flood.good(5, 0.0)
    flood.dead(list(range(10)), 1.0)
    assert flood.tick(1.5) == []
    with pytest.raises(DeadLetterFlood, match="11 records in a row") as stopped:
        flood.dead([10], 2.0)
    assert stopped.value.exit_code == 75


def test_too_large_a_part_of_all_stops_and_was_not_let_by():
    flood = gate()
    passed = []

    def three_of_five_fail():
        for number in range(1000):
            if number % 5 < 3:
                flood.dead([number], number / 100)
            else:
                passed.extend(flood.good(1, number / 100))

    with pytest.raises(DeadLetterFlood, match="of the last 1000 records"):
        three_of_five_fail()
    assert passed == []


def test_letters_at_the_end_pass_once_nothing_more_comes():
    flood = gate()
    flood.dead([1, 2], 10.0)
    assert flood.tick(11.9) == []
    assert flood.tick(12.0) == [1, 2]


def test_no_letter_is_kept_back_for_longer_than_a_minute():
    flood = gate()
    flood.dead([1], 0.0)
    for second in range(1, 60):
        flood.dead([second + 1], float(second))
        assert flood.tick(float(second)) == []
    assert len(flood.tick(60.0)) == 60
