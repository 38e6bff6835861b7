"""Where things stand in a JSON text, so that parts of it can be taken or changed without writing the rest anew.

Every function expects a text that has been parsed before, so it is known to be sound.
"""

import re
from collections.abc import Iterator, Sequence
from json import JSONDecoder
from typing import Final

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_read = JSONDecoder().raw_decode
Span = tuple[int, int]


def elements(text: str, start: int = 0) -> Iterator[Span]:
    """The spans of an array's elements; `start` is at its bracket, or at space before it."""
    at = _skip(text, _skip(text, start) + 1)
    while text[at] != "]":
        _, end = _read(text, at)
        yield at, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def members(text: str, start: int = 0) -> Iterator[tuple[str, Span, Span]]:
    """An object's members: name, span of the whole member, span of its value."""
    at = _skip(text, _skip(text, start) + 1)
    while text[at] != "}":
        name, colon = _read(text, at)
        value = _skip(text, _skip(text, colon) + 1)
        _, end = _read(text, value)
        yield name, (at, end), (value, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def find(text: str, path: Sequence[str]) -> int:
    """Where the value at `path` starts; as parsers do, the last of several members of one name counts."""
    at = 0
    for step in path:
        found = [value[0] for name, _, value in members(text, at) if name == step]
        if not found:
            raise KeyError(step)
        at = found[-1]
    return at


def without(body: bytes, names: Sequence[str]) -> bytes:
    """The object without the members of these names; every other byte stays, but for commas and space around them."""
    text = body.decode()
    kept = [text[start:end] for name, (start, end), _ in members(text) if name not in names]
    return ("{" + ",".join(kept) + "}").encode()


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
