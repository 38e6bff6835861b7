"""The plan: units in the order of time, whole and without overlap."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from service.jobs.plan import FilePart, Plan, RangePart, digest, pack_files, pack_ranges

files = st.lists(
    st.builds(
        FilePart,
        name=st.text("abc", min_size=1, max_size=6),
        size=st.integers(1, 1000),
        version=st.just("v"),
        partition=st.sampled_from("0123"),
        at=st.integers(0, 20).map(float),
    ),
    unique_by=lambda part: (part.name, part.partition, part.at),
)


@given(files, st.integers(1, 3000))
def test_every_file_is_in_one_unit_and_time_never_goes_back(parts, window):
    units = pack_files(parts, window)
    packed = [part for unit in units for part in unit.files]
    assert sorted(packed, key=repr) == sorted(parts, key=repr)
    times = [part.at for part in packed]
    assert times == sorted(times)
    for unit, following in pairwise(units):
        assert unit.files[-1].at < following.files[0].at


@given(files, st.integers(1, 3000))
def test_a_unit_grows_beyond_the_window_only_by_files_of_one_time(parts, window):
    for unit in pack_files(parts, window):
        last = unit.files[-1].at
        before = sum(part.size for part in unit.files if part.at < last)
        assert before <= window


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 3000)), min_size=1, max_size=8),
    st.integers(50_000, 2_000_000),
)
def test_ranges_are_cut_without_gap_or_overlap(bounds, window):
    parts = [RangePart(str(n), first, first + length, (length + 1) * 1024) for n, (first, length) in enumerate(bounds)]
    units = pack_ranges(parts, window)
    for part in parts:
        pieces = [piece for unit in units for piece in unit.ranges if piece.partition == part.partition]
        assert pieces[0].first == part.first
        assert pieces[-1].last == part.last
        assert all(one.last + 1 == two.first for one, two in pairwise(pieces))


def test_a_stored_plan_comes_back_as_it_was():
    units = pack_files([FilePart("a", 1, "v", "0", 1.0), FilePart("b", 2, "w", "1", 2.0)], 1)
    plan = Plan("digest", (*units, *pack_ranges([RangePart("0", 1, 9, 9)], 100)), {"0": 5}, 7, ("empty",))
    assert Plan.decode(plan.encode()) == plan


def test_a_digest_depends_on_values_not_on_order():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
