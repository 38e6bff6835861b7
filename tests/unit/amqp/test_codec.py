import contextlib
import struct
import uuid

import pytest
from azure.eventhub._pyamqp._decode import decode_payload
from azure.eventhub._pyamqp._encode import encode_payload
from azure.eventhub._pyamqp.message import Message as SdkMessage
from hypothesis import given
from hypothesis import strategies as st

from service.amqp.decode import MAX_DEPTH, decode, skip
from service.amqp.encode import encode
from service.amqp.errors import DecodeError, EncodeError
from service.amqp.messages import DATA, Message, sections
from service.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 255).map(UByte),
    st.integers(0, 2**16 - 1).map(UShort),
    st.integers(0, 2**32 - 1).map(UInt),
    st.integers(0, 2**64 - 1).map(ULong),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1).map(Int),
    st.integers(0, 0x10FFFF).map(Char),
    st.integers(-(2**63), 2**63 - 1).map(Timestamp),
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False).map(Float),
    st.sampled_from([4, 8, 16]).flatmap(lambda size: st.binary(min_size=size, max_size=size)).map(Decimal),
    st.uuids(),
    st.text(max_size=300),
    st.binary(max_size=300),
    st.text(alphabet="abc:-_", max_size=300).map(Symbol),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(st.text(max_size=5), inner, max_size=5),
        st.builds(Described, st.integers(0, 2**64 - 1).map(ULong), inner),
    ),
    max_leaves=20,
)
ARRAYS = st.one_of(
    st.lists(st.text(max_size=300), min_size=1, max_size=5),
    st.lists(st.text(alphabet="abc", max_size=5).map(Symbol), min_size=1, max_size=5),
    st.lists(st.integers(0, 2**32 - 1).map(UInt), min_size=1, max_size=5),
    st.lists(st.uuids(), min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=1, max_size=5),
).map(Array)


@given(VALUES)
def test_a_value_survives_encoding_and_decoding_with_its_type(value):
    raw = encode(value)
    back, end = decode(raw)
    assert (back, end) == (value, len(raw))
    assert type(back) is type(value)
    assert skip(raw, 0) == len(raw)


@given(ARRAYS)
def test_an_array_survives_encoding_and_decoding(value):
    back, _ = decode(encode(value))
    assert back == value
    assert [type(item) for item in back] == [type(item) for item in value]


@given(VALUES, st.data())
def test_every_truncation_of_a_value_is_refused(value, data):
    raw = encode(value)
    cut = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(DecodeError):
        decode(raw[:cut])
    with pytest.raises(DecodeError):
        skip(raw[:cut], 0)


@given(st.binary(max_size=200))
def test_random_bytes_decode_or_are_refused_with_the_protocols_own_error(raw):
    for read in (decode, lambda raw: skip(raw, 0), lambda raw: list(sections(raw)), Message.decode):
        with contextlib.suppress(DecodeError):
            read(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00" * 10_000,  # descriptors of descriptors
        b"\xc0\x02\x01" * 10_000,  # lists of lists
        b"\xf0\x00\x00\x00\x06\xff\xff\xff\xff\x40\x40",  # 2**32 nulls in an array
        b"\xd0\x00\x00\x00\x04\xff\xff\xff\xff",  # 2**32 items in an empty list
        b"\xb0\xff\xff\xff\xff",  # 4 GB of binary
        b"\xc1\x02\x01\x40",  # half a map entry
        b"\xc1\x04\x02\x45\x40\x40",  # a list as a map's key
        b"\xa1\x01\xff",  # no UTF-8
        b"\xa3\x01\xff",  # no ASCII
        b"\xee\x00",  # no such constructor
    ],
)
def test_bytes_made_to_hurt_are_refused(raw):
    with pytest.raises(DecodeError):
        decode(raw)


def test_nesting_is_bounded_but_deep_enough():
    value: object = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert decode(encode(value))[0] == value


def test_a_value_out_of_its_types_range_is_refused():
    with pytest.raises(EncodeError):
        encode(2**63)
    with pytest.raises(EncodeError):
        encode(object())
    with pytest.raises(EncodeError):
        encode(Array([1, "a"]))


def test_the_sdks_codec_reads_what_this_one_writes_and_the_other_way_round():
    theirs = bytearray()
    encode_payload(
        theirs,
        SdkMessage(
            data=[b"body"],
            application_properties={"n": 1, "t": "text", "id": uuid.UUID(int=7)},
            message_annotations={b"x-opt-partition-key": "k"},
        ),
    )
    ours = Message.decode(bytes(theirs))
    assert ours.body == b"body"
    assert ours.application_properties == {"n": 1, "t": "text", "id": uuid.UUID(int=7)}
    back = decode_payload(memoryview(Message(application_properties={"n": 1}, body={"a": [1, 2]}).encode()))
    assert back.application_properties == {b"n": 1}
    assert back.value == {b"a": [1, 2]}


def test_sections_are_found_by_number_in_every_form():
    small = b"\x00\x53\x75\xa0\x01x"
    wide = b"\x00\x80" + struct.pack(">Q", DATA) + b"\xa0\x01y"
    named = b"\x00" + encode(Symbol("amqp:data:binary")) + b"\xa0\x01z"
    assert [section.code for section in sections(small + wide + named)] == [DATA] * 3
    with pytest.raises(DecodeError):
        list(sections(b"\x00\x53\x10\x45"))
    with pytest.raises(DecodeError):
        list(sections(b"\x40"))
