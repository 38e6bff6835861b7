import io
import random
import string

import fastavro
import pytest
from azure.eventhub import EventData
from azure.eventhub._buffered_producer._partition_resolver import compute_hash
from azure.eventhub._pyamqp._decode import decode_payload

from service.amqp.encode import encode
from service.amqp.errors import DecodeError
from service.amqp.messages import DATA, DELIVERY_ANNOTATIONS, HEADER, MESSAGE_ANNOTATIONS, section
from service.amqp.types import Described, Symbol, Timestamp, ULong
from service.local.event_hubs.capture_avro import SCHEMA, capture_file, record, us_time
from service.local.event_hubs.events import BATCH_FORMAT, new_event, publication
from service.local.event_hubs.positions import EARLIEST, LATEST, By, StartPosition, start_position
from service.local.event_hubs.routing import lookup3, partition_index


def test_a_stored_event_reads_as_the_sdk_expects():
    raw = new_event(b"body", "key", {"n": 5}).placed(7, 123, 1_600_000_000_000)
    event = EventData._from_message(message=decode_payload(memoryview(raw)))
    assert event.body_as_str() == "body"
    assert (event.sequence_number, event.offset, event.partition_key) == (7, "123", b"key")
    assert event.enqueued_time.timestamp() == 1_600_000_000
    assert event.properties == {b"n": 5}


def test_a_sent_message_keeps_its_annotations_but_not_the_header_nor_a_false_place():
    sent = (
        section(HEADER, [True])
        + section(MESSAGE_ANNOTATIONS, {Symbol("x-custom"): 1, Symbol("x-opt-sequence-number"): 99})
        + section(DATA, b"body")
    )
    published = publication(sent, 0)
    raw = published.events[0].placed(0, 0, 0)
    message = decode_payload(memoryview(raw))
    assert message.message_annotations[b"x-custom"] == 1
    assert message.message_annotations[b"x-opt-sequence-number"] == 0
    assert message.header is None
    assert published.partition_key is None


def test_sections_in_any_order_and_the_senders_delivery_annotations_survive():
    """pyamqp writes the delivery annotations behind the body."""
    body, late = section(DATA, b"body"), section(DELIVERY_ANNOTATIONS, {Symbol("x"): 1})
    raw = publication(section(HEADER, [True]) + body + late, 0).events[0].placed(5, 0, 0)
    message = decode_payload(memoryview(raw))
    assert message.delivery_annotations == {b"x": 1}
    assert message.data == [b"body"]
    assert message.message_annotations[b"x-opt-sequence-number"] == 5


def test_a_batch_is_cut_into_its_events_which_take_the_batchs_key():
    inner = [section(DATA, b"a"), section(DATA, b"b" * 300)]
    batch = section(MESSAGE_ANNOTATIONS, {Symbol("x-opt-partition-key"): "k"}) + b"".join(
        section(DATA, one) for one in inner
    )
    published = publication(batch, BATCH_FORMAT)
    assert published.partition_key == "k"
    assert [event.tail for event in published.events] == inner
    assert record(published.events[0].placed(0, 0, 0))["SystemProperties"] == {"x-opt-partition-key": "k"}


@pytest.mark.parametrize("raw", [b"junk", section(DATA, b"no message inside"), section(DATA, "no binary")])
def test_a_batch_of_something_else_is_refused(raw):
    with pytest.raises(DecodeError):
        publication(raw, BATCH_FORMAT)


def source(expression, descriptor=None):
    filters = {Symbol("apache.org:selector-filter:string"): Described(descriptor or Symbol("x"), expression)}
    return Described(ULong(0x28), ["address", None, None, None, None, None, None, filters])


@pytest.mark.parametrize(
    ("expression", "position"),
    [
        ("amqp.annotation.x-opt-offset > '-1'", EARLIEST),
        ("amqp.annotation.x-opt-offset > '@latest'", LATEST),
        ("amqp.annotation.x-opt-offset >= '12'", StartPosition(By.OFFSET, 12, inclusive=True)),
        (b"amqp.annotation.x-opt-sequence-number > '5'", StartPosition(By.SEQUENCE, 5)),
        ("amqp.annotation.x-opt-enqueued-time >= '99'", StartPosition(By.TIME, 99, inclusive=True)),
    ],
)
def test_the_sdks_filters_are_understood(expression, position):
    assert start_position(source(expression)) == position
    assert start_position(source(expression, ULong(0x468C00000004))) == position


def test_without_a_filter_a_receiver_starts_at_the_beginning():
    assert start_position(Described(ULong(0x28), ["address"])) == EARLIEST
    assert start_position(None) == EARLIEST


@pytest.mark.parametrize("expression", ["", "x > 1", "amqp.annotation.x-opt-offset > no offset", "a" * 10_000])
def test_any_other_filter_is_refused(expression):
    with pytest.raises(Exception, match="is not a valid amqp filter"):
        start_position(source(expression))


def test_partition_keys_hash_as_in_the_sdks():
    choose = random.Random(5)
    for length in range(1, 40):
        key = "".join(choose.choices(string.printable, k=length))
        assert lookup3(key.encode()) == compute_hash(key)
        assert 0 <= partition_index(key, 7) < 7


def test_capture_writes_the_services_schema_and_times():
    raw = new_event(b"{}", "k", {"i": 1, "d": 0.5, "s": "x", "b": b"\x00", "t": True, "n": None}).placed(
        3, 44, 1_479_314_651_000
    )
    file = capture_file([raw])
    (got,) = fastavro.reader(io.BytesIO(file))
    assert got == {
        "SequenceNumber": 3,
        "Offset": "44",
        "EnqueuedTimeUtc": "11/16/2016 4:44:11 PM",
        "SystemProperties": {"x-opt-partition-key": "k"},
        "Properties": {"i": 1, "d": 0.5, "s": "x", "b": b"\x00", "t": "True", "n": None},
        "Body": b"{}",
    }
    assert b"avro.codec\x08null" in file
    assert SCHEMA["name"] == "EventData"


def test_capture_of_nothing_is_a_file_with_the_schema_only():
    assert list(fastavro.reader(io.BytesIO(capture_file([])))) == []


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "1/1/1970 12:00:00 AM"), (43_200_000, "1/1/1970 12:00:00 PM"), (46_923_000, "1/1/1970 1:02:03 PM")],
)
def test_capture_times_have_the_us_form(milliseconds, text):
    assert us_time(milliseconds) == text


def test_capture_keeps_an_events_system_properties_and_a_body_of_no_bytes():
    tail = section(0x73, ["id-1", None, None, None, None, None, Symbol("text/json"), None, Timestamp(5)])
    raw = publication(tail + b"\x00\x53\x77" + encode("value body"), 0).events[0].placed(0, 0, 0)
    got = record(raw)
    assert got["SystemProperties"]["message-id"] == "id-1"
    assert got["SystemProperties"]["content-type"] == "text/json"
    assert got["Body"] is None
