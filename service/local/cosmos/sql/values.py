"""Values of the query language: JSON, and `undefined`, which no comparison holds for."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import orjson


class _Undefined(Enum):
    """The value of what is not there."""

    UNDEFINED = "undefined"

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = _Undefined.UNDEFINED

# Order between types, as ORDER BY has it ("ORDER BY clause in Azure Cosmos DB").
_RANKS: Final = {type(None): 1, bool: 2, int: 3, float: 3, str: 4, list: 5, dict: 6}


def rank(value: object) -> int:
    """The place of the value's type in the order; undefined comes first."""
    return _RANKS.get(type(value), 0)


def is_number(value: object) -> bool:
    """Whether it is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> Any:  # noqa: ANN401 - values are anything
    """Whether two values are the same; undefined if either is."""
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return same(left, right)


def same(left: Any, right: Any) -> bool:  # noqa: ANN401
    """Whether two defined values are the same, at any depth; true is not 1."""
    if rank(left) != rank(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    return bool(left == right)


def less(left: Any, right: Any) -> Any:  # noqa: ANN401
    """Whether left comes before right; undefined for values of different types and for those without order."""
    if rank(left) != rank(right) or rank(left) in {0, 5, 6}:
        return UNDEFINED
    return False if left is None else left < right


class SortKey:
    """A value as ORDER BY, MIN and MAX compare it: by type first."""

    __slots__ = ("_rank", "_value")

    def __init__(self, value: object) -> None:
        self._rank = rank(value)
        self._value: Any = canonical(value) if self._rank > 4 else value

    def __lt__(self, other: "SortKey") -> bool:
        if self._rank != other._rank:
            return self._rank < other._rank
        return False if self._rank < 2 else bool(self._value < other._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SortKey) or self._rank != other._rank:
            return False
        return self._rank < 2 or bool(self._value == other._value)

    __hash__ = None  # type: ignore[assignment]


def canonical(value: object) -> bytes:
    """Bytes that are the same for the same values: for DISTINCT and GROUP BY."""
    if value is UNDEFINED:
        return b""
    return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS)


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return value


def member(of: object, at: object) -> object:
    """What is at a name or index; undefined if there is nothing."""
    if isinstance(of, dict) and isinstance(at, str):
        return of.get(at, UNDEFINED)
    if isinstance(of, list) and isinstance(at, int) and not isinstance(at, bool):
        return of[at] if 0 <= at < len(of) else UNDEFINED
    return UNDEFINED
