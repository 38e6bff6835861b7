"""Spans in JSON text: what is cut out is exactly what stood there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.sink import json_text

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
spacing = st.sampled_from([None, 1, "\t"])


@given(st.lists(values, max_size=5), spacing)
def test_elements_are_those_of_the_array(array, indent):
    text = " \n" + json.dumps(array, indent=indent) + " "
    assert [json.loads(text[start:end]) for start, end in json_text.elements(text)] == array


@given(st.dictionaries(st.text(max_size=3), values, max_size=5), spacing)
def test_members_are_those_of_the_object(document, indent):
    text = json.dumps(document, indent=indent)
    found = {name: json.loads(text[start:end]) for name, _, (start, end) in json_text.members(text)}
    assert found == document


@given(st.dictionaries(st.sampled_from("abc"), values), st.sets(st.sampled_from("abcd")), spacing)
def test_without_leaves_the_rest(document, names, indent):
    body = json.dumps(document, indent=indent).encode()
    left = json.loads(json_text.without(body, sorted(names))) if document else {}
    assert left == {name: value for name, value in document.items() if name not in names}


def test_a_path_leads_to_the_last_of_several():
    text = '{"a":{"b":1}, "a":{"b":[2]}}'
    assert text[json_text.find(text, ("a", "b")) :].startswith("[2]")
    with pytest.raises(KeyError):
        json_text.find(text, ("a", "c"))
