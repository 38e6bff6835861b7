"""Minutes until retention takes what was not read."""

import pytest

from service.source.retention import RetentionEdge


def test_nothing_goes_so_nothing_will_be_lost():
    edge = RetentionEdge()
    edge.measured(0, 0.0)
    edge.measured(0, 10.0)
    assert edge.minutes_to(100) is None


def test_a_steady_edge_reaches_a_position_in_time():
    edge = RetentionEdge()
    for second in range(0, 600, 10):
        edge.measured(second * 100, float(second))
    # 100 events a second go, and 60,000 are between the edge and the position.
    assert edge.minutes_to(edge.first_kept + 60_000) == pytest.approx(10, rel=0.01)


def test_what_is_behind_the_edge_is_lost_already():
    edge = RetentionEdge()
    edge.measured(0, 0.0)
    edge.measured(1_000, 10.0)
    assert edge.minutes_to(500) == 0
