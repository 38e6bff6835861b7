"""What a WHERE clause says about the partition key, so that a query can go to one partition by itself."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from service.local.cosmos.sql import tree

MISSING: Final = object()


def key_components(
    query: tree.Query, paths: Sequence[tuple[str, ...]], parameters: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """The partition key that every result must have, if the clause names all parts of it by `=` and AND."""
    if query.where is None or not query.sources or query.sources[0].path is not None:
        return None
    alias = query.sources[0].alias
    found: dict[tuple[str, ...], Any] = {}
    for path, value in _equalities(query.where, alias, parameters):
        if path in found and found[path] != value:
            return None
        found[path] = value
    if any(path not in found for path in paths):
        return None
    return tuple(found[path] for path in paths)


def _equalities(
    node: tree.Expression, alias: str, parameters: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(node, tree.Binary):
        return
    if node.operator == "AND":
        yield from _equalities(node.left, alias, parameters)
        yield from _equalities(node.right, alias, parameters)
    elif node.operator == "=":
        for one, other in ((node.left, node.right), (node.right, node.left)):
            path, value = _path(one, alias), _constant(other, parameters)
            if path is not None and value is not MISSING:
                yield path, value


def _path(node: tree.Expression, alias: str) -> tuple[str, ...] | None:
    if isinstance(node, tree.Name):
        return () if node.name == alias else None
    if isinstance(node, tree.Member) and isinstance(node.at, tree.Literal) and isinstance(node.at.value, str):
        of = _path(node.of, alias)
        return None if of is None else (*of, node.at.value)
    return None


def _constant(node: tree.Expression, parameters: Mapping[str, Any]) -> Any:  # noqa: ANN401 - values are anything
    value: Any = MISSING
    if isinstance(node, tree.Literal):
        value = node.value
    elif isinstance(node, tree.Parameter):
        value = parameters.get(node.name, MISSING)
    return MISSING if isinstance(value, list | dict) else value
