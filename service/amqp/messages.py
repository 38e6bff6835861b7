"""Messages (3.2): a run of described sections, cut without decoding what nobody asks for."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from service.amqp.decode import Buffer, decode, skip
from service.amqp.encode import encode
from service.amqp.errors import DecodeError
from service.amqp.types import Described, Symbol, ULong

HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS = 0x70, 0x71, 0x72
PROPERTIES, APPLICATION_PROPERTIES = 0x73, 0x74
DATA, SEQUENCE, VALUE, FOOTER = 0x75, 0x76, 0x77, 0x78

_NAMES = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}


@dataclass(frozen=True, slots=True)
class Section:
    """Where a section lies in its message: `start` of the section, `value` of what it describes, `end`."""

    code: int
    start: int
    value: int
    end: int


def sections(message: Buffer) -> Iterator[Section]:
    """The sections of an encoded message, in order; DecodeError where they stop being sections."""
    position, size = 0, len(message)
    while position < size:
        if message[position] != 0:
            raise DecodeError(f"Byte {position} of the message does not start a section.")
        value = skip(message, position + 1)
        end = skip(message, value)
        # Nearly every peer writes the small ulong; the others are decoded.
        code = message[position + 2] if message[position + 1] == 0x53 else _code(decode(message, position + 1)[0])
        if not HEADER <= code <= FOOTER:
            raise DecodeError(f"There is no message section 0x{code:x}.")
        yield Section(code, position, value, end)
        position = end


def _code(descriptor: object) -> int:
    if isinstance(descriptor, Symbol):
        return _NAMES.get(descriptor, 0)
    return int(descriptor) if isinstance(descriptor, ULong) else 0


def binary_bounds(buffer: Buffer, position: int) -> int:
    """The position of the first byte inside the binary that starts at `position`."""
    if buffer[position] == 0xA0:
        return position + 2
    if buffer[position] == 0xB0:
        return position + 5
    raise DecodeError("A data section holds something other than binary.")


@dataclass(frozen=True, slots=True)
class Message:
    """A message decoded whole; for requests and replies, not for the stream of events."""

    properties: list[object] = field(default_factory=list)
    application_properties: dict[object, object] = field(default_factory=dict)
    annotations: dict[object, object] = field(default_factory=dict)
    body: object = None

    @property
    def message_id(self) -> object:
        """The first of the properties (3.2.4)."""
        return self.properties[0] if self.properties else None

    @property
    def reply_to(self) -> object:
        """The fifth of the properties (3.2.4)."""
        return self.properties[4] if len(self.properties) > 4 else None

    @classmethod
    def decode(cls, raw: Buffer) -> "Message":
        """The message in `raw`; several data sections are joined."""
        parts: dict[int, object] = {}
        for section in sections(raw):
            value, _ = decode(raw, section.value)
            if section.code == DATA and isinstance(value, bytes):
                before = parts.get(DATA, b"")
                value = (before if isinstance(before, bytes) else b"") + value
            parts[section.code] = value
        return cls(
            _as_list(parts.get(PROPERTIES)),
            _as_map(parts.get(APPLICATION_PROPERTIES)),
            _as_map(parts.get(MESSAGE_ANNOTATIONS)),
            parts.get(VALUE, parts.get(DATA)),
        )

    def encode(self) -> bytes:
        """The message as sections, its body as an amqp-value."""
        out = []
        if self.annotations:
            out.append(section(MESSAGE_ANNOTATIONS, self.annotations))
        if self.properties:
            out.append(section(PROPERTIES, self.properties))
        if self.application_properties:
            out.append(section(APPLICATION_PROPERTIES, self.application_properties))
        out.append(section(VALUE, self.body))
        return b"".join(out)


def section(code: int, value: object) -> bytes:
    """One encoded section."""
    return encode(Described(ULong(code), value))


def _as_list(value: object) -> list[object]:
    if value is not None and not isinstance(value, list):
        raise DecodeError("The message's properties are not a list.")
    return value or []


def _as_map(value: object) -> dict[object, object]:
    if value is not None and not isinstance(value, dict):
        raise DecodeError("A message section that must be a map is none.")
    return value or {}
