"""The performatives that open, steer and close connections, sessions and links (2.7), and those of SASL (5.3.3).

They are always written with every field of the standard, trailing nulls included: pyamqp, the transport inside
azure-eventhub, reads fields by position without looking at the length of the list.
"""

from dataclasses import dataclass, fields
from typing import ClassVar, Self

from service.amqp.encode import encode
from service.amqp.errors import INVALID_FIELD, DecodeError
from service.amqp.types import Array, Described, Symbol, UByte, UInt, ULong, UShort

SENDER, RECEIVER = False, True
"""The `role` of an attach or disposition."""

MAX_UINT = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Performative:
    """A described list. `WIRE` gives each field's type in order; those at `REQUIRED` may not be null."""

    CODE: ClassVar[int]
    WIRE: ClassVar[tuple[type, ...]]
    REQUIRED: ClassVar[range] = range(0)

    def encode(self) -> bytes:
        """The described list, with all its fields."""
        values = [
            _to_wire(getattr(self, field.name), wire) for field, wire in zip(fields(self), self.WIRE, strict=True)
        ]
        return encode(Described(ULong(self.CODE), values))

    @classmethod
    def from_values(cls, values: list[object]) -> Self:
        """The performative with these fields; missing ones are null. DecodeError names a field of the wrong type."""
        names = [field.name for field in fields(cls)]
        if len(values) > len(names):
            raise DecodeError(f"A {cls.__name__.lower()} of {len(values)} fields.")
        for index, (name, wire) in enumerate(zip(names, cls.WIRE, strict=True)):
            value = values[index] if index < len(values) else None
            if value is None and index in cls.REQUIRED:
                raise DecodeError(f"The {cls.__name__.lower()} has no {name}.", INVALID_FIELD)
            if value is not None and not _fits(value, wire):
                raise DecodeError(f"The {cls.__name__.lower()}'s {name} is not of its type.", INVALID_FIELD)
        return cls(*values)


def _to_wire(value: object, wire: type) -> object:
    if value is None or isinstance(value, wire):
        return value
    made: object = wire(value)
    return made


def _fits(value: object, wire: type) -> bool:
    if wire is object:
        return True
    if wire in _UNSIGNED:
        # Peers differ in the width of integers they write; the range is what matters.
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _UNSIGNED[wire]
    return isinstance(value, wire)


_UNSIGNED: dict[type, int] = {UByte: 255, UShort: 65535, UInt: MAX_UINT, ULong: 2**64 - 1}


@dataclass(frozen=True, slots=True)
class Open(Performative):
    """Begins a connection: who, and what limits."""

    CODE: ClassVar[int] = 0x10
    WIRE: ClassVar[tuple[type, ...]] = (str, str, UInt, UShort, UInt, object, object, object, object, dict)
    REQUIRED: ClassVar[range] = range(1)
    container_id: str
    hostname: str | None = None
    max_frame_size: int | None = None
    channel_max: int | None = None
    idle_time_out: int | None = None
    outgoing_locales: object = None
    incoming_locales: object = None
    offered_capabilities: object = None
    desired_capabilities: object = None
    properties: dict[object, object] | None = None


@dataclass(frozen=True, slots=True)
class Begin(Performative):
    """Begins a session on a channel, with its transfer windows."""

    CODE: ClassVar[int] = 0x11
    WIRE: ClassVar[tuple[type, ...]] = (UShort, UInt, UInt, UInt, UInt, object, object, dict)
    REQUIRED: ClassVar[range] = range(1, 4)
    remote_channel: int | None
    next_outgoing_id: int
    incoming_window: int
    outgoing_window: int
    handle_max: int | None = None
    offered_capabilities: object = None
    desired_capabilities: object = None
    properties: dict[object, object] | None = None


@dataclass(frozen=True, slots=True)
class Attach(Performative):
    """Attaches a link: a name, a handle, a direction, and the two ends."""

    CODE: ClassVar[int] = 0x12
    WIRE: ClassVar[tuple[type, ...]] = (
        *(str, UInt, bool, UByte, UByte, Described, Described),
        *(object, bool, UInt, ULong, object, object, dict),
    )
    REQUIRED: ClassVar[range] = range(3)
    name: str
    handle: int
    role: bool
    snd_settle_mode: int | None = None
    rcv_settle_mode: int | None = None
    source: Described | None = None
    target: Described | None = None
    unsettled: object = None
    incomplete_unsettled: bool | None = None
    initial_delivery_count: int | None = None
    max_message_size: int | None = None
    offered_capabilities: object = None
    desired_capabilities: object = None
    properties: dict[object, object] | None = None


@dataclass(frozen=True, slots=True)
class Flow(Performative):
    """Renews the session's windows, and with a handle the credit of a link."""

    CODE: ClassVar[int] = 0x13
    WIRE: ClassVar[tuple[type, ...]] = (UInt, UInt, UInt, UInt, UInt, UInt, UInt, UInt, bool, bool, dict)
    REQUIRED: ClassVar[range] = range(1, 4)
    next_incoming_id: int | None
    incoming_window: int
    next_outgoing_id: int
    outgoing_window: int
    handle: int | None = None
    delivery_count: int | None = None
    link_credit: int | None = None
    available: int | None = None
    drain: bool | None = None
    echo: bool | None = None
    properties: dict[object, object] | None = None


@dataclass(frozen=True, slots=True)
class Transfer(Performative):
    """Carries a message, or with `more` a part of one."""

    CODE: ClassVar[int] = 0x14
    WIRE: ClassVar[tuple[type, ...]] = (UInt, UInt, bytes, UInt, bool, bool, UByte, object, bool, bool, bool)
    REQUIRED: ClassVar[range] = range(1)
    handle: int
    delivery_id: int | None = None
    delivery_tag: bytes | None = None
    message_format: int | None = None
    settled: bool | None = None
    more: bool | None = None
    rcv_settle_mode: int | None = None
    state: object = None
    resume: bool | None = None
    aborted: bool | None = None
    batchable: bool | None = None


@dataclass(frozen=True, slots=True)
class Disposition(Performative):
    """Tells the outcome of deliveries."""

    CODE: ClassVar[int] = 0x15
    WIRE: ClassVar[tuple[type, ...]] = (bool, UInt, UInt, bool, object, bool)
    REQUIRED: ClassVar[range] = range(2)
    role: bool
    first: int
    last: int | None = None
    settled: bool | None = None
    state: object = None
    batchable: bool | None = None


@dataclass(frozen=True, slots=True)
class Detach(Performative):
    """Takes a link away."""

    CODE: ClassVar[int] = 0x16
    WIRE: ClassVar[tuple[type, ...]] = (UInt, bool, Described)
    REQUIRED: ClassVar[range] = range(1)
    handle: int
    closed: bool | None = None
    error: Described | None = None


@dataclass(frozen=True, slots=True)
class End(Performative):
    """Ends a session."""

    CODE: ClassVar[int] = 0x17
    WIRE: ClassVar[tuple[type, ...]] = (Described,)
    error: Described | None = None


@dataclass(frozen=True, slots=True)
class Close(Performative):
    """Ends a connection."""

    CODE: ClassVar[int] = 0x18
    WIRE: ClassVar[tuple[type, ...]] = (Described,)
    error: Described | None = None


@dataclass(frozen=True, slots=True)
class SaslMechanisms(Performative):
    """What the server offers. An array even when there is one: uamqp insists."""

    CODE: ClassVar[int] = 0x40
    WIRE: ClassVar[tuple[type, ...]] = (object,)
    mechanisms: object


@dataclass(frozen=True, slots=True)
class SaslInit(Performative):
    """What the client chose, with its first response."""

    CODE: ClassVar[int] = 0x41
    WIRE: ClassVar[tuple[type, ...]] = (Symbol, bytes, str)
    REQUIRED: ClassVar[range] = range(1)
    mechanism: str
    initial_response: bytes | None = None
    hostname: str | None = None


@dataclass(frozen=True, slots=True)
class SaslOutcome(Performative):
    """How it ended: 0 is good, 1 is refused (5.3.3.6)."""

    CODE: ClassVar[int] = 0x44
    WIRE: ClassVar[tuple[type, ...]] = (UByte, bytes)
    REQUIRED: ClassVar[range] = range(1)
    code: int
    additional_data: bytes | None = None


_BY_CODE: dict[int, type[Performative]] = {
    kind.CODE: kind
    for kind in (
        *(Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close),
        *(SaslMechanisms, SaslInit, SaslOutcome),
    )
}
_BY_NAME: dict[str, int] = {
    f"amqp:{name}:list": code
    for code, name in (
        *((0x10, "open"), (0x11, "begin"), (0x12, "attach"), (0x13, "flow"), (0x14, "transfer"), (0x15, "disposition")),
        *((0x16, "detach"), (0x17, "end"), (0x18, "close")),
        *((0x40, "sasl-mechanisms"), (0x41, "sasl-init"), (0x44, "sasl-outcome")),
    )
}


def performative(value: object) -> Performative:
    """The performative that a decoded value stands for, by its number or its symbol."""
    if not isinstance(value, Described) or not isinstance(value.value, list):
        raise DecodeError("The frame's body is not a performative.")
    code = _BY_NAME.get(value.descriptor) if isinstance(value.descriptor, Symbol) else value.descriptor
    kind = _BY_CODE.get(code) if isinstance(code, int) else None
    if kind is None:
        raise DecodeError(f"There is no performative {value.descriptor!r}.")
    return kind.from_values(value.value)


def symbols(value: object) -> tuple[str, ...]:
    """The symbols of a field that may hold none, one, or an array of them (1.4, `multiple`)."""
    if isinstance(value, Array | list):
        return tuple(str(item) for item in value)
    return () if value is None else (str(value),)
