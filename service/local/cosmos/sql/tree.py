"""The parts of a parsed query. Expressions are values; a query holds them by clause."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Any


@dataclass(frozen=True, slots=True)
class UndefinedLiteral:
    """The word `undefined`."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """`@name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """An alias of the FROM clause."""

    name: str


@dataclass(frozen=True, slots=True)
class Member:
    """`of.name`, `of["name"]` or `of[0]`."""

    of: "Expression"
    at: "Expression"


@dataclass(frozen=True, slots=True)
class Unary:
    """`NOT x`, `-x`, `+x`, `~x`."""

    operator: str
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands and what is between them."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Conditional:
    """`condition ? one : other`."""

    condition: "Expression"
    one: "Expression"
    other: "Expression"


@dataclass(frozen=True, slots=True)
class In:
    """`x IN (a, b)`."""

    value: "Expression"
    choices: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Between:
    """`x BETWEEN low AND high`."""

    value: "Expression"
    low: "Expression"
    high: "Expression"


@dataclass(frozen=True, slots=True)
class Like:
    """`x LIKE pattern ESCAPE sign`."""

    value: "Expression"
    pattern: "Expression"
    escape: str | None


@dataclass(frozen=True, slots=True)
class Call:
    """A function; aggregates are calls too."""

    name: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """`[a, b]`."""

    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class ObjectOf:
    """`{"a": b}`."""

    items: tuple[tuple[str, "Expression"], ...]


@dataclass(frozen=True, slots=True)
class Subquery:
    """`(SELECT ..)`, `EXISTS(SELECT ..)` or `ARRAY(SELECT ..)`."""

    kind: str
    query: "Query"


Expression = (
    Literal
    | UndefinedLiteral
    | Parameter
    | Name
    | Member
    | Unary
    | Binary
    | Conditional
    | In
    | Between
    | Like
    | Call
    | ArrayOf
    | ObjectOf
    | Subquery
)


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of FROM: a path, or with `each` every item of the array at the path."""

    path: Expression | None
    """None is the container itself."""
    alias: str
    each: bool = False


@dataclass(frozen=True, slots=True)
class Selected:
    """One column of the select list."""

    expression: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Order:
    """One key of ORDER BY."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A query, clause by clause."""

    everything: bool = False
    """`SELECT *`"""
    value: Expression | None = None
    """`SELECT VALUE ..`"""
    columns: tuple[Selected, ...] = ()
    distinct: bool = False
    top: Expression | None = None
    sources: tuple[Source, ...] = ()
    where: Expression | None = None
    group: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    offset: Expression | None = None
    limit: Expression | None = None

    @property
    def outputs(self) -> tuple[Expression, ...]:
        """The expressions that make up a result."""
        return (self.value,) if self.value is not None else tuple(column.expression for column in self.columns)
