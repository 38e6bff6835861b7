"""Keys hash to where the SDKs think they hash to, or every routed write would be refused."""

import pytest
from azure.cosmos.partition_key import PartitionKey, _Undefined
from hypothesis import given
from hypothesis import strategies as st

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.partition_key import KeyDefinition, split_path

SCALARS = [
    "",
    "a",
    "device-000001",
    "ключ",
    "x" * 100,
    "x" * 101,
    "y" * 1500,
    0,
    1,
    5.5,
    -1.25,
    1e300,
    True,
    False,
]


def sdk_hash(values, path, **options):
    shown = [_Undefined() if value == {} else value for value in values]
    return str(PartitionKey(path, **options)._get_effective_partition_key_string(shown)).upper()


@pytest.mark.parametrize("value", [*SCALARS, None, {}], ids=repr)
def test_version_2_hashes_as_the_sdk_does(value):
    assert KeyDefinition(("/k",)).of((value,)).epk == sdk_hash([value], "/k")


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_version_1_hashes_as_the_sdk_does(value):
    expected = sdk_hash([value], "/k", version=1)
    assert KeyDefinition(("/k",), version=1).of((value,)).epk == expected


@pytest.mark.parametrize("values", [("a", "b"), ("a", 1), (None, True), ("x", {})], ids=repr)
def test_hierarchical_keys_hash_level_by_level_as_the_sdk_does(values):
    keys = KeyDefinition(("/a", "/b"), "MultiHash")
    assert keys.of(values).epk == sdk_hash(list(values), ["/a", "/b"])


@given(st.text(max_size=300))
def test_any_text_hashes_as_the_sdk_does(text):
    assert KeyDefinition(("/k",)).of((text,)).epk == sdk_hash([text], "/k")


def test_a_prefix_of_a_hierarchical_key_covers_the_whole_keys_under_it():
    keys = KeyDefinition(("/a", "/b"), "MultiHash")
    low, high = keys.prefix_range(("tenant",))
    assert low <= keys.of(("tenant", "anyone")).epk < high
    assert not low <= keys.of(("other", "anyone")).epk < high


def test_one_and_one_point_zero_are_the_same_key():
    keys = KeyDefinition(("/k",))
    assert keys.parse("[1]") == keys.parse("[1.0]")


def test_true_is_not_the_key_1():
    keys = KeyDefinition(("/k",))
    assert not keys.matches(keys.parse("[1]"), {"k": True})
    assert keys.matches(keys.parse("[true]"), {"k": True})


def test_a_document_without_the_property_has_the_undefined_key():
    keys = KeyDefinition(("/a/b",))
    assert keys.matches(keys.parse("[{}]"), {"a": {}})
    assert not keys.matches(keys.parse("[null]"), {"a": {}})
    assert keys.matches(keys.parse("[null]"), {"a": {"b": None}})


def test_paths_may_have_quotes():
    assert split_path('/"first level"/second') == ("first level", "second")


@pytest.mark.parametrize(
    "text", ["", "{", '"a"', '["a","b"]', "[[1]]", '[{"a":1}]', "[" * 2000], ids=lambda text: text[:10]
)
def test_what_is_no_key_is_refused(text):
    with pytest.raises(BadRequest):
        KeyDefinition(("/k",)).parse(text)


@pytest.mark.parametrize(
    "definition",
    [
        None,
        {},
        {"paths": []},
        {"paths": ["k"]},
        {"paths": ["/a", "/b"]},
        {"paths": ["/a"], "kind": "Range"},
        {"paths": ["/a"], "version": 3},
        {"paths": ["/a", "/b", "/c", "/d"], "kind": "MultiHash"},
    ],
    ids=repr,
)
def test_what_is_no_definition_is_refused(definition):
    with pytest.raises(BadRequest):
        KeyDefinition.from_json(definition)
