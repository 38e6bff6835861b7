"""Queries over documents: FROM, WHERE, GROUP BY, ORDER BY, DISTINCT, OFFSET and the select list, in that order."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.sql import tree
from service.local.cosmos.sql.aggregates import AGGREGATES, aggregate_calls
from service.local.cosmos.sql.evaluate import Evaluator, Row, Scope, compile_expression
from service.local.cosmos.sql.parser import ROOT
from service.local.cosmos.sql.values import UNDEFINED, SortKey, canonical

Bounds = tuple[int, int | None]
"""How many results to leave out first, and how many to give at most."""


class Executable:
    """A query that is ready to run, with its parameters."""

    def __init__(self, query: tree.Query, parameters: Mapping[str, Any], around: Scope | None = None) -> None:
        self.query = query
        scope = around or Scope((ROOT,), parameters, _compile_subquery)
        try:
            self._compile(scope)
        except RecursionError as error:
            raise BadRequest("The query is too complex: an expression of it has too many parts.") from error

    def _compile(self, scope: Scope) -> None:
        query = self.query
        self._rows, inner = _compile_rows(query, scope)
        self._select = _compile_select(query, inner)
        self._order = [(compile_expression(key.expression, inner), key.descending) for key in query.order]
        self._group = [compile_expression(key, inner) for key in query.group]
        self._calls = list(dict.fromkeys(aggregate_calls((*query.outputs, *(key.expression for key in query.order)))))
        self._arguments = [_argument(one, inner) for one in self._calls]
        self.bounds = self._compile_bounds(scope)

    @property
    def streams(self) -> bool:
        """Whether each document gives its results by itself, whatever the others are."""
        return bool(self.query.sources) and not (
            self.query.order or self.query.group or self.query.distinct or self._calls
        )

    @property
    def passes_all(self) -> bool:
        """Whether it is `SELECT * FROM c`, which needs no look into the documents."""
        query = self.query
        return query.everything and query.where is None and not query.order and query.sources[0].path is None

    @property
    def counts_only(self) -> bool:
        """Whether it is a COUNT of all, which needs no document either."""
        return (
            self.query.where is None
            and bool(self._calls)
            and all(one.name == "COUNT" and isinstance(one.arguments[0], tree.Literal) for one in self._calls)
        )

    def of_document(self, document: object) -> Iterator[Any]:
        """The results that one document gives, if the query streams."""
        for row in self._rows({ROOT: document}):
            value = self._select(row)
            if value is not UNDEFINED:
                yield value

    def over(self, documents: Iterable[Any]) -> list[Any]:
        """All results over all documents, OFFSET and LIMIT and TOP applied."""
        if not self.query.sources:
            documents = ({},)  # `SELECT 1` asks nothing of the container
        rows: Iterable[Row] = itertools.chain.from_iterable(self._rows({ROOT: one}) for one in documents)
        results = list(self._finish(rows))
        skip, most = self.bounds
        return results[skip:] if most is None else results[skip : skip + most]

    def within(self, row: Row) -> Iterator[Any]:
        """The results of a subquery for one row of the query around it."""
        results = self._finish(self._rows(row))
        skip, most = self.bounds
        return itertools.islice(results, skip, None if most is None else skip + most)

    def _finish(self, rows: Iterable[Row]) -> Iterator[Any]:
        if self._group or self._calls:
            rows = self._grouped(rows)
        if self._order:
            rows = self._sorted(rows)
        seen: set[bytes] = set()
        for row in rows:
            value = self._select(row)
            if value is UNDEFINED:
                continue
            if self.query.distinct:
                mark = canonical(value)
                if mark in seen:
                    continue
                seen.add(mark)
            yield value

    def _grouped(self, rows: Iterable[Row]) -> Iterator[Row]:
        """One row per group, with the results of the aggregates in it. Without GROUP BY there is one group."""
        groups: dict[tuple[bytes, ...], list[Row]] = {}
        if not self._group:
            groups[()] = []
        for row in rows:
            groups.setdefault(tuple(canonical(key(row)) for key in self._group), []).append(row)
        for members in groups.values():
            first: dict[Any, Any] = dict(members[0]) if members else {}
            for one, argument in zip(self._calls, self._arguments, strict=True):
                first[one] = AGGREGATES[one.name](argument(row) for row in members)
            yield first

    def _sorted(self, rows: Iterable[Row]) -> list[Row]:
        """By the last key first: sorting is stable."""
        ordered = list(rows)
        for key, descending in reversed(self._order):
            ordered.sort(key=lambda row, key=key: SortKey(key(row)), reverse=descending)  # type: ignore[misc]
        return ordered

    def _compile_bounds(self, scope: Scope) -> Bounds:
        query = self.query
        skip = _bound(query.offset, scope) or 0
        limits = [one for one in (_bound(query.top, scope), _bound(query.limit, scope)) if one is not None]
        return skip, min(limits) if limits else None


def _bound(node: tree.Expression | None, scope: Scope) -> int | None:
    if node is None:
        return None
    value = compile_expression(node, scope)({})
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadRequest("The count of TOP, OFFSET or LIMIT is not a whole number of 0 or more.")
    return value


def _argument(one: tree.Call, scope: Scope) -> Evaluator:
    if len(one.arguments) != 1:
        raise BadRequest(f"The aggregate {one.name} takes one argument.")
    return compile_expression(one.arguments[0], scope)


def _compile_rows(query: tree.Query, scope: Scope) -> tuple[Callable[[Row], Iterable[Row]], Scope]:
    """The function that gives the rows of FROM and WHERE, and what names can be used with them."""
    steps: list[Callable[[Row], Iterable[Row]]] = []
    for source in query.sources:
        steps.append(_compile_source(source, scope))
        scope = scope.with_names((source.alias,))
    where = compile_expression(query.where, scope) if query.where is not None else None

    def rows(start: Row) -> Iterable[Row]:
        found: Iterable[Row] = (start,)
        for step in steps:
            found = itertools.chain.from_iterable(map(step, found))
        return found if where is None else (row for row in found if where(row) is True)

    return rows, scope


def _compile_source(source: tree.Source, scope: Scope) -> Callable[[Row], Iterable[Row]]:
    alias = source.alias
    if source.path is None:
        return lambda row: ({**row, alias: row[ROOT]},)
    if isinstance(source.path, tree.Subquery):
        items = _compile_subquery(source.path.query, scope)
        return lambda row: ({**row, alias: value} for value in items(row))
    path = compile_expression(source.path, scope)
    if source.each:
        return lambda row: ({**row, alias: value} for value in values) if isinstance(values := path(row), list) else ()
    return lambda row: ({**row, alias: value},) if (value := path(row)) is not UNDEFINED else ()


def _compile_select(query: tree.Query, scope: Scope) -> Evaluator:
    if query.everything:
        alias = query.sources[0].alias
        return lambda row: row.get(alias, UNDEFINED)
    if query.value is not None:
        return compile_expression(query.value, scope)
    columns = [(column.name, compile_expression(column.expression, scope)) for column in query.columns]
    return lambda row: {name: value for name, column in columns if (value := column(row)) is not UNDEFINED}


def _compile_subquery(query: tree.Query, scope: Scope) -> Callable[[Row], Iterable[Any]]:
    return Executable(query, {}, scope).within
