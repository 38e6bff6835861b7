"""The hash of a document is that of its contents, whatever way it has gone."""

import json
from random import Random

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from service.jobs.canonical import document_hash

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)
documents = st.dictionaries(st.text(min_size=1).filter(lambda name: not name.startswith("_")), values, max_size=6)


def as_cosmos_gives_it(value):
    """Doubles only, as its JavaScript numbers are."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(float(value)) if abs(value) <= 2**53 else float(value)
    if isinstance(value, float):
        return value
    if isinstance(value, list):
        return [as_cosmos_gives_it(each) for each in value]
    return {name: as_cosmos_gives_it(each) for name, each in value.items()}


@given(documents, st.randoms())
@example({"n": 2**53 + 1}, Random(1))  # the first integer that is no double: it comes back as 2^53
@example({"n": -(2**53)}, Random(1))
def test_order_stamp_system_properties_and_number_form_do_not_matter(document, random):
    names = list(document)
    random.shuffle(names)
    stored = {name: as_cosmos_gives_it(document[name]) for name in names}
    stored |= {"_rid": "x", "_etag": "y", "_ts": 1, "_self": "z", "_attachments": "a", "_sluice": {"sequence": 1}}
    back = json.loads(json.dumps(stored))
    assert document_hash(back, "_sluice") == document_hash(document, "_sluice")


def test_other_contents_have_another_hash():
    one = {"id": "a", "n": 1, "list": [1, 2]}
    assert document_hash(one, "_sluice") != document_hash(one | {"n": 2}, "_sluice")
    assert document_hash(one, "_sluice") != document_hash(one | {"list": [2, 1]}, "_sluice")
    assert document_hash(one, "_sluice") != document_hash(one | {"n": "1"}, "_sluice")
    assert document_hash(one, "_sluice") == document_hash(
        orjson.loads(b'{"list":[1.0,2e0],"n":1.0,"id":"a"}'), "_sluice"
    )
