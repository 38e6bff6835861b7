"""Events as they are published, and as they are kept: encoded once, so that delivery copies bytes and nothing else."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NewType

from service.amqp.decode import decode
from service.amqp.encode import encode
from service.amqp.errors import DecodeError
from service.amqp.messages import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    SEQUENCE,
    VALUE,
    binary_bounds,
    section,
    sections,
)
from service.amqp.types import Symbol

Sequence = NewType("Sequence", int)

BATCH_FORMAT = 0x80013700
"""The message format of a batch: each data section is a whole message (SDK: `_pyamqp.constants`)."""

PARTITION_KEY = "x-opt-partition-key"

_OURS = ("x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time")
_SEQUENCE_KEY, _OFFSET_KEY, _TIME_KEY = (encode(Symbol(name)) for name in _OURS)
_HEAD = struct.Struct(f">4sII{len(_SEQUENCE_KEY)}sBq{len(_OFFSET_KEY)}sBB")
_TIME = struct.Struct(f">{len(_TIME_KEY)}sBq")
_U32 = struct.Struct(">I").pack
_FIXED_SIZE = _HEAD.size - 8 + _TIME.size


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that has no place yet: the sender's annotations, and everything behind them."""

    annotations: bytes
    annotation_count: int
    tail: bytes
    front: bytes = b""
    """The sender's delivery annotations, which stand before the others (3.2)."""

    def placed(self, sequence: int, offset: int, enqueued_ms: int) -> bytes:
        """The event as receivers get it, with the service's own annotations (SDK: `_constants.PROP_*`)."""
        offset_text = str(offset).encode()
        size = _FIXED_SIZE + len(offset_text) + len(self.annotations)
        return b"".join(
            (
                self.front,
                _HEAD.pack(
                    b"\x00\x53\x72\xd1",  # message annotations, a map of up to 2**32 octets
                    size,
                    6 + 2 * self.annotation_count,
                    _SEQUENCE_KEY,
                    0x81,  # long
                    sequence,
                    _OFFSET_KEY,
                    0xA1,  # string of up to 255 octets
                    len(offset_text),
                ),
                offset_text,
                _TIME.pack(_TIME_KEY, 0x83, enqueued_ms),  # timestamp
                self.annotations,
                self.tail,
            )
        )


@dataclass(frozen=True, slots=True)
class Publication:
    """What one transfer brings: events that go to one partition together."""

    partition_key: str | None
    events: list[NewEvent]


def publication(message: bytes, message_format: int) -> Publication:
    """The events of a sent message; DecodeError if it, or an event of a batch, is not a message."""
    if message_format != BATCH_FORMAT:
        event, key = _event(message, None)
        return Publication(key, [event])
    key, bodies = None, []
    for part in sections(message):
        if part.code == MESSAGE_ANNOTATIONS:
            key = _key(decode(message, part.value)[0])
        elif part.code == DATA:
            bodies.append(message[binary_bounds(message, part.value) : part.end])
        elif part.code in (SEQUENCE, VALUE):
            raise DecodeError("The body of a batch is not data: its events would be lost.")
    return Publication(key, [_event(body, key)[0] for body in bodies])


def new_event(body: bytes, partition_key: str | None = None, properties: dict[str, object] | None = None) -> NewEvent:
    """An event made in this process rather than sent."""
    return new_events([body], partition_key, properties)[0]


def new_events(
    bodies: Iterable[bytes], partition_key: str | None = None, properties: dict[str, object] | None = None
) -> list[NewEvent]:
    """Events made in this process, alike but for their bodies: what they share is encoded once."""
    head = (section(APPLICATION_PROPERTIES, dict(properties)) if properties else b"") + b"\x00\x53\x75\xb0"
    annotations, count = _annotations({}, partition_key)
    return [NewEvent(annotations, count, head + _U32(len(body)) + body) for body in bodies]


def _event(message: bytes, batch_key: str | None) -> tuple[NewEvent, str | None]:
    """Cuts a message. Its header ends here; its delivery annotations go on, as the SDK's live tests expect.

    pyamqp writes the delivery annotations last, so sections are taken in any order.
    """
    annotations: object = None
    front, tail = b"", []
    for part in sections(message):
        if part.code == MESSAGE_ANNOTATIONS:
            annotations = decode(message, part.value)[0]
        elif part.code == DELIVERY_ANNOTATIONS:
            front = message[part.start : part.end]
        elif part.code != HEADER:
            tail.append(message[part.start : part.end])
    key = _key(annotations) or batch_key
    encoded, count = _annotations(annotations, key)
    return NewEvent(encoded, count, b"".join(tail), front), key


def _key(annotations: object) -> str | None:
    key = annotations.get(PARTITION_KEY) if isinstance(annotations, dict) else None
    return key.decode(errors="replace") if isinstance(key, bytes) else None if key is None else str(key)


def _annotations(given: object, key: str | None) -> tuple[bytes, int]:
    if given is not None and not isinstance(given, dict):
        raise DecodeError("The message annotations are not a map.")
    kept = {name: value for name, value in (given or {}).items() if name not in _OURS and name != PARTITION_KEY}
    if key is not None:
        kept[Symbol(PARTITION_KEY)] = key
    return b"".join([encode(name) + encode(value) for name, value in kept.items()]), len(kept)
