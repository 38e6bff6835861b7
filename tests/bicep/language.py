"""Faults that any Bicep file can have: syntax, schema, names, modules. Each is one line: file, line, what is wrong."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from tests.bicep.dialect import (
    MISSING,
    BicepFile,
    Declaration,
    Node,
    choices,
    literal,
    names_with_lines,
    properties,
    text,
    walk,
)

HERE = Path(__file__).parent
EVERYWHERE = {"parent", "scope", "dependsOn"}
"""Properties that Bicep itself gives to a resource."""
FUNCTIONS = {
    *("array", "cidrSubnet", "concat", "contains", "empty", "environment", "format", "guid", "int", "items", "json"),
    *("length", "loadJsonContent", "max", "min", "replace", "resourceGroup", "resourceId", "string", "subscription"),
    *("subscriptionResourceId", "toLower", "uniqueString", "union"),
}
FORBIDDEN = {"getSecret", "listConnectionStrings", "listCredentials", "listKeys", "listSecrets"}
"""They would put a secret into the deployment. There is none: identity does it all."""
MODULE_PROPERTIES = {"name", "scope", "params", "dependsOn"}
LITERAL_TYPES = {"string": str, "int": int, "bool": bool}


@cache
def schemas() -> Mapping[str, Any]:
    files = ("schemas.json", "schemas_by_hand.json")
    both: dict[str, Any] = {}
    for name in files:
        both |= json.loads((HERE / name).read_text())
    del both["notice"]
    return both


def faults(files: Mapping[str, BicepFile]) -> Iterator[str]:
    """Every fault of every file, given by path as seen from the folder bicep/."""
    for path, file in files.items():
        for number in file.broken_lines:
            yield f"{path}:{number}: syntax"
        for message in _of_file(file):
            yield f"{path}:{message}"
        for module in file.of("module").values():
            for message in _of_call(path, module, files):
                yield f"{path}:{message}"


def _of_file(file: BicepFile) -> Iterator[str]:
    yield from _declared_once(file)
    yield from _described(file)
    for resource in file.of("resource").values():
        yield from _of_resource(resource)
    yield from _references(file)
    yield from _circles(file)


def _declared_once(file: BicepFile) -> Iterator[str]:
    seen: dict[tuple[str | bool, str], int] = {}
    for item in file.declarations:
        key = (item.kind in {"output", "metadata"} and item.kind, item.name)
        if key in seen:
            yield f"{item.line}: {item.name} is declared twice"
        seen[key] = item.line


def _described(file: BicepFile) -> Iterator[str]:
    for item in file.declarations:
        if item.kind not in {"parameter", "output"}:
            continue
        call = item.decorators.get("description")
        words = "" if call is None else text(call.fields.get("arguments"))[2:-2]
        if not words:
            yield f"{item.line}: {item.kind} {item.name} has no description"
        elif item.kind == "parameter":
            expected = "Required. " if item.value is None else "Optional. "
            if not words.startswith(expected):
                yield f"{item.line}: the description of {item.name} must begin with {expected.strip()}"
        allowed = allowed_values(item)
        if allowed and item.value is not None and literal(item.value) not in allowed:
            yield f"{item.line}: the default of {item.name} is not among its allowed values"
        value = literal(item.value)
        if item.kind == "parameter" and value is not MISSING and not _fits(value, item.type):
            yield f"{item.line}: the default of {item.name} is no {item.type}"


def allowed_values(item: Declaration) -> set[object]:
    call = item.decorators.get("allowed")
    return {literal(node) for node in walk(call) if node.type == "string"} if call is not None else set()


def _fits(value: object, kind: str) -> bool:
    wanted = LITERAL_TYPES.get(kind)
    return value is None or wanted is None or type(value) is wanted


def _of_resource(resource: Declaration) -> Iterator[str]:
    schema = schemas().get(resource.type)
    if schema is None:
        yield f"{resource.line}: no schema for {resource.type}"
    elif resource.body is None:
        yield f"{resource.line}: {resource.name} has no body"
    elif resource.existing:
        for name, line in names_with_lines(resource.body):
            if name not in {"name", "parent", "scope"}:
                yield f"{line}: an existing resource takes no {name}"
    else:
        nested = resource.type.split("@")[0].count("/") > 1
        if nested and "parent" not in properties(resource.body):
            yield f"{resource.line}: {resource.name} has no parent"
        yield from _of_object(resource.body, schema, resource.type.split("@")[0], EVERYWHERE)


def _of_object(node: Node, schema: Mapping[str, Any], path: str, also: set[str] = frozenset()) -> Iterator[str]:
    known = {name.rstrip("!"): kind for name, kind in schema.items()}
    given = properties(node)
    lines = names_with_lines(node)
    for name in {name for name, _ in lines if [n for n, _ in lines].count(name) > 1}:
        yield f"{node.line}: {path}.{name} is given twice"
    for name, line in lines:
        if name in also:
            continue
        if name in known:
            yield from _of_value(given[name], known[name], f"{path}.{name}")
        elif "*" not in known:
            yield f"{line}: unknown property {path}.{name}"
    for name in schema:
        if name.endswith("!") and name[:-1] not in given:
            yield f"{node.line}: missing property {path}.{name[:-1]}"


def _of_value(node: Node, kind: Any, path: str) -> Iterator[str]:
    line = node.line
    for choice in choices(node):
        value = literal(choice)
        if isinstance(kind, list | dict) and value not in (MISSING, None):
            yield f"{line}: {path} is no object"
        elif isinstance(kind, list) and choice is node and node.type == "object":
            yield f"{line}: {path} is no list"
        elif isinstance(kind, dict) and node.type in {"array", "for_statement"}:
            yield f"{line}: {path} is a list"
            return
        elif choice.type == "object" and isinstance(kind, list | dict):
            yield from _of_object(choice, kind[0] if isinstance(kind, list) else kind, path)
        elif isinstance(kind, str):
            yield from _of_literal(value, kind, path, line)


def _of_literal(value: object, kind: str, path: str, line: int) -> Iterator[str]:
    if value in (MISSING, None) or kind == "any":
        return
    words = kind.split(" | ")
    if len(words) > 1:
        if value not in set(words) - {"string"}:
            yield f"{line}: {path} is {value!r}, which is none of {kind}"
    elif not _fits(value, kind):
        yield f"{line}: {path} is {value!r}, which is no {kind}"


def _symbols(node: Node) -> Iterator[Node]:
    """The identifiers that are used as values, not as names of properties or functions."""
    if node.type == "object_property":
        if node.named_children[0].type == "string":
            yield from _symbols(node.named_children[0])
        yield from _symbols(node.named_children[-1])
    elif node.type == "identifier":
        yield node
    else:
        function = node.fields.get("function") if node.type == "call_expression" else None
        for child in node.named_children:
            if child != function:
                yield from _symbols(child)


def _loop_names(node: Node) -> set[str]:
    loops = (item for item in walk(node) if item.type == "for_statement")
    return {text(item.fields.get("initializer")) for item in loops}


def _references(file: BicepFile) -> Iterator[str]:
    declared = {item.name for item in file.declarations if item.kind not in {"output", "metadata"}}
    used: set[str] = set()
    for item in file.declarations:
        if item.value is None or item.kind == "metadata":
            continue
        local = _loop_names(item.value)
        for node in _symbols(item.value):
            name = text(node)
            used.add(name)
            if name not in declared | local:
                yield f"{node.line}: {name} is not declared"
        for call in (node for node in walk(item.value) if node.type == "call_expression"):
            name = text(call.fields.get("function")).split(".")[-1]
            if name in FORBIDDEN:
                yield f"{call.line}: {name} brings a secret into the deployment"
            elif name not in FUNCTIONS:
                yield f"{call.line}: {name} is no known function"
    for item in file.declarations:
        if item.kind in {"parameter", "variable"} and item.name not in used:
            yield f"{item.line}: {item.kind} {item.name} is not used"


def _circles(file: BicepFile) -> Iterator[str]:
    declared = {item.name: item for item in file.declarations if item.kind not in {"output", "metadata"}}
    needs = {
        name: {text(node) for node in _symbols(item.value)} & declared.keys() if item.value is not None else set()
        for name, item in declared.items()
    }
    done: set[str] = set()
    for name in declared:
        yield from _circle_from(name, (), needs, done)


def _circle_from(name: str, path: tuple[str, ...], needs: Mapping[str, set[str]], done: set[str]) -> Iterator[str]:
    if name in path:
        yield f"1: {' needs '.join((*path[path.index(name) :], name))}"
    elif name not in done:
        for other in sorted(needs[name]):
            yield from _circle_from(other, (*path, name), needs, done)
        done.add(name)


def _of_call(path: str, module: Declaration, files: Mapping[str, BicepFile]) -> Iterator[str]:
    target = files.get(str(PurePosixPath(path).parent / module.type))
    if target is None:
        yield f"{module.line}: there is no module {module.type}"
        return
    for name, line in names_with_lines(module.body) if module.body is not None else ():
        if name not in MODULE_PROPERTIES:
            yield f"{line}: a module takes no {name}"
    given = properties(properties(module.body).get("params"))
    wanted = target.of("parameter")
    for name, value in given.items():
        line = value.line
        if name not in wanted:
            yield f"{line}: {module.type} has no parameter {name}"
            continue
        constant = literal(value)
        allowed = allowed_values(wanted[name])
        if constant is not MISSING and not _fits(constant, wanted[name].type):
            yield f"{line}: {name} is {constant!r}, which is no {wanted[name].type}"
        elif constant is not MISSING and allowed and constant not in allowed:
            yield f"{line}: {name} is {constant!r}, which is not among its allowed values"
        yield from _same_type(files[path], name, value, wanted[name])
    for name, parameter in wanted.items():
        if parameter.value is None and name not in given:
            yield f"{module.line}: {module.name} is not given {name}"
    yield from _outputs(files[path], module, target)


def _same_type(caller: BicepFile, name: str, value: Node, wanted: Declaration) -> Iterator[str]:
    """A parameter handed on as it is must be of the type that the module takes."""
    source = caller.of("parameter").get(text(value))
    if source is not None and source.type != wanted.type:
        yield f"{value.line}: {name} takes {wanted.type}, but {source.name} is {source.type}"


def _outputs(caller: BicepFile, module: Declaration, target: BicepFile) -> Iterator[str]:
    prefix = f"{module.name}.outputs."
    for node in walk(caller.root):
        if node.type == "member_expression" and text(node).startswith(prefix):
            name = text(node).removeprefix(prefix)
            if "." not in name and name not in target.of("output"):
                yield f"{node.line}: {module.type} has no output {name}"
