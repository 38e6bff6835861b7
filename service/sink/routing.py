"""From a partition key to the range that holds it, without asking the service.

The effective partition key is the service's own hash of the key: Murmur3 of 128 bits (version 2), of 32 bits followed
by the key itself (version 1), or one 128-bit hash per level (hierarchical). A property test holds it equal to that of
azure-cosmos. Keys and the bounds of ranges are numbers or bytes that compare as the service compares its hex strings.
"""

import re
import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any, Final

import mmh3

KeyValue = str | float | bool | None
"""One level of a partition key."""
EffectiveKey = int | bytes
"""Comparable within one container: numbers for version 2 and hierarchical keys, bytes for version 1."""

# The two most significant bits are cleared, because the upper end of all ranges is written FF.
_MASK: Final = (1 << 126) - 1
_HASH_HEX_DIGITS: Final = 32
_PATH_STEP: Final = re.compile(r'/(?:"([^"]*)"|([^/]+))')


class KeyKind(Enum):
    """How keys are hashed."""

    V1 = "version 1"
    V2 = "version 2"
    HIERARCHICAL = "hierarchical"


_V1: Final = KeyKind.V1  # by name: looking up the member takes ten times as long


@dataclass(frozen=True, slots=True)
class PartitionKeyDefinition:
    """Where a container's documents have their partition key, and how it is hashed."""

    paths: tuple[tuple[str, ...], ...]
    """For each level, the names on the way to it."""
    kind: KeyKind = KeyKind.V2

    @classmethod
    def of(cls, *paths: str, kind: KeyKind | None = None) -> "PartitionKeyDefinition":
        """From paths as Cosmos writes them, such as `/key` or `/tenant/id`."""
        kind = kind or (KeyKind.HIERARCHICAL if len(paths) > 1 else KeyKind.V2)
        return cls(tuple(split_path(path) for path in paths), kind)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> "PartitionKeyDefinition":
        """From a container's `partitionKey` property. Without a version it is 1, as the service has it."""
        if properties.get("kind") == "MultiHash":
            kind = KeyKind.HIERARCHICAL
        else:
            kind = KeyKind.V2 if properties.get("version", 1) == 2 else KeyKind.V1
        return cls.of(*properties["paths"], kind=kind)

    @property
    def max_bytes(self) -> int:
        """The longest key the service takes (documented limits; version 1 came before large keys)."""
        return 101 if self.kind is KeyKind.V1 else 2048

    def text(self) -> str:
        """For messages: the paths as a person would write them."""
        return ", ".join("/" + "/".join(path) for path in self.paths)


def split_path(path: str) -> tuple[str, ...]:
    """The names on a path such as `/a/b` or `/"a/b"`. Raises ValueError if it is none."""
    if not path or "".join(match.group() for match in _PATH_STEP.finditer(path)) != path:
        raise ValueError(f"{path!r} is not a path; write one like /id or /device/serial")
    return tuple(quoted or plain for quoted, plain in _PATH_STEP.findall(path))


def effective_key(kind: KeyKind, values: Sequence[KeyValue]) -> EffectiveKey:
    """The service's hash of a whole key."""
    if kind is _V1:
        return _effective_key_v1(values[0])
    key = 0
    for value in values:
        key = key << 128 | mmh3.hash128(_hashed_bytes(value, b"\xff"), 0, True) & _MASK
    return key


class RangeMap:
    """The ranges of a container at one time. They cover every key without a gap, or it cannot be made."""

    def __init__(self, definition: PartitionKeyDefinition, ranges: Sequence[tuple[str, str, str]]) -> None:
        """Each range is (id, lowest effective key, first key beyond it), as the service writes them."""
        ordered = sorted(ranges, key=lambda one: one[1])
        if not ordered or ordered[0][1] != "" or ordered[-1][2].upper() != "FF":
            raise ValueError("the ranges do not reach from the lowest key to the highest")
        if any(one[2] != following[1] for one, following in pairwise(ordered)):
            raise ValueError("there is a gap or an overlap between ranges")
        self.ids: Final = tuple(one[0] for one in ordered)
        digits = _HASH_HEX_DIGITS * len(definition.paths)
        self._lowest: Final[list[Any]] = [_bound(definition.kind, one[1], digits) for one in ordered]

    def find(self, key: EffectiveKey) -> str:
        """The id of the range that holds the key."""
        return self.ids[bisect_right(self._lowest, key) - 1]


def _bound(kind: KeyKind, text: str, digits: int) -> EffectiveKey:
    if kind is KeyKind.V1:
        return bytes.fromhex(text)
    return int(text.ljust(digits, "0"), 16)


def _hashed_bytes(value: KeyValue, end: bytes) -> bytes:
    if isinstance(value, str):
        return b"\x08" + value.encode() + end
    if value is None:
        return b"\x01"
    if isinstance(value, bool):
        return b"\x03" if value else b"\x02"
    return b"\x05" + struct.pack("<d", float(value))


def _effective_key_v1(value: KeyValue) -> bytes:
    if isinstance(value, str):
        value = value[:100]  # version 1 looks no further
    hashed = mmh3.hash(_hashed_bytes(value, b"\x00"), 0, signed=False)
    return _ordered_number(float(hashed)) + _ordered(value)


def _ordered(value: KeyValue) -> bytes:
    """The value in version 1's encoding, whose bytes sort as the values do."""
    if isinstance(value, bool):
        return b"\x03" if value else b"\x02"
    if value is None:
        return b""  # as azure-cosmos has it: nothing follows the hash
    if not isinstance(value, str):
        return _ordered_number(float(value))
    raw = value.encode()
    shortened = raw if len(raw) <= 100 else raw[:101]
    return b"\x08" + bytes(byte + 1 for byte in shortened) + (b"\x00" if len(raw) <= 100 else b"")


def _ordered_number(value: float) -> bytes:
    """A double as bytes that sort as the numbers do: eight bits, then sevens, each but the last followed by a one."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    bits = (~bits + 1) & (1 << 64) - 1 if bits >> 63 else bits ^ 1 << 63
    encoded = bytearray((0x05, bits >> 56))
    bits = bits << 8 & (1 << 64) - 1
    while bits:
        encoded.append(bits >> 56 | 1)
        bits = bits << 7 & (1 << 64) - 1
    if len(encoded) == 2:
        encoded.append(0)
    encoded[-1] &= 0xFE
    return bytes(encoded)
