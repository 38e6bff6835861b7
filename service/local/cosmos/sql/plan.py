"""Query plans: what a client has to do so that a query over all ranges comes out right.

The gateway does not merge results of several ranges. It answers 400/1004, the SDK asks for the plan, sends the
rewritten query to each range and merges. Shapes are those that the execution contexts of the Python and JS SDKs read:
`orderByItems` and `payload`, `groupByItems` and `payload`, and `[{"item": ..}]` for a single aggregate.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.sql import tree
from service.local.cosmos.sql.aggregates import aggregate_calls
from service.local.cosmos.sql.execute import Executable
from service.local.cosmos.sql.text import query_text

ALL_FEATURES: Final = frozenset(
    {"Aggregate", "Distinct", "GroupBy", "MultipleOrderBy", "NonValueAggregate", "OffsetAndLimit", "OrderBy", "Top"}
)
FILTER: Final = "{documentdb-formattableorderbyquery-filter}"
TYPES: Final = {
    "AVG": "Average",
    "COUNT": "Count",
    "COUNTIF": "CountIf",
    "MAX": "Max",
    "MIN": "Min",
    "SUM": "Sum",
    "MAKELIST": "MakeList",
    "MAKESET": "MakeSet",
}


def needs_plan(query: tree.Query) -> bool:
    """Whether the results of several ranges cannot simply be put one after the other."""
    return bool(
        query.order
        or query.group
        or query.distinct
        or query.top is not None
        or query.offset is not None
        or _has_aggregates(query)
    )


def query_plan(
    query: tree.Query, parameters: Mapping[str, Any], supported: Collection[str], epk: str | None = None
) -> dict[str, Any]:
    """The plan, or 400 if it needs of the client what that does not know. `epk` is the one key the query is about."""
    missing = [feature for feature in _features(query) if feature not in supported]
    if missing:
        raise BadRequest(
            "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the "
            f"requested features:\nQuery contained {', '.join(missing)}, which the calling client does not support."
        )
    skip, most = Executable(query, parameters).bounds
    aliases = {column.name: _aggregate_type(column.expression) for column in query.columns}
    # A client that knows columns of aggregates merges them by alias; one that does not refuses by this list.
    by_alias = query.value is None and (bool(query.group) or "NonValueAggregate" in supported)
    grouped = bool(query.group) or (_has_aggregates(query) and query.value is None)
    return {
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": {
            "distinctType": _distinct_type(query),
            "top": most if query.top is not None else None,
            "offset": skip if query.offset is not None else None,
            "limit": most if query.offset is not None else None,
            "orderBy": ["Descending" if key.descending else "Ascending" for key in query.order],
            "orderByExpressions": [query_text(tree.Query(value=key.expression))[13:] for key in query.order],
            "groupByExpressions": [query_text(tree.Query(value=key))[13:] for key in query.group],
            "groupByAliases": list(aliases) if grouped and query.value is None else [],
            "aggregates": [TYPES[call.name] for call in aggregate_calls(query.outputs)] if not by_alias else [],
            "groupByAliasToAggregateType": aliases if grouped and query.value is None else {},
            "rewrittenQuery": _rewritten(query, skip, most, grouped),
            "hasSelectValue": query.value is not None,
            "hasNonStreamingOrderBy": False,
            "dCountInfo": None,
        },
        "queryRanges": [
            {"min": epk or "", "max": epk or "FF", "isMinInclusive": True, "isMaxInclusive": epk is not None},
        ],
    }


def _has_aggregates(query: tree.Query) -> bool:
    return any(True for _ in aggregate_calls(query.outputs))


def _features(query: tree.Query) -> Iterator[str]:
    """What the client must be able to do, by the names of the header x-ms-cosmos-supported-query-features."""
    if query.group:
        yield "GroupBy"
    if query.order:
        yield "OrderBy"
    if len(query.order) > 1:
        yield "MultipleOrderBy"
    if query.distinct:
        yield "Distinct"
    if query.offset is not None:
        yield "OffsetAndLimit"
    if query.top is not None:
        yield "Top"
    if _has_aggregates(query):
        yield "Aggregate"


def _rewritten(query: tree.Query, skip: int, most: int | None, grouped: bool) -> str:
    """What the client sends to each range; empty if that is the query itself."""
    if query.distinct:
        # A range does not know which of its values others have too: it has to give them all.
        query = replace(query, offset=None, limit=None, top=None)
    elif query.offset is not None and most is not None:
        query = replace(query, offset=tree.Literal(0), limit=tree.Literal(skip + most))
    elif query.top is not None:
        query = replace(query, top=tree.Literal(most))
    if not needs_plan(query):
        return ""
    if grouped:
        query = _with_groups(query)
    elif query.order:
        query = _with_order(query)
    elif query.value is not None and _has_aggregates(query):
        query = replace(query, value=tree.ArrayOf((_partial(query.value),)))
    return query_text(query)


def _distinct_type(query: tree.Query) -> str:
    """Whether equal results come one after the other, so that a client need only remember the last."""
    if not query.distinct:
        return "None"
    return "Ordered" if tuple(key.expression for key in query.order) == query.outputs else "Unordered"


def _with_order(query: tree.Query) -> tree.Query:
    """Each result with the values it is ordered by; a place is kept for a filter that the client may put in."""
    keys = tree.ArrayOf(tuple(tree.ObjectOf((("item", key.expression),)) for key in query.order))
    columns = [tree.Selected(keys, "orderByItems"), tree.Selected(_payload(query), "payload")]
    if not query.distinct:
        rid = tree.Member(tree.Name(query.sources[0].alias), tree.Literal("_rid"))
        columns.insert(0, tree.Selected(rid, "_rid"))
    place = tree.Name(FILTER)
    where: tree.Expression = place if query.where is None else tree.Binary("AND", query.where, place)
    return replace(query, everything=False, value=None, columns=tuple(columns), where=where)


def _with_groups(query: tree.Query) -> tree.Query:
    """Each group with its key and what the client can merge."""
    columns = []
    if query.group:
        keys = tree.ArrayOf(tuple(tree.ObjectOf((("item", key),)) for key in query.group))
        columns.append(tree.Selected(keys, "groupByItems"))
    if query.value is not None:
        payload: tree.Expression = query.value
        if _has_aggregates(query):
            payload = tree.ArrayOf((_partial(query.value),))
    else:
        payload = tree.ObjectOf(tuple((column.name, _partial(column.expression)) for column in query.columns))
    columns.append(tree.Selected(payload, "payload"))
    return replace(query, everything=False, value=None, columns=tuple(columns))


def _payload(query: tree.Query) -> tree.Expression:
    if query.everything:
        return tree.Name(query.sources[0].alias)
    if query.value is not None:
        return query.value
    return tree.ObjectOf(tuple((column.name, column.expression) for column in query.columns))


def _partial(node: tree.Expression) -> tree.Expression:
    """What one range contributes to an aggregate; an average needs sum and count."""
    if _aggregate_type(node) is None:
        return node
    assert isinstance(node, tree.Call)  # noqa: S101 - tells the type checker
    if node.name == "AVG":
        total = (("sum", tree.Call("SUM", node.arguments)), ("count", tree.Call("COUNT", node.arguments)))
        return tree.ObjectOf((("item", tree.ObjectOf(total)),))
    if node.name in {"MIN", "MAX"}:
        extreme = ((node.name.lower(), node), ("count", tree.Call("COUNT", node.arguments)))
        return tree.ObjectOf((("item", node), ("item2", tree.ObjectOf(extreme))))
    return tree.ObjectOf((("item", node),))


def _aggregate_type(node: tree.Expression) -> str | None:
    return TYPES.get(node.name) if isinstance(node, tree.Call) else None
