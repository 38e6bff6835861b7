"""States of documents."""

import pytest

from service.jobs.judge import Actual, Expected, Seen, State, judge
from service.sink.stamp import Stamp

SEEN = Seen(100, {"0": (10, 50), "1": (0, 40)})
NOW = 1000.0


def stamp(sequence, partition="0", incarnation=100, enqueued=500):
    return Stamp(incarnation, partition, sequence, 0, enqueued)


def expected(sequence=30, *, operation="upsert", expires=None, dead=False):
    return Expected(operation, stamp(sequence), "hash", expires, dead)


def actual(at, hashed="hash"):
    return Actual(at, hashed, "etag")


@pytest.mark.parametrize(
    ("want", "have", "state"),
    [
        (expected(), actual(stamp(30)), State.OK),
        (expected(), actual(stamp(30), "other"), State.DIFFERENT),
        (expected(), None, State.MISSING),
        (expected(), actual(stamp(29)), State.STALE),
        (expected(), actual(stamp(51)), State.NEWER),
        (expected(), actual(stamp(31)), State.DIFFERENT),
        (expected(), actual(stamp(5, incarnation=101)), State.NEWER),
        (expected(), actual(stamp(900, incarnation=99)), State.STALE),
        (expected(), actual(stamp(41, partition="1", enqueued=501)), State.NEWER),
        (expected(), actual(None), State.OK),
        (expected(), actual(None, "other"), State.DIFFERENT),
        (expected(expires=999), None, State.EXPIRED),
        (expected(expires=1001), None, State.MISSING),
        (expected(operation="delete"), None, State.DELETED),
        (expected(operation="delete"), actual(stamp(20)), State.STALE),
        (expected(operation="delete"), actual(stamp(60)), State.NEWER),
        (expected(operation="delete"), actual(None), State.UNEXPECTED),
        (expected(dead=True), None, State.DEAD_LETTERED),
        (expected(dead=True), actual(stamp(60)), State.NEWER),
        (None, actual(None), State.UNEXPECTED),
        (None, actual(stamp(30)), State.UNEXPECTED),
        (None, actual(stamp(60)), State.NEWER),
        (None, actual(stamp(9)), State.OUTSIDE),
        (None, actual(stamp(9, partition="7")), State.OUTSIDE),
        (None, actual(stamp(9, incarnation=99)), State.OUTSIDE),
    ],
)
def test_state(want, have, state):
    assert judge(want, have, SEEN, NOW) is state


def test_differences_are_what_is_wrong():
    wrong = {state.value for state in State if state.is_difference}
    assert wrong == {"missing", "stale", "different", "unexpected"}
