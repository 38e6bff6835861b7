"""A Bicep file as a table of its declarations: parameters, variables, resources, modules and outputs.

Reads the plain dialect of bicep/README.md. Values stay syntax; `text` is what is written, `literal` what it says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import tree_sitter
import tree_sitter_bicep

MISSING = object()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A piece of syntax. A copy of tree-sitter's, whose own nodes must not outlive the tree."""

    type: str
    text: str
    line: int
    broken: bool
    named: bool
    children: tuple["Node", ...]
    fields: dict[str, "Node"]

    @property
    def named_children(self) -> list["Node"]:
        return [child for child in self.children if child.named]


@dataclass(frozen=True, slots=True)
class Declaration:
    """One named thing of a file."""

    kind: str
    name: str
    node: Node
    value: Node | None
    type: str = ""
    """A parameter's or output's type, a resource's type with version, a module's path."""
    decorators: dict[str, Node] = field(default_factory=dict)
    existing: bool = False
    condition: str = ""

    @property
    def body(self) -> Node | None:
        """The object inside, whatever condition or loop stands around it."""
        return inner_object(self.value)

    @property
    def line(self) -> int:
        return self.node.line


@dataclass(frozen=True, slots=True)
class BicepFile:
    """The declarations of one file, and where its syntax is broken."""

    root: Node
    declarations: tuple[Declaration, ...]
    broken_lines: tuple[int, ...]

    def of(self, kind: str) -> dict[str, Declaration]:
        return {item.name: item for item in self.declarations if item.kind == kind}


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bicep.language()))


@cache
def parse(source: str) -> BicepFile:
    tree = _parser().parse(source.encode())
    root = _copy(tree.root_node, source.encode())
    broken = tuple(node.line for node in walk(root) if node.broken)
    return BicepFile(root, tuple(_declarations(root)), broken)


def _copy(node: tree_sitter.Node, source: bytes) -> Node:
    children = tuple(_copy(child, source) for child in node.children)
    fields = {name: child for i, child in enumerate(children) if (name := node.field_name_for_child(i))}
    words = source[node.start_byte : node.end_byte].decode()
    broken = node.is_error or node.is_missing
    return Node(node.type, words, node.start_point.row + 1, broken, node.is_named, children, fields)


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from walk(child)


def text(node: Node | None) -> str:
    return "" if node is None else node.text


def literal(node: Node | None) -> object:
    """The value of a literal; MISSING for anything that is reckoned."""
    if node is None:
        return MISSING
    if node.type == "string":
        if any(child.type == "interpolation" for child in node.named_children):
            return MISSING
        return text(node)[1:-1].replace("\\'", "'")
    if node.type == "number":
        return int(text(node))
    return {"true": True, "false": False, "null": None}.get(text(node), MISSING)


def properties(node: Node | None) -> dict[str, Node]:
    """An object's properties by name."""
    if node is None or node.type != "object":
        return {}
    pairs = (child.named_children for child in node.named_children if child.type == "object_property")
    return {text(pair[0]).strip("'"): pair[-1] for pair in pairs}


def names_with_lines(node: Node) -> list[tuple[str, int]]:
    pairs = (child.named_children[0] for child in node.named_children if child.type == "object_property")
    return [(text(name).strip("'"), name.line) for name in pairs]


def inner_object(node: Node | None) -> Node | None:
    """Through `if (...)` and `[for ...]` to the object."""
    while node is not None and node.type in {"if_statement", "for_statement", "array"}:
        node = next((child for child in reversed(node.named_children) if child.type != "comment"), None)
    return node if node is not None and node.type == "object" else None


def at(node: Node | None, *path: str) -> Node | None:
    """Follows property names; a number goes into an array."""
    for step in path:
        if node is None:
            return None
        if step.isdigit():
            items = [child for child in node.named_children if child.type != "comment"]
            node = items[int(step)] if int(step) < len(items) else None
        else:
            node = properties(node).get(step)
    return node


def choices(node: Node) -> Iterator[Node]:
    """The objects that a value can be: itself, both sides of a choice, what a loop makes, the members of a list."""
    if node.type == "ternary_expression":
        for child in node.named_children[1:]:
            yield from choices(child)
    elif node.type in {"array", "for_statement", "if_statement"}:
        for child in node.named_children:
            if child.type in {"object", "for_statement", "if_statement", "ternary_expression"}:
                yield from choices(child)
    else:
        yield node


def _declarations(root: Node) -> Iterator[Declaration]:
    decorators: dict[str, Node] = {}
    for node in root.named_children:
        if node.type == "decorators":
            decorators = {text(call.fields.get("function")): call for call in _calls(node)}
        elif node.type.endswith("_declaration"):
            yield _declaration(node, decorators)
            decorators = {}
        elif node.type != "comment":
            decorators = {}


def _calls(node: Node) -> list[Node]:
    decorators = (child for child in node.named_children if child.type == "decorator")
    return [call for decorator in decorators for call in decorator.named_children if call.type == "call_expression"]


def _declaration(node: Node, decorators: dict[str, Node]) -> Declaration:
    kind = node.type.removesuffix("_declaration")
    parts = [child for child in node.named_children if child.type != "comment"]
    name, rest = text(parts[0]), parts[1:]
    if kind in {"resource", "module"}:
        value = rest[1] if len(rest) > 1 else None
        existing = any(text(child) == "existing" for child in node.children)
        condition = text(value.named_children[0]) if value is not None and value.type == "if_statement" else ""
        return Declaration(kind, name, node, value, str(literal(rest[0])), decorators, existing, condition)
    if kind in {"parameter", "output"}:
        return Declaration(kind, name, node, rest[1] if len(rest) > 1 else None, text(rest[0]), decorators)
    return Declaration(kind, name, node, rest[0] if rest else None, "", decorators)
