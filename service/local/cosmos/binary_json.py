"""Cosmos' binary JSON, as far as clients send it: a document becomes text again on its way in.

The SDK for Rust writes documents so unless told otherwise (its module `binary_json` and .NET's `JsonBinaryEncoding`
name the markers). A body starts with 0x80; then each value is a marker and what it calls for, numbers and lengths
little-endian. Strings of dictionaries and compressed strings are written by the service only, and refused here.
"""

import struct
from typing import Any, Final

import orjson

from service.local.cosmos.errors import BadRequest

PREAMBLE: Final = 0x80
MAX_DEPTH: Final = 128  # "Azure Cosmos DB service quotas": levels of nesting
_CONSTANTS: Final = {0xD0: None, 0xD1: False, 0xD2: True}
_NUMBERS: Final = dict(zip(range(0xC7, 0xCF), ("<Q", "<B", "<h", "<i", "<q", "<d", "<f", "<d"), strict=True)) | dict(
    zip(range(0xD7, 0xDD), ("<B", "<b", "<h", "<i", "<q", "<I"), strict=True)
)
_TEXTS: Final = {0xC0: 1, 0xC1: 2, 0xC2: 4}
"""How many bytes the length has."""
_FRAMED: Final = {0: (1, False), 1: (2, False), 2: (4, False), 3: (1, True), 4: (2, True), 5: (4, True)}
"""Of arrays and objects, by marker from the third of eight on: the bytes of the length, and whether a count follows."""
_ARRAYS: Final = 0xE0
_OBJECTS: Final = 0xE8


def is_binary(body: bytes) -> bool:
    """Whether it is no text: no JSON text starts with this byte."""
    return body[:1] == b"\x80"


def to_text(body: bytes) -> bytes:
    """The same as JSON text. Raises BadRequest."""
    try:
        return orjson.dumps(_Reader(body).whole())
    except (_Malformed, struct.error, UnicodeDecodeError, orjson.JSONEncodeError) as fault:
        raise BadRequest(f"The request payload is no valid binary JSON: {str(fault)[:100]}.") from None


class _Malformed(Exception):
    """Bytes that mean nothing."""


class _Reader:
    """A place in a body, from which values are read."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.at = 1

    def whole(self) -> Any:  # noqa: ANN401 - JSON is anything
        """The one value that the body is."""
        value = self.value(0)
        if self.at != len(self._body):
            raise _Malformed(f"{len(self._body) - self.at} bytes are left over")
        return value

    def value(self, depth: int) -> Any:  # noqa: ANN401 - JSON is anything
        """The next value."""
        marker = self._take(1)[0]
        if marker < 0x20:
            return marker
        if 0x80 <= marker < 0xC0:
            return self._take(marker & 0x7F).decode()
        if marker in _TEXTS:
            return self._take(self._length(_TEXTS[marker])).decode()
        if marker in _NUMBERS:
            form = _NUMBERS[marker]
            return struct.unpack(form, self._take(struct.calcsize(form)))[0]
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if _ARRAYS <= marker < _OBJECTS + 8:
            return self._container(marker, depth + 1)
        raise _Malformed(f"the marker 0x{marker:02X} at byte {self.at - 1} is not taken")

    def _container(self, marker: int, depth: int) -> dict[str, Any] | list[Any]:
        if depth > MAX_DEPTH:
            raise _Malformed(f"it is nested more than {MAX_DEPTH} deep")
        object_ = marker >= _OBJECTS
        items = self._items(marker - (_OBJECTS if object_ else _ARRAYS), depth, 2 if object_ else 1)
        if not object_:
            return items
        names, values = items[::2], items[1::2]
        if not all(isinstance(name, str) for name in names):
            raise _Malformed("the name of a property is no text")
        return dict(zip(names, values, strict=True))

    def _items(self, form: int, depth: int, each: int) -> list[Any]:
        """The values in a container: none, one, or as many as its frame holds; in objects names and values by turns."""
        if form < 2:
            return [self.value(depth) for _ in range(form * each)]
        width, counted = _FRAMED[form - 2]
        length = self._length(width)
        count = self._length(width) if counted else None
        end = self.at + length
        items: list[Any] = []
        while self.at < end:
            items += [self.value(depth) for _ in range(each)]
        if self.at != end or (count is not None and len(items) != count * each):
            raise _Malformed("an array or object does not end where it says")
        return items

    def _length(self, width: int) -> int:
        return int.from_bytes(self._take(width), "little")

    def _take(self, count: int) -> bytes:
        part = self._body[self.at : self.at + count]
        if len(part) != count:
            raise _Malformed("it is cut off")
        self.at += count
        return part
