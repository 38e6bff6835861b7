"""Partial document update: the operations add, set, replace, remove, incr and move, and the condition.

"Partial document update in Azure Cosmos DB" in the documentation: at most 10 operations, no system properties, not the
partition key, and all of them or none.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from service.local.cosmos.errors import BadRequest, PreconditionFailed
from service.local.cosmos.partition_key import split_path
from service.local.cosmos.sql import holds
from service.local.cosmos.throughput import REFUSED_WRITE

MAX_OPERATIONS: Final = 10
PROTECTED: Final = frozenset({"id", "_rid", "_self", "_etag", "_ts", "_attachments"})


def apply_patch(document: dict[str, Any], request: object, protected: Collection[str] = ()) -> None:
    """Change the document as the request says; `protected` are paths that must stay as they are."""
    operations, condition = _parse(request)
    if condition is not None and not holds(condition, document):
        raise PreconditionFailed(
            "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed",
            REFUSED_WRITE,
        )
    for operation in operations:
        _apply(document, operation, protected)


def _parse(request: object) -> tuple[list[Any], str | None]:
    """The operations, and the condition if there is one; a bare list is the older form."""
    operations: object = request
    condition: object = None
    if isinstance(request, list):
        pass
    elif isinstance(request, Mapping):
        operations, condition = request.get("operations"), request.get("condition")
    else:
        raise BadRequest("The patch request is not an object.")
    if not isinstance(operations, list) or not operations:
        raise BadRequest("The patch request has no operations.")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequest(f"The number of patch operations can't exceed '{MAX_OPERATIONS}'.")
    if condition is not None and not isinstance(condition, str):
        raise BadRequest("The condition of the patch is not a text.")
    return operations, condition


def _apply(document: dict[str, Any], operation: object, protected: Collection[str]) -> None:
    if not isinstance(operation, Mapping):
        raise BadRequest("A patch operation is not an object.")
    kind = str(operation.get("op", "")).lower()
    path = _path(operation.get("path"), protected)
    if kind == "move":
        source = _path(operation.get("from"), protected)
        if path[: len(source)] == source and path != source:
            raise BadRequest("A patch cannot move a value into itself.")
        value = _take(document, source)
        _change(document, path, value, _add)
        return
    if kind == "remove":
        _take(document, path)
        return
    change = _CHANGES.get("incr" if kind == "increment" else kind)
    if change is None:
        raise BadRequest(f"The patch operation {kind!r} is not supported.")
    if "value" not in operation:
        raise BadRequest(f"The patch operation {kind!r} has no value.")
    _change(document, path, operation["value"], change)


def _path(path: object, protected: Collection[str]) -> tuple[str, ...]:
    if not isinstance(path, str) or not path.startswith("/") or len(path) < 2:
        raise BadRequest(f"The patch path {path!r} is invalid.")
    steps = split_path(path)
    if steps[0] in PROTECTED or path in protected:
        raise BadRequest(f"Cannot modify the property {path!r} by a patch: it is a system property or a key.")
    return steps


def _change(
    document: dict[str, Any], path: tuple[str, ...], value: object, change: Callable[[Any, Any, object], None]
) -> None:
    parent = _parent(document, path)
    change(parent, _index(parent, path[-1]) if isinstance(parent, list) else path[-1], value)


def _parent(document: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | list[Any]:
    """The object or array that holds the last step of the path; it must be there."""
    value: Any = document
    for step in path[:-1]:
        if isinstance(value, list):
            at = _index(value, step)
            value = value[at] if at < len(value) else None
        elif isinstance(value, dict):
            value = value.get(step)
        if not isinstance(value, dict | list):
            raise _missing(path)
    checked: dict[str, Any] | list[Any] = value
    return checked


def _index(values: list[Any], step: str) -> int:
    """An index into an array, or its end (`-`)."""
    if step == "-":
        return len(values)
    if not step.isdecimal() or int(step) > len(values):
        raise BadRequest(f"The array index {step[:20]!r} of a patch path is out of bounds.")
    return int(step)


def _add(parent: dict[str, Any] | list[Any], at: Any, value: object) -> None:  # noqa: ANN401 - a name or an index
    if isinstance(parent, list):
        parent.insert(at, value)
    else:
        parent[at] = value


def _set(parent: dict[str, Any] | list[Any], at: Any, value: object) -> None:  # noqa: ANN401
    if isinstance(parent, list) and at == len(parent):
        parent.append(value)
    else:
        parent[at] = value


def _replace(parent: dict[str, Any] | list[Any], at: Any, value: object) -> None:  # noqa: ANN401
    _require(parent, at)
    parent[at] = value


def _increment(parent: dict[str, Any] | list[Any], at: Any, value: object) -> None:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRequest("The value of an increment is not a number.")
    if isinstance(parent, dict) and at not in parent:
        parent[at] = value
        return
    _require(parent, at)
    current = parent[at]
    if isinstance(current, bool) or not isinstance(current, int | float):
        raise BadRequest("An increment needs a number at its path.")
    parent[at] = current + value


_CHANGES: Final[Mapping[str, Callable[[Any, Any, object], None]]] = {
    "add": _add,
    "set": _set,
    "replace": _replace,
    "incr": _increment,
}


def _take(document: dict[str, Any], path: tuple[str, ...]) -> object:
    """Remove the value at the path, and give it."""
    parent = _parent(document, path)
    at: Any = _index(parent, path[-1]) if isinstance(parent, list) else path[-1]
    _require(parent, at)
    value: object = parent.pop(at)
    return value


def _require(parent: dict[str, Any] | list[Any], at: Any) -> None:  # noqa: ANN401
    if (isinstance(parent, list) and at >= len(parent)) or (isinstance(parent, dict) and at not in parent):
        raise _missing((str(at),))


def _missing(path: tuple[str, ...]) -> BadRequest:
    return BadRequest(f"The path '/{'/'.join(path)[:100]}' of a patch operation is not there.")
