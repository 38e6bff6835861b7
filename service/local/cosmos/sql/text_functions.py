"""The string functions of the query language."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.sql.values import UNDEFINED

MAX_PATTERN_CHARS: Final = 1000


def _of_text(function: Callable[[str], Any]) -> Callable[[object], Any]:
    def apply(value: object) -> object:
        return function(value) if isinstance(value, str) else UNDEFINED

    return apply


def _test(function: Callable[[str, str], bool]) -> Callable[..., Any]:
    """Two texts, and whether case does not matter."""

    def apply(value: object, wanted: object, ignore_case: object = False) -> object:
        if not isinstance(value, str) or not isinstance(wanted, str):
            return UNDEFINED
        return function(value.lower(), wanted.lower()) if ignore_case is True else function(value, wanted)

    return apply


def _concat(*values: object) -> object:
    return "".join(str(value) for value in values) if all(isinstance(v, str) for v in values) else UNDEFINED


def _index_of(value: object, wanted: object, start: object = 0) -> object:
    if not isinstance(value, str) or not isinstance(wanted, str) or not isinstance(start, int):
        return UNDEFINED
    return value.find(wanted, start)


def _left(value: object, length: object) -> object:
    return value[: max(0, length)] if isinstance(value, str) and isinstance(length, int) else UNDEFINED


def _right(value: object, length: object) -> object:
    if not isinstance(value, str) or not isinstance(length, int):
        return UNDEFINED
    return value[-length:] if length > 0 else ""


def _substring(value: object, start: object, length: object) -> object:
    if not isinstance(value, str) or not isinstance(start, int) or not isinstance(length, int):
        return UNDEFINED
    first = max(0, start)
    return value[first : first + max(0, length)]


def _replace(value: object, old: object, new: object) -> object:
    if not isinstance(value, str) or not isinstance(old, str) or not isinstance(new, str):
        return UNDEFINED
    return value.replace(old, new) if old else value


def _replicate(value: object, times: object) -> object:
    if not isinstance(value, str) or not isinstance(times, int) or not 0 <= times * len(value) <= 10_000:
        return UNDEFINED
    return value * times


def _split(value: object, sign: object) -> object:
    return value.split(sign) if isinstance(value, str) and isinstance(sign, str) and sign else UNDEFINED


def _join(values: object, sign: object) -> object:
    if not isinstance(values, list) or not isinstance(sign, str) or not all(isinstance(v, str) for v in values):
        return UNDEFINED
    return sign.join(values)


def _regex(value: object, pattern: object, modifiers: object = "") -> object:
    if not isinstance(value, str) or not isinstance(pattern, str) or not isinstance(modifiers, str):
        return UNDEFINED
    if len(pattern) > MAX_PATTERN_CHARS:
        raise BadRequest(f"The pattern of RegexMatch is longer than {MAX_PATTERN_CHARS} characters.")
    flags = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
    wanted = re.RegexFlag(0)
    for modifier in modifiers:
        wanted |= flags.get(modifier, re.RegexFlag(0))
    try:
        return re.search(pattern, value, wanted) is not None
    except re.error:
        return UNDEFINED


def like(value: object, pattern: object, escape: str | None) -> object:
    """`LIKE`: % any text, _ any sign, [..] one of these."""
    if not isinstance(value, str) or not isinstance(pattern, str):
        return UNDEFINED
    out, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        closing = pattern.find("]", at + 1) if sign == "[" else -1
        if escape is not None and sign == escape and at + 1 < len(pattern):
            at += 1
            out += re.escape(pattern[at])
        elif closing > at + 1:
            out += "[" + pattern[at + 1 : closing].replace("\\", "\\\\").replace("[", "\\[") + "]"
            at = closing
        else:
            out += {"%": ".*", "_": "."}.get(sign, re.escape(sign))
        at += 1
    try:
        return re.fullmatch(out, value, re.DOTALL) is not None
    except re.error:
        return UNDEFINED


TEXT: Final[Mapping[str, Callable[..., Any]]] = {
    "LOWER": _of_text(str.lower),
    "UPPER": _of_text(str.upper),
    "LENGTH": _of_text(len),
    "TRIM": _of_text(str.strip),
    "LTRIM": _of_text(str.lstrip),
    "RTRIM": _of_text(str.rstrip),
    "REVERSE": _of_text(lambda value: value[::-1]),
    "STARTSWITH": _test(str.startswith),
    "ENDSWITH": _test(str.endswith),
    "CONTAINS": _test(lambda value, wanted: wanted in value),
    "STRINGEQUALS": _test(lambda value, wanted: value == wanted),
    "REGEXMATCH": _regex,
    "CONCAT": _concat,
    "INDEX_OF": _index_of,
    "LEFT": _left,
    "RIGHT": _right,
    "SUBSTRING": _substring,
    "REPLACE": _replace,
    "REPLICATE": _replicate,
    "STRINGSPLIT": _split,
    "STRINGJOIN": _join,
}
