"""The AMQP types that Python has no exact word for (1.6).

A decoded value is a plain Python object where the type is unambiguous: None, bool, int (long), float (double), str,
bytes, uuid.UUID, list, dict. The others are the small subclasses below, so that a value encodes again as what it was.
"""

from dataclasses import dataclass


class Symbol(str):
    """An ASCII name from a domain that the protocol or the service defines."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970 in UTC."""

    __slots__ = ()


class UByte(int):
    """0 to 255."""

    __slots__ = ()


class UShort(int):
    """0 to 2**16 - 1."""

    __slots__ = ()


class UInt(int):
    """0 to 2**32 - 1."""

    __slots__ = ()


class ULong(int):
    """0 to 2**64 - 1."""

    __slots__ = ()


class Byte(int):
    """-128 to 127."""

    __slots__ = ()


class Short(int):
    """-(2**15) to 2**15 - 1."""

    __slots__ = ()


class Int(int):
    """-(2**31) to 2**31 - 1."""

    __slots__ = ()


class Char(int):
    """A Unicode code point."""

    __slots__ = ()


class Float(float):
    """A 32-bit binary floating point number."""

    __slots__ = ()


class Decimal(bytes):
    """A decimal32, decimal64 or decimal128, kept as its 4, 8 or 16 octets: nothing here computes with it."""

    __slots__ = ()


class Array(list[object]):
    """Values of one type that share a constructor; encodes as an array, where a plain list encodes as a list."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A value with a descriptor that says what it stands for."""

    descriptor: object
    value: object
