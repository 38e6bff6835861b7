"""Events as the SDK gives them, made ours."""

from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpAnnotatedMessage, AmqpMessageProperties

from service.errors import Retry
from service.source.hub import After
from service.source.receiver import EventHubReceiver, ReceiverOptions, convert


def _event(**message) -> EventData:
    """As it looks when it was received: the service's annotations are there."""
    event = EventData(b"")
    raw = AmqpAnnotatedMessage(**message)
    raw.annotations = {b"x-opt-sequence-number": 7, b"x-opt-offset": b"8589", b"x-opt-enqueued-time": 1_700_000_000_123}
    event._raw_amqp_message = raw
    return event


def test_a_data_body_is_joined_and_its_place_is_kept():
    (event,) = convert([_event(data_body=[b'{"id":', b'"a"}'])])
    assert (event.sequence, event.offset, event.enqueued_ms) == (7, "8589", 1_700_000_000_123)
    assert (event.body, event.body_kind, event.properties) == (b'{"id":"a"}', "data", {})


def test_other_bodies_are_named_and_empty():
    value, sequence = convert([_event(value_body={"id": "a"}), _event(sequence_body=[[1, 2]])])
    assert (value.body, value.body_kind) == (b"", "value")
    assert (sequence.body, sequence.body_kind) == (b"", "sequence")


def test_the_senders_properties_and_content_headers_are_kept():
    item = _event(data_body=b"{}")
    item.raw_amqp_message.application_properties = {b"op": b"delete"}
    item.raw_amqp_message.properties = AmqpMessageProperties(content_type=b"application/json", content_encoding=b"gzip")
    (event,) = convert([item])
    assert event.properties == {b"op": b"delete"}
    assert (event.content_type, event.content_encoding) == ("application/json", "gzip")


def test_content_headers_that_are_no_text_do_no_harm():
    item = _event(data_body=b"{}")
    item.raw_amqp_message.properties = AmqpMessageProperties(content_type=b"\xff", content_encoding=5)
    (event,) = convert([item])
    assert (event.content_type, event.content_encoding, event.body) == ("\ufffd", None, b"{}")


def test_fewer_events_are_fetched_ahead_the_larger_they_are():
    options = ReceiverOptions(prefetch=3000, prefetch_bytes=8 << 20)
    assert options.prefetch_for(1000) == 3000
    assert options.prefetch_for(100_000) == 83
    assert options.prefetch_for(1 << 30) == 1


def test_events_of_a_size_that_nobody_knows_are_fetched_with_care_and_then_as_they_turn_out():
    options = ReceiverOptions(prefetch=3000, prefetch_bytes=8 << 20)
    receiver = EventHubReceiver(None, "0", 1, After(-1), options=options, translate=Retry)
    assert receiver._prefetch == 512
    receiver._event_bytes = 1_000.0
    assert receiver.misfetches
    receiver._event_bytes = 20_000.0
    assert not receiver.misfetches
    receiver._event_bytes = 100_000.0
    assert receiver.misfetches


def test_a_receiver_that_knew_the_size_is_not_replaced_because_events_became_smaller():
    options = ReceiverOptions(prefetch=3000, prefetch_bytes=8 << 20)
    receiver = EventHubReceiver(None, "0", 1, After(-1), options=options, translate=Retry, event_bytes=100_000)
    receiver._event_bytes = 1_000.0
    assert not receiver.misfetches
