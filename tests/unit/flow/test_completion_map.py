"""Maps that read back as they were written, and never read as anything else."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.flow import completion_map
from service.flow.completion_map import MAX_TEXT, UnreadableMap
from service.source.events import Hub, PartitionId

HUB = Hub("namespace.servicebus.windows.net", "hub", "$Default", 1_700_000_000_000)
P = PartitionId("3")


def read(text, frontier=99, hub=HUB, partition=P):
    return completion_map.decode(hub, partition, frontier, text)


@given(st.integers(-1, 1 << 40), st.sets(st.integers(1, 5000), max_size=300))
def test_a_map_reads_back_as_it_was_written(frontier, ahead):
    sequences = {frontier + number for number in ahead}
    text = completion_map.encode(HUB, P, frontier, sequences)
    known = read(text, frontier)
    assert {n for n in range(frontier - 2, frontier + 5003) if n in known} == sequences
    assert len(known) == len(sequences)
    assert known.last == max(sequences, default=-1)


def test_nothing_ahead_needs_no_map():
    assert completion_map.encode(HUB, P, 99, []) is None
    assert 100 not in read(None)


@pytest.mark.parametrize(
    "other",
    [
        {"hub": dataclasses.replace(HUB, incarnation=1)},
        {"hub": dataclasses.replace(HUB, name="other")},
        {"hub": dataclasses.replace(HUB, group="other")},
        {"partition": PartitionId("4")},
        {"frontier": 98},
    ],
)
def test_a_foreign_map_is_refused(other):
    text = completion_map.encode(HUB, P, 99, [101, 102])
    with pytest.raises(UnreadableMap):
        read(text, **other)


@given(st.data())
def test_a_damaged_map_is_refused(data):
    text = completion_map.encode(HUB, P, 99, [101, 102, 200, 300])
    index = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("ABCxyz019-_=.").filter(lambda c: c != text[index]))
    damaged = text[:index] + letter + text[index + 1 :]
    try:
        known = read(damaged)
    except UnreadableMap:
        return
    # Base64 has letters whose last bits mean nothing: then it is the same map, never another one.
    assert known == read(text)


@given(st.text(max_size=200))
def test_any_text_is_either_refused_or_a_map(text):
    with pytest.raises(UnreadableMap):
        read(text)
    with pytest.raises(UnreadableMap):
        read("1." + text)


def test_a_map_that_grows_too_large_keeps_what_is_nearest():
    ahead = [100 + number for number in range(0, 2_000_000, 2) if number % 7]
    text = completion_map.encode(HUB, P, 99, ahead)
    assert len(text) <= MAX_TEXT
    known = read(text)
    kept = [n for n in ahead if n in known]
    assert kept == ahead[: len(kept)]
    assert len(kept) > 10_000


def test_what_format_1_wrote_stays_readable():
    known = read("1.eJxbfUDilNgD1lIbX6sljMxsjAA5LgUw")
    assert [n for n in range(90, 120) if n in known] == [101, 102, 103, 110]
