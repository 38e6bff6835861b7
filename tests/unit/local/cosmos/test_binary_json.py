"""Binary JSON becomes text again; whatever is none is refused."""

import math
import struct

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.local.cosmos.binary_json import MAX_DEPTH, is_binary, to_text
from service.local.cosmos.errors import BadRequest


def framed(marker, count, body):
    """The narrowest of the three forms that say length and count."""
    for width, form in enumerate(("<BB", "<HH", "<II")):
        limit = 256 ** struct.calcsize(form[:2])
        if len(body) < limit and count < limit:
            return bytes([marker + width]) + struct.pack(form, len(body), count) + body
    raise AssertionError


def prefixed(raw):
    if len(raw) < 64:
        return bytes([0x80 | len(raw)]) + raw
    width = 0 if len(raw) < 2**8 else 1 if len(raw) < 2**16 else 2
    return bytes([0xC0 + width]) + len(raw).to_bytes(1 << width, "little") + raw


def encoded(value):
    """As a client writes it: the plain forms."""
    match value:
        case None | True | False:
            return {None: b"\xd0", False: b"\xd1", True: b"\xd2"}[value]
        case int():
            return bytes([value]) if 0 <= value < 32 else b"\xcb" + struct.pack("<q", value)
        case float():
            return b"\xcc" + struct.pack("<d", value)
        case str():
            return prefixed(value.encode())
        case list():
            return framed(0xE5, len(value), b"".join(map(encoded, value)))
        case dict():
            return framed(0xED, len(value), b"".join(encoded(name) + encoded(one) for name, one in value.items()))


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=300).filter(lambda text: text.isprintable())
)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=5), inner), max_leaves=50
)


@given(documents)
def test_what_was_written_comes_back(document):
    body = b"\x80" + encoded(document)
    assert is_binary(body)
    assert orjson.loads(to_text(body)) == document


@pytest.mark.parametrize(
    ("hexed", "value"),
    [
        ("80 e0", []),
        ("80 e1 05", [5]),
        ("80 e2 02 01 02", [1, 2]),
        ("80 e3 0200 01 02", [1, 2]),
        ("80 e4 02000000 01 02", [1, 2]),
        ("80 e8", {}),
        ("80 e9 81 61 05", {"a": 5}),
        ("80 ea 03 81 61 05", {"a": 5}),
        ("80 c8 ff", 255),
        ("80 c9 ffff", -1),
        ("80 ca 00000080", -(2**31)),
        ("80 c7 ffffffffffffffff", 2**64 - 1),
        ("80 cd 0000c03f", 1.5),
        ("80 d7 ff", 255),
        ("80 d8 ff", -1),
        ("80 dc ffffffff", 2**32 - 1),
        ("80 80", ""),
    ],
)
def test_the_other_forms_are_read_too(hexed, value):
    assert orjson.loads(to_text(bytes.fromhex(hexed))) == value


@pytest.mark.parametrize(
    "hexed",
    [
        "80",
        "80 85 61",
        "80 d0 d0",
        "80 25",
        "80 c3 01",
        "80 e5 02 03 01 02",
        "80 e5 05 02 01 02",
        "80 e5 01 01 cb 0000000000000000",
        "80 e9 05 05",
        "80 81 ff",
        "80 ff",
    ],
)
def test_what_means_nothing_is_a_bad_request(hexed):
    with pytest.raises(BadRequest, match="no valid binary JSON"):
        to_text(bytes.fromhex(hexed))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(noise):
    try:
        orjson.loads(to_text(b"\x80" + noise))
    except BadRequest:
        return


def test_nesting_has_an_end():
    deep = b"\x80" + b"\xe1" * MAX_DEPTH
    assert to_text(deep + b"\x05").startswith(b"[" * MAX_DEPTH)
    with pytest.raises(BadRequest, match="nested"):
        to_text(deep + b"\xe1\x05")


def test_numbers_that_json_has_not_become_null():
    assert to_text(b"\x80\xcc" + struct.pack("<d", math.inf)) == b"null"
