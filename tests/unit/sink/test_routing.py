"""Keys go to the ranges that the service would choose: equal to azure-cosmos for every kind of key."""

import pytest
from azure.cosmos.partition_key import PartitionKey
from hypothesis import given
from hypothesis import strategies as st

from service.sink.routing import (
    KeyKind,
    PartitionKeyDefinition,
    RangeMap,
    effective_key,
    split_path,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
# By version 1 azure-cosmos hashes whole numbers modulo 2^32, unlike the other SDKs; within that they agree.
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 2**32 - 1)
values = text | numbers | st.booleans() | st.none()


def sdk_key(values: list, kind: str, version: int = 2) -> bytes:
    return bytes.fromhex(PartitionKey._get_hashed_partition_key_string(values, kind, version))


@given(values)
def test_version_2_equals_the_sdk(value):
    assert effective_key(KeyKind.V2, [value]) == int.from_bytes(sdk_key([value], "Hash"), "big")


@given(values)
def test_version_1_equals_the_sdk(value):
    assert effective_key(KeyKind.V1, [value]) == sdk_key([value], "Hash", 1)


@given(st.lists(values, min_size=2, max_size=3))
def test_hierarchical_keys_equal_the_sdk(several):
    assert effective_key(KeyKind.HIERARCHICAL, several) == int.from_bytes(sdk_key(several, "MultiHash"), "big")


BOUNDS = ["", "05C1CFFFFFFFF8", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "2A", "FF"]
RANGES = [(str(n), BOUNDS[n], BOUNDS[n + 1]) for n in range(4)]


@given(values, st.sampled_from(list(KeyKind)))
def test_a_key_is_in_the_range_that_holds_its_hex_text(value, kind):
    several = [value, "x"] if kind is KeyKind.HIERARCHICAL else [value]
    paths = ("/a", "/b")[: len(several)]
    found = RangeMap(PartitionKeyDefinition.of(*paths, kind=kind), RANGES).find(effective_key(kind, several))
    name = "MultiHash" if kind is KeyKind.HIERARCHICAL else "Hash"
    hexed = sdk_key(several, name, 1 if kind is KeyKind.V1 else 2).hex().upper()
    assert BOUNDS[int(found)] <= hexed < BOUNDS[int(found) + 1]


@pytest.mark.parametrize(
    "ranges",
    [
        [],
        [("0", "", "2A")],
        [("0", "00", "FF")],
        [("0", "", "1A"), ("1", "2A", "FF")],
        [("0", "", "2A"), ("1", "1A", "FF")],
    ],
)
def test_ranges_with_a_gap_are_refused(ranges):
    with pytest.raises(ValueError, match="range"):
        RangeMap(PartitionKeyDefinition.of("/key"), ranges)


def test_a_definition_is_read_as_the_service_writes_it():
    of = PartitionKeyDefinition.from_properties
    assert of({"paths": ["/key"], "kind": "Hash", "version": 2}) == PartitionKeyDefinition((("key",),), KeyKind.V2)
    assert of({"paths": ["/key"], "kind": "Hash"}).kind is KeyKind.V1
    assert of({"paths": ["/a/b", "/c"], "kind": "MultiHash", "version": 2}).paths == (("a", "b"), ("c",))
    assert of({"paths": ["/a/b"], "kind": "Hash", "version": 2}).text() == "/a/b"


def test_paths_may_be_quoted_and_nonsense_is_refused():
    assert split_path('/a/"b/c"/d') == ("a", "b/c", "d")
    for nonsense in ("", "id", "/a//b", "a/b", "/a/"):
        with pytest.raises(ValueError, match="not a path"):
            split_path(nonsense)
