"""A range's pace: no wait until it refuses; then by what it accepted."""

from service.sink.pace import Concurrency, Pace


def test_without_a_refusal_nothing_waits_and_batches_are_whole():
    pace = Pace(0.0)
    for second in range(10):
        cost = pace.spend(100, float(second))
        pace.settle(cost, 600.0, 100)
        assert pace.wait_seconds(float(second)) == 0.0
    assert pace.batch_limit(100) == 100


def test_after_a_refusal_it_goes_as_fast_as_the_range_accepted():
    pace = Pace(0.0)
    for _ in range(10):
        pace.settle(pace.spend(100, 0.0), 600.0, 100)
    pace.refused(0.5, 0.5)
    assert pace.rate is not None
    assert 5900 < pace.rate <= 6000
    assert pace.batch_limit(100) == 99
    pace.settle(pace.spend(99, 1.0), 594.0, 99)
    assert 0.05 < pace.wait_seconds(1.0) < 0.15


def test_what_was_refused_is_not_given_back():
    pace = Pace(0.0)
    pace.settle(pace.spend(10, 0.0), 60.0, 10)
    pace.refused(0.1, 0.0)
    before = pace.wait_seconds(0.1)
    pace.settle(pace.spend(10, 0.1), 0.0, 0)
    assert pace.wait_seconds(0.1) > before


def test_a_small_range_gets_small_batches():
    pace = Pace(0.0)
    pace.settle(pace.spend(40, 0.0), 240.0, 40)
    pace.refused(0.1, 0.9)
    assert pace.batch_limit(100) == 3


def test_a_quiet_range_is_probed_upwards_but_not_without_end():
    pace = Pace(0.0)
    pace.settle(pace.spend(10, 0.0), 60.0, 10)
    pace.refused(0.1, 0.0)
    pace.wait_seconds(100_000.0)
    assert pace.rate == 1e9


def test_concurrency_rises_while_it_is_used_and_halves_once_for_each_refusal():
    concurrency = Concurrency(2.0, 20)
    concurrency.answered(0)
    assert concurrency.limit == 2.0
    for _ in range(500):
        concurrency.answered(int(concurrency.limit) - 1)
    assert concurrency.limit == 20
    concurrency.refused(10.0)
    concurrency.refused(10.1)
    assert concurrency.limit == 10
    for second in range(11, 30):
        concurrency.refused(float(second))
    assert concurrency.limit == 1


def test_a_range_that_refused_all_it_was_ever_sent_has_no_rate_yet():
    pace = Pace(0.0)
    for second in range(5):
        pace.settle(pace.spend(100, float(second)), 0.0, 0)
        pace.refused(second + 0.01, 1.0)
    assert pace.rate is None
    pace.settle(pace.spend(100, 6.0), 700.0, 100)
    assert pace.wait_seconds(6.1) == 0.0


def test_a_large_debt_is_paid_by_a_rate_that_rises():
    pace = Pace(0.0)
    pace.settle(pace.spend(1, 0.0), 1.0, 1)
    pace.refused(0.5, 0.5)
    assert pace.rate == 1.0
    now = 1.0
    pace.settle(pace.spend(1, now), 700.0, 1)
    while (wait := pace.wait_seconds(now)) > 1e-6:
        assert wait <= 1.0
        now += wait
    assert now < 30
