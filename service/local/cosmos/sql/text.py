"""A query tree back to text: for the rewritten queries of query plans."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from service.local.cosmos.sql import tree
from service.local.cosmos.sql.parser import ROOT


def query_text(query: tree.Query) -> str:
    """The text of a query."""
    parts = ["SELECT"]
    if query.distinct:
        parts.append("DISTINCT")
    if query.top is not None:
        parts.append(f"TOP {text_of(query.top)}")
    if query.everything:
        parts.append("*")
    elif query.value is not None:
        parts.append(f"VALUE {text_of(query.value)}")
    else:
        parts.append(", ".join(_column(column) for column in query.columns))
    if query.sources:
        parts.append("FROM " + " JOIN ".join(_source(source) for source in query.sources))
    if query.where is not None:
        parts.append(f"WHERE {text_of(query.where)}")
    if query.group:
        parts.append("GROUP BY " + ", ".join(text_of(key) for key in query.group))
    if query.order:
        keys = (f"{text_of(key.expression)} {'DESC' if key.descending else 'ASC'}" for key in query.order)
        parts.append("ORDER BY " + ", ".join(keys))
    if query.offset is not None and query.limit is not None:
        parts.append(f"OFFSET {text_of(query.offset)} LIMIT {text_of(query.limit)}")
    return " ".join(parts)


def text_of(node: tree.Expression) -> str:
    """The text of an expression."""
    return _WRITERS[type(node)](node)


def _quoted(value: object) -> str:
    return orjson.dumps(value).decode()


def _column(column: tree.Selected) -> str:
    text = text_of(column.expression)
    return text if column.name.startswith("$") else f"{text} AS {_quoted(column.name)}"


def _source(source: tree.Source) -> str:
    if source.path is None:
        return source.alias
    path = text_of(source.path)
    if source.each and not isinstance(source.path, tree.Subquery):
        return f"{source.alias} IN {path}"
    return f"{path} AS {source.alias}"


def _member(node: tree.Member) -> str:
    return f"{text_of(node.of)}[{text_of(node.at)}]"


def _list(nodes: tuple[tree.Expression, ...]) -> str:
    return ", ".join(text_of(node) for node in nodes)


def _subquery(node: tree.Subquery) -> str:
    return f"{'' if node.kind == 'SCALAR' else node.kind}({query_text(node.query)})"


def _like(node: tree.Like) -> str:
    escape = f" ESCAPE {_quoted(node.escape)}" if node.escape else ""
    return f"({text_of(node.value)} LIKE {text_of(node.pattern)}{escape})"


_WRITERS: Final[Mapping[type, Callable[[Any], str]]] = {
    tree.Literal: lambda node: _quoted(node.value),
    tree.UndefinedLiteral: lambda node: "undefined",  # noqa: ARG005 - one of a table
    tree.Parameter: lambda node: node.name,
    tree.Name: lambda node: ROOT if node.name == ROOT else node.name,
    tree.Member: _member,
    tree.Unary: lambda node: f"({node.operator} {text_of(node.operand)})",
    tree.Binary: lambda node: f"({text_of(node.left)} {node.operator} {text_of(node.right)})",
    tree.Conditional: lambda node: f"({text_of(node.condition)} ? {text_of(node.one)} : {text_of(node.other)})",
    tree.In: lambda node: f"({text_of(node.value)} IN ({_list(node.choices)}))",
    tree.Between: lambda node: f"({text_of(node.value)} BETWEEN {text_of(node.low)} AND {text_of(node.high)})",
    tree.Like: _like,
    tree.Call: lambda node: f"{node.name}({_list(node.arguments)})",
    tree.ArrayOf: lambda node: f"[{_list(node.items)}]",
    tree.ObjectOf: lambda node: "{" + ", ".join(f"{_quoted(name)}: {text_of(one)}" for name, one in node.items) + "}",
    tree.Subquery: _subquery,
}
