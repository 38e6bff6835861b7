"""Whatever AMQP allows a sender to put beside a body, the body arrives."""

import struct
import uuid

import pytest
from azure.eventhub._pyamqp._decode import decode_payload
from azure.eventhub._pyamqp.aio import _receiver_async

from service.amqp import messages
from service.amqp.encode import encode
from service.amqp.messages import APPLICATION_PROPERTIES, DATA, MESSAGE_ANNOTATIONS, PROPERTIES, VALUE, section
from service.amqp.types import Array, Char, Decimal, Described, Symbol, Timestamp, ULong
from service.source import payloads, receiver
from service.source.payloads import read

PLACE = section(MESSAGE_ANNOTATIONS, {Symbol("x-opt-sequence-number"): 7, Symbol("x-opt-offset"): "8589"})
BODY = section(DATA, b'{"id":"a"}')


def _properties(value: bytes, key: bytes = encode("x")) -> bytes:
    """Application properties with one entry, each as encoded by hand."""
    return b"\x00\x53\x74\xd1" + struct.pack(">II", 4 + len(key) + len(value), 2) + key + value


def _received(*sections: bytes):
    message = read(memoryview(PLACE + b"".join(sections)))
    assert message.message_annotations == {b"x-opt-sequence-number": 7, b"x-opt-offset": b"8589"}
    return message


UNKNOWN_TO_PYAMQP = {
    "char": _properties(encode(Char(0x41))),
    "decimal32": _properties(encode(Decimal(b"\x22\x50\x00\x01"))),
    "decimal64": _properties(encode(Decimal(bytes(8)))),
    "a list as a key": _properties(encode(1), key=encode([1])),
    "an array of described values": _properties(b"\xe0\x09\x01\x00\x53\x10\xa1\x03abc"),
    "properties that are a map": b"\x00\x53\x73" + encode({"a": 1}),
    "a property too many": section(PROPERTIES, [None] * 14),
}


@pytest.mark.parametrize("odd", UNKNOWN_TO_PYAMQP.values(), ids=UNKNOWN_TO_PYAMQP)
def test_an_event_that_the_sdk_cannot_read_keeps_place_and_body(odd):
    assert _received(odd, BODY).data == [b'{"id":"a"}']


def test_the_sdk_alone_fails_on_such_an_event():
    """Once it does not, `payloads` can go."""
    with pytest.raises(TypeError):
        decode_payload(memoryview(UNKNOWN_TO_PYAMQP["char"] + BODY))


@pytest.mark.parametrize(
    "value",
    [uuid.uuid4(), Timestamp(-5), Symbol("s"), [1, ["a"]], {"a": {"b": b"\xff"}}, Array([1, 2]), Decimal(b"\xff" * 16)],
    ids=lambda value: type(value).__name__,
)
def test_values_of_every_other_type_do_not_hide_the_body(value):
    assert _received(_properties(encode(value)), BODY).data == [b'{"id":"a"}']


def test_properties_read_in_our_way_look_as_the_sdk_makes_them():
    odd = {"char": Char(0x41), "text": "é", "list": ["a", Described(Symbol("d"), "b")], "number": ULong(5)}
    message = _received(section(PROPERTIES, ["id", None, "to"]), section(APPLICATION_PROPERTIES, odd), BODY)
    assert message.application_properties == {
        b"char": 0x41,
        b"text": "é".encode(),
        b"list": [b"a", b"b"],
        b"number": 5,
    }
    assert (message.properties.message_id, message.properties.to) == (b"id", b"to")


@pytest.mark.parametrize(
    "descriptor", [b"\x80" + bytes(7) + b"\x75", encode(Symbol("amqp:data:binary"))], ids=["wide number", "name"]
)
def test_a_body_whose_section_is_described_in_another_form_is_found(descriptor):
    assert _received(b"\x00" + descriptor + encode(b"{}")).data == [b"{}"]


def test_several_bodies_and_bodies_of_other_kinds_stay_what_they_are():
    assert _received(UNKNOWN_TO_PYAMQP["char"], BODY, BODY).data == [b'{"id":"a"}'] * 2
    assert _received(UNKNOWN_TO_PYAMQP["char"], section(VALUE, "v")).value == b"v"
    assert _received(UNKNOWN_TO_PYAMQP["char"], section(messages.SEQUENCE, [1])).sequence == [[1]]
    assert _received(section(VALUE, None)).data is None


def test_the_sdks_receiver_reads_this_way():
    assert receiver.install is payloads.install
    assert _receiver_async.decode_payload is read
