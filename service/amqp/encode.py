"""Values to bytes (1.2)."""

import struct
import uuid
from collections.abc import Callable

from service.amqp.errors import EncodeError
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


def encode(value: object) -> bytes:
    """`value` as AMQP: plain Python types as described in `service.amqp.types`, small forms where they exist."""
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise EncodeError(f"A {type(value).__name__} has no AMQP encoding.")
    try:
        return writer(value)
    except struct.error as error:
        raise EncodeError(f"{value!r} does not fit its AMQP type: {error}") from None


def _fixed(code: int, pattern: str) -> Callable[[object], bytes]:
    pack = struct.Struct(">B" + pattern).pack
    return lambda value: pack(code, value)


def _small(zero: bytes | None, small: int, wide: Callable[[object], bytes]) -> Callable[[int], bytes]:
    """Unsigned integers have forms of no, one and all octets."""

    def write(value: int) -> bytes:
        if value == 0 and zero is not None:
            return zero
        return bytes((small, value)) if 0 <= value < 256 else wide(value)

    return write


def _variable(short: int, long: int, raw: bytes) -> bytes:
    size = len(raw)
    return bytes((short, size)) + raw if size < 256 else struct.pack(">BI", long, size) + raw


def _list(values: list[object] | tuple[object, ...]) -> bytes:
    if not values:
        return b"\x45"
    return _compound(0xC0, 0xD0, len(values), b"".join([encode(value) for value in values]))


def _map(values: dict[object, object]) -> bytes:
    return _compound(0xC1, 0xD1, 2 * len(values), b"".join([encode(k) + encode(v) for k, v in values.items()]))


def _compound(short: int, long: int, count: int, body: bytes) -> bytes:
    if len(body) < 255 and count < 256:
        return bytes((short, len(body) + 1, count)) + body
    return struct.pack(">BII", long, len(body) + 4, count) + body


def _array(values: Array) -> bytes:
    """An array writes its constructor once, so every item takes the widest form of its type."""
    kinds = {type(value) for value in values}
    if len(kinds) > 1:
        raise EncodeError("The items of an array must be of one type.")
    code, body = _ARRAY_ITEMS.get(kinds.pop(), (None, None)) if kinds else (0x40, lambda _: b"")
    if code is None or body is None:
        raise EncodeError("Arrays of this type are not written here.")
    items = b"".join([body(value) for value in values])
    return struct.pack(">BIIB", 0xF0, len(items) + 5, len(values), code) + items


def _wide_text(value: object) -> bytes:
    raw = str(value).encode()
    return struct.pack(">I", len(raw)) + raw


def _wide_binary(value: object) -> bytes:
    raw: bytes = bytes(value)  # type: ignore[call-overload]
    return struct.pack(">I", len(raw)) + raw


def _decimal(value: Decimal) -> bytes:
    codes = {4: b"\x74", 8: b"\x84", 16: b"\x94"}
    if len(value) not in codes:
        raise EncodeError(f"A decimal of {len(value)} octets does not exist.")
    return codes[len(value)] + bytes(value)


_ulong, _uint, _long = _fixed(0x80, "Q"), _fixed(0x70, "I"), _fixed(0x81, "q")

_WRITERS: dict[type, Callable[..., bytes]] = {
    type(None): lambda _: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    str: lambda value: _variable(0xA1, 0xB1, value.encode()),
    Symbol: lambda value: _variable(0xA3, 0xB3, value.encode("ascii", "replace")),
    bytes: lambda value: _variable(0xA0, 0xB0, value),
    bytearray: lambda value: _variable(0xA0, 0xB0, bytes(value)),
    memoryview: lambda value: _variable(0xA0, 0xB0, bytes(value)),
    UByte: _fixed(0x50, "B"),
    UShort: _fixed(0x60, "H"),
    UInt: _small(b"\x43", 0x52, _uint),
    ULong: _small(b"\x44", 0x53, _ulong),
    Byte: _fixed(0x51, "b"),
    Short: _fixed(0x61, "h"),
    Int: _fixed(0x71, "i"),
    int: _long,
    float: _fixed(0x82, "d"),
    Float: _fixed(0x72, "f"),
    Char: _fixed(0x73, "I"),
    Timestamp: _fixed(0x83, "q"),
    Decimal: _decimal,
    uuid.UUID: lambda value: b"\x98" + value.bytes,
    Described: lambda value: b"\x00" + encode(value.descriptor) + encode(value.value),
    list: _list,
    tuple: _list,
    dict: _map,
    Array: _array,
}

_ARRAY_ITEMS: dict[type, tuple[int, Callable[[object], bytes]]] = {
    str: (0xB1, _wide_text),
    Symbol: (0xB3, _wide_text),
    bytes: (0xB0, _wide_binary),
    bool: (0x56, lambda value: b"\x01" if value else b"\x00"),
    UInt: (0x70, lambda value: _uint(value)[1:]),
    ULong: (0x80, lambda value: _ulong(value)[1:]),
    Int: (0x71, lambda value: _WRITERS[Int](value)[1:]),
    int: (0x81, lambda value: _long(value)[1:]),
    Timestamp: (0x83, lambda value: _WRITERS[Timestamp](value)[1:]),
    uuid.UUID: (0x98, lambda value: _WRITERS[uuid.UUID](value)[1:]),
}
