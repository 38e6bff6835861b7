import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.amqp.encode import encode
from service.amqp.errors import INVALID_FIELD, AmqpError, DecodeError, FramingError
from service.amqp.frames import AMQP_HEADER, HEARTBEAT, SASL_HEADER, Frame, FrameReader, ProtocolHeader, frame
from service.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Flow,
    Open,
    SaslInit,
    Transfer,
    performative,
    symbols,
)
from service.amqp.types import Array, Described, Symbol, UInt, ULong


def read_all(reader):
    items = []
    while (item := reader.next()) is not None:
        items.append(item)
    return items


@given(st.lists(st.integers(1, 40), max_size=40))
def test_frames_come_out_the_same_however_the_bytes_are_cut(cuts):
    stream = AMQP_HEADER + frame(0, Open("me")) + HEARTBEAT + frame(3, Transfer(1, 2, b"t"), b"payload")
    reader, items = FrameReader(4096), []
    for size in [*cuts, len(stream)]:
        piece, stream = stream[:size], stream[size:]
        reader.feed(piece)
        items += read_all(reader)
    assert [type(item) for item in items] == [ProtocolHeader, Frame, Frame, Frame]
    assert items[2].body == b""
    body, payload = items[3].open()
    assert (items[3].channel, body.handle, body.delivery_id, payload) == (3, 1, 2, b"payload")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x00\x00\x07\x02\x00\x00\x00",  # smaller than its own header
        b"\x00\x00\x20\x00\x02\x00\x00\x00",  # larger than agreed
        b"\x00\x00\x00\x08\x01\x00\x00\x00",  # the body would start inside the header
        b"\x00\x00\x00\x08\x03\x00\x00\x00",  # the body would start behind the end
        b"\x00\x00\x00\x08\x02\x07\x00\x00",  # no such type
    ],
)
def test_bytes_that_are_no_frame_are_a_framing_error(raw):
    reader = FrameReader(4096)
    reader.feed(AMQP_HEADER + raw)
    assert reader.next() == ProtocolHeader(AMQP_HEADER)
    with pytest.raises(FramingError) as caught:
        reader.next()
    assert caught.value.condition == "amqp:connection:framing-error"


def test_a_header_is_looked_for_again_after_sasl():
    reader = FrameReader(4096)
    reader.feed(SASL_HEADER + AMQP_HEADER)
    assert reader.next() == ProtocolHeader(SASL_HEADER)
    reader.expect_header()
    assert reader.next() == ProtocolHeader(AMQP_HEADER)


def test_a_first_byte_that_starts_no_header_is_refused_at_once():
    reader = FrameReader(4096)
    reader.feed(b"GET")
    with pytest.raises(FramingError):
        reader.next()


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        *[(Open("c"), 10), (Begin(0, 0, 1, 1), 8), (Attach("a", 0, role=True), 14), (Flow(0, 1, 0, 1), 11)],
        *[(Transfer(0), 11), (Detach(0), 3), (Close(), 1)],
    ],
)
def test_performatives_are_written_with_every_field_because_pyamqp_reads_by_position(body, fields):
    value = decode_body(body)
    assert len(value.value) == fields
    assert performative(value) == body


def test_missing_trailing_fields_are_null():
    assert performative(Described(ULong(0x16), [UInt(7)])) == Detach(7)
    assert performative(Described(Symbol("amqp:detach:list"), [UInt(7)])) == Detach(7)


@pytest.mark.parametrize(
    "value",
    [
        Described(ULong(0x10), []),  # an open without container
        Described(ULong(0x10), [1]),
        Described(ULong(0x11), [None, None, UInt(1), UInt(1)]),
        Described(ULong(0x12), ["a", -1, True]),
        Described(ULong(0x14), [True]),
        Described(ULong(0x41), [Symbol("PLAIN"), "no bytes"]),
    ],
)
def test_a_field_of_the_wrong_type_is_an_invalid_field(value):
    with pytest.raises(DecodeError) as caught:
        performative(value)
    assert caught.value.condition == INVALID_FIELD


@pytest.mark.parametrize(
    "value", [None, [], Described(ULong(0x99), []), Described(ULong(0x18), [None, None]), Described(1, 2)]
)
def test_what_is_no_performative_is_a_decode_error(value):
    with pytest.raises(DecodeError):
        performative(value)


def test_sasl_init_keeps_its_response():
    assert performative(decode_body(SaslInit("PLAIN", b"\0a\0b"))).initial_response == b"\0a\0b"


def test_symbols_are_none_one_or_several():
    assert symbols(None) == ()
    assert symbols(Symbol("a")) == ("a",)
    assert symbols(Array([Symbol("a"), Symbol("b")])) == ("a", "b")


def test_an_error_names_its_condition_on_the_wire():
    wire = AmqpError("why", "amqp:not-found").to_wire()
    assert encode(wire)[:3] == b"\x00\x53\x1d"
    assert wire.value[:2] == ["amqp:not-found", "why"]


def decode_body(body):
    from service.amqp.decode import decode

    return decode(body.encode())[0]
