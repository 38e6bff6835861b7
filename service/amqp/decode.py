"""Bytes to values (1.2): bounded in depth, in counts and by the buffer, whatever the bytes are."""

import struct
import uuid
from collections.abc import Callable

from service.amqp.errors import DecodeError
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

MAX_DEPTH = 32
"""Deepest nesting that is read. The standard's own types need 5; unbounded recursion would be a peer's weapon."""

MAX_EMPTY_ITEMS = 1024
"""Most items of an array whose items take no bytes, such as 2**32 nulls in ten bytes."""

Buffer = bytes | bytearray | memoryview
_Reader = Callable[[Buffer, int, int], tuple[object, int]]


def decode(buffer: Buffer, position: int = 0) -> tuple[object, int]:
    """The value that starts at `position`, and the position after it; DecodeError for anything else."""
    try:
        return _value(buffer, position, 0)
    except (IndexError, struct.error, UnicodeDecodeError, ValueError, TypeError, OverflowError) as error:
        raise DecodeError(f"The bytes at {position} are not an AMQP value: {error}") from None


def skip(buffer: Buffer, position: int) -> int:
    """The position after the value that starts at `position`, without building it."""
    try:
        end = _skip(buffer, position, 0)
    except (IndexError, struct.error):
        end = len(buffer) + 1
    if end > len(buffer):
        raise DecodeError(f"The value at {position} runs past the end of its buffer.")
    return end


def _value(buffer: Buffer, position: int, depth: int) -> tuple[object, int]:
    reader = _READERS.get(buffer[position])
    if reader is None:
        raise ValueError(f"unknown constructor 0x{buffer[position]:02x}")
    return reader(buffer, position + 1, depth)


def _skip(buffer: Buffer, position: int, depth: int) -> int:
    code = buffer[position]
    position += 1
    if code == 0:
        if depth > MAX_DEPTH:
            raise IndexError
        return _skip(buffer, _skip(buffer, position, depth + 1), depth + 1)
    width = _FIXED_WIDTHS.get(code >> 4)
    if width is not None:
        return position + width
    kind = code >> 4
    if kind in (0xA, 0xC, 0xE):
        return position + 1 + buffer[position]
    if kind in (0xB, 0xD, 0xF):
        return position + 4 + int(_U32.unpack_from(buffer, position)[0])
    raise IndexError


def _take(buffer: Buffer, position: int, size: int) -> bytes:
    end = position + size
    if end > len(buffer):
        raise ValueError(f"{size} bytes wanted, {len(buffer) - position} are left")
    return bytes(buffer[position:end])


def _constant(value: object) -> _Reader:
    return lambda _buffer, position, _depth: (value, position)


def _fixed(pattern: str, make: Callable[[int], object] | None) -> _Reader:
    layout = struct.Struct(pattern)
    unpack, size = layout.unpack_from, layout.size
    if make is None:
        return lambda buffer, position, _depth: (unpack(buffer, position)[0], position + size)
    return lambda buffer, position, _depth: (make(unpack(buffer, position)[0]), position + size)


def _variable(wide: bool, make: Callable[[bytes], object]) -> _Reader:
    def read(buffer: Buffer, position: int, _depth: int) -> tuple[object, int]:
        size, position = _size(buffer, position, wide)
        return make(_take(buffer, position, size)), position + size

    return read


def _size(buffer: Buffer, position: int, wide: bool) -> tuple[int, int]:
    if wide:
        return int(_U32.unpack_from(buffer, position)[0]), position + 4
    return buffer[position], position + 1


def _compound(buffer: Buffer, position: int, wide: bool) -> tuple[int, int, int]:
    """Count, position of the first item, and end of a list, map or array."""
    size, position = _size(buffer, position, wide)
    end = position + size
    if end > len(buffer):
        raise ValueError(f"{size} bytes wanted, {len(buffer) - position} are left")
    count, position = _size(buffer, position, wide)
    return count, position, end


def _list(wide: bool) -> _Reader:
    def read(buffer: Buffer, position: int, depth: int) -> tuple[object, int]:
        count, position, end = _compound(buffer, position, wide)
        return _items(buffer, position, end, count, depth), end

    return read


def _map(wide: bool) -> _Reader:
    def read(buffer: Buffer, position: int, depth: int) -> tuple[object, int]:
        count, position, end = _compound(buffer, position, wide)
        if count % 2:
            raise ValueError(f"a map of {count} items")
        items = iter(_items(buffer, position, end, count, depth))
        return dict(zip(items, items, strict=True)), end

    return read


def _items(buffer: Buffer, position: int, end: int, count: int, depth: int) -> list[object]:
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    if count > end - position:
        raise ValueError(f"{count} items in {end - position} bytes")
    items = []
    for _ in range(count):
        item, position = _value(buffer, position, depth + 1)
        items.append(item)
    if position != end:
        raise ValueError("items and size of a compound value differ")
    return items


def _array(wide: bool) -> _Reader:
    def read(buffer: Buffer, position: int, depth: int) -> tuple[object, int]:
        count, position, end = _compound(buffer, position, wide)
        if not count:
            return Array(), end
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH}")
        descriptors: list[object] = []
        while buffer[position] == 0 and len(descriptors) <= MAX_DEPTH:
            descriptor, position = _value(buffer, position + 1, depth + 1)
            descriptors.append(descriptor)
        reader = _READERS.get(buffer[position])
        if reader is None or buffer[position] == 0:
            raise ValueError(f"unknown constructor 0x{buffer[position]:02x} in an array")
        position += 1
        if count > max(end - position, MAX_EMPTY_ITEMS):
            raise ValueError(f"{count} items in {end - position} bytes")
        items = Array()
        for _ in range(count):
            item, position = reader(buffer, position, depth + 1)
            for descriptor in reversed(descriptors):
                item = Described(descriptor, item)
            items.append(item)
        if position != end:
            raise ValueError("items and size of an array differ")
        return items, end

    return read


def _described(buffer: Buffer, position: int, depth: int) -> tuple[object, int]:
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    descriptor, position = _value(buffer, position, depth + 1)
    value, position = _value(buffer, position, depth + 1)
    return Described(descriptor, value), position


def _octets(size: int, make: Callable[[bytes], object]) -> _Reader:
    return lambda buffer, position, _depth: (make(_take(buffer, position, size)), position + size)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8")


def _symbol(raw: bytes) -> Symbol:
    return Symbol(raw.decode("ascii"))


_U32 = struct.Struct(">I")
_FIXED_WIDTHS = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}

_READERS: dict[int, _Reader] = {
    0x00: _described,
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(UInt(0)),
    0x44: _constant(ULong(0)),
    0x45: lambda _buffer, position, _depth: ([], position),
    0x50: _fixed(">B", UByte),
    0x51: _fixed(">b", Byte),
    0x52: _fixed(">B", UInt),
    0x53: _fixed(">B", ULong),
    0x54: _fixed(">b", Int),
    0x55: _fixed(">b", None),
    0x56: _fixed(">?", None),
    0x60: _fixed(">H", UShort),
    0x61: _fixed(">h", Short),
    0x70: _fixed(">I", UInt),
    0x71: _fixed(">i", Int),
    0x72: _fixed(">f", Float),
    0x73: _fixed(">I", Char),
    0x74: _octets(4, Decimal),
    0x80: _fixed(">Q", ULong),
    0x81: _fixed(">q", None),
    0x82: _fixed(">d", None),
    0x83: _fixed(">q", Timestamp),
    0x84: _octets(8, Decimal),
    0x94: _octets(16, Decimal),
    0x98: _octets(16, lambda raw: uuid.UUID(bytes=raw)),
    0xA0: _variable(wide=False, make=bytes),
    0xA1: _variable(wide=False, make=_text),
    0xA3: _variable(wide=False, make=_symbol),
    0xB0: _variable(wide=True, make=bytes),
    0xB1: _variable(wide=True, make=_text),
    0xB3: _variable(wide=True, make=_symbol),
    0xC0: _list(wide=False),
    0xC1: _map(wide=False),
    0xD0: _list(wide=True),
    0xD1: _map(wide=True),
    0xE0: _array(wide=False),
    0xF0: _array(wide=True),
}
