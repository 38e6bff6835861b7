"""Aggregates: values over all rows of a query or group."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from service.local.cosmos.sql import tree
from service.local.cosmos.sql.values import UNDEFINED, SortKey, canonical, is_number


def _count(values: Iterable[Any]) -> int:
    return sum(value is not UNDEFINED for value in values)


def _count_if(values: Iterable[Any]) -> int:
    return sum(value is True for value in values)


def _sum(values: Iterable[Any]) -> Any:  # noqa: ANN401 - values are anything
    """The sum; undefined if any value is there that is no number."""
    total: Any = 0
    for value in values:
        if value is UNDEFINED:
            continue
        if not is_number(value):
            return UNDEFINED
        total += value
    return total


def _average(values: Iterable[Any]) -> Any:  # noqa: ANN401
    kept = [value for value in values if value is not UNDEFINED]
    total = _sum(kept)
    if total is UNDEFINED or not kept:
        return UNDEFINED
    mean = total / len(kept)
    return int(mean) if float(mean).is_integer() else mean


def _extreme(choose: Callable[..., Any]) -> Callable[[Iterable[Any]], Any]:
    def apply(values: Iterable[Any]) -> Any:  # noqa: ANN401
        kept = [value for value in values if value is not UNDEFINED]
        return choose(kept, key=SortKey) if kept else UNDEFINED

    return apply


def _list(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not UNDEFINED]


def _set(values: Iterable[Any]) -> list[Any]:
    return list({canonical(value): value for value in values if value is not UNDEFINED}.values())


AGGREGATES: Final[Mapping[str, Callable[[Iterable[Any]], Any]]] = {
    "COUNT": _count,
    "COUNTIF": _count_if,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _extreme(min),
    "MAX": _extreme(max),
    "MAKELIST": _list,
    "MAKESET": _set,
}


def aggregate_calls(node: object) -> Iterator[tree.Call]:
    """The aggregates in an expression, those of its subqueries not included."""
    if isinstance(node, tree.Call) and node.name in AGGREGATES:
        yield node
        return
    if isinstance(node, tree.Subquery):
        return
    if isinstance(node, tuple):
        for part in node:
            yield from aggregate_calls(part)
    elif is_dataclass(node):
        for field in fields(node):
            yield from aggregate_calls(getattr(node, field.name))
