"""One order of all records of a document."""

from hypothesis import given
from hypothesis import strategies as st

from service.sink.stamp import Precedence, Stamp, compare

# As the decoder makes them: within a partition, later sequences are never enqueued earlier.
BEHIND = {"0": 0, "1": 2}
stamps = st.builds(
    lambda incarnation, partition, sequence, index: Stamp(
        incarnation, partition, sequence, index, sequence // 3 + BEHIND[partition]
    ),
    st.integers(1, 2),
    st.sampled_from("01"),
    st.integers(0, 20),
    st.integers(0, 2),
)


@given(stamps, stamps)
def test_it_is_the_order_of_the_design(one, other):
    def place(stamp):
        return stamp.incarnation, stamp.enqueued, stamp.partition, stamp.sequence, stamp.index

    expected = (
        Precedence.SAME
        if place(one) == place(other)
        else Precedence.NEWER
        if place(one) > place(other)
        else Precedence.OLDER
    )
    assert compare(one, other) is expected


def test_a_replay_that_saw_less_still_knows_its_own():
    assert compare(Stamp(1, "0", 5, 0, 10), Stamp(1, "0", 5, 0, 12)) is Precedence.SAME


def test_no_stamp_is_older_than_any():
    assert compare(Stamp(1, "0", 0, 0, 0), None) is Precedence.NEWER


def test_only_our_own_stamps_count():
    for foreign in (
        None,
        "x",
        {},
        {"incarnation": "1"},
        {"incarnation": 1, "partition": 0, "sequence": 1, "index": 0, "enqueued": 1},
    ):
        assert Stamp.parse(foreign) is None
