"""Events as the Avro file that Capture writes: the schema that files of the service itself have.

(Of 2023; one of 2016 has no null among the values of Properties. Both are quoted in public repositories.)
"""

import io
from collections.abc import Iterable
from datetime import UTC, datetime

import fastavro

from service.amqp.decode import decode
from service.amqp.messages import (
    APPLICATION_PROPERTIES,
    DATA,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    sections,
)

_PROPERTY = ["long", "double", "string", "bytes"]

SCHEMA = {
    "type": "record",
    "name": "EventData",
    "namespace": "Microsoft.ServiceBus.Messaging",
    "fields": [
        {"name": "SequenceNumber", "type": "long"},
        {"name": "Offset", "type": "string"},
        {"name": "EnqueuedTimeUtc", "type": "string"},
        {"name": "SystemProperties", "type": {"type": "map", "values": _PROPERTY}},
        {"name": "Properties", "type": {"type": "map", "values": [*_PROPERTY, "null"]}},
        {"name": "Body", "type": ["null", "bytes"]},
    ],
}
_PARSED = fastavro.parse_schema(SCHEMA)

_PLACE = ("x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time")
_PROPERTY_NAMES = (
    *("message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding"),
    *("absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id"),
)
"""The fields of a message's properties in order (AMQP 3.2.4)."""


def capture_file(events: Iterable[bytes]) -> bytes:
    """The file for these events; without events it has the schema only."""
    out = io.BytesIO()
    fastavro.writer(out, _PARSED, (record(event) for event in events), codec="null")
    return out.getvalue()


def record(event: bytes) -> dict[str, object]:
    """One stored event as a record of the schema."""
    parts: dict[int, object] = {}
    body: list[bytes] = []
    for part in sections(event):
        value, _ = decode(event, part.value)
        parts[part.code] = value
        if part.code == DATA and isinstance(value, bytes):
            body.append(value)
    annotations = _map(parts.get(MESSAGE_ANNOTATIONS))
    place = [annotations.pop(name) for name in _PLACE]
    enqueued_ms = place[2]
    fields = parts.get(PROPERTIES)
    named = dict(zip(_PROPERTY_NAMES, fields if isinstance(fields, list) else [], strict=False))
    return {
        "SequenceNumber": place[0],
        "Offset": place[1],
        "EnqueuedTimeUtc": us_time(enqueued_ms if isinstance(enqueued_ms, int) else 0),
        "SystemProperties": {
            name: _member(value) for name, value in (annotations | named).items() if value is not None
        },
        "Properties": {name: _member(value) for name, value in _map(parts.get(APPLICATION_PROPERTIES)).items()},
        "Body": b"".join(body) if body else None,
    }


def us_time(milliseconds: int) -> str:
    """Such as `11/16/2016 4:44:11 PM`: UTC, without saying so, as the service writes it."""
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{at.month}/{at.day}/{at.year} {at.hour % 12 or 12}:{at:%M:%S} {'AM' if at.hour < 12 else 'PM'}"


def _map(value: object) -> dict[str, object]:
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else {}


def _member(value: object) -> object:
    """The schema knows numbers, text, bytes and null; whatever else becomes text."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return int(value)
    if isinstance(value, float):
        return float(value)
    return value if value is None or isinstance(value, bytes) else str(value)
