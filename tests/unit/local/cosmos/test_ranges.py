"""Ranges cover the key space whatever is split."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.local.cosmos.errors import Gone
from service.local.cosmos.partition_key import KeyDefinition
from service.local.cosmos.ranges import RangeMap
from service.local.cosmos.throughput import Budget


def ranges(count, version=2):
    return RangeMap(KeyDefinition(("/k",), version=version), count, Budget)


def covers_all(made):
    parts = made.ranges
    return (
        parts[0].low == ""
        and parts[-1].high == "FF"
        and all(left.high == right.low and left.low < left.high for left, right in itertools.pairwise(parts))
    )


@given(st.integers(1, 40), st.lists(st.integers(0, 1000), max_size=20), st.sampled_from([1, 2]))
def test_any_splits_leave_no_gap_and_no_overlap(count, picks, version):
    made = ranges(count, version)
    for pick in picks:
        made.split(made.ranges[pick % len(made.ranges)].id)
    assert covers_all(made)
    assert len({one.id for one in made.ranges}) == count + len(picks)


@pytest.mark.parametrize("version", [1, 2])
def test_keys_spread_evenly(version):
    made = ranges(4, version)
    keys = KeyDefinition(("/k",), version=version)
    counts = dict.fromkeys((one.id for one in made.ranges), 0)
    for number in range(4000):
        counts[made.of(keys.of((f"key-{number}",)).epk).id] += 1
    assert min(counts.values()) > 800


def test_a_split_range_is_gone_and_its_children_name_it():
    made = ranges(2)
    left, right = made.split("0")
    with pytest.raises(Gone):
        made.by_id("0")
    grandchild, _ = made.split(left.id)
    assert right.parents == ("0",)
    assert grandchild.parents == ("0", left.id)


def test_the_incremental_feed_gives_only_what_is_new_and_then_nothing():
    made = ranges(2)
    etag = made.etag
    assert len(made.changes(None, "rid")) == 2
    assert made.changes(etag, "rid") is None
    made.split("1")
    assert [one["id"] for one in made.changes(etag, "rid")] == ["2", "3"]
    assert len(made.changes(None, "rid")) == 3
    assert made.changes(made.etag, "rid") is None


def test_splitting_into_a_number_takes_the_widest_first():
    made = ranges(3)
    made.split_into(6)
    assert len({one.place[2] for one in made.ranges}) == 1


def test_a_map_comes_back_from_its_snapshot():
    made = ranges(2)
    made.split("1")
    again = ranges(1)
    again.restore(made.snapshot())
    assert [(one.id, one.low, one.high, one.parents) for one in again.ranges] == [
        (one.id, one.low, one.high, one.parents) for one in made.ranges
    ]
    assert again.split("0")[0].id == "4"
