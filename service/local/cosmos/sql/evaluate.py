"""Expressions to functions of a row: compiled once per query, called once per document."""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.sql import tree
from service.local.cosmos.sql.aggregates import AGGREGATES
from service.local.cosmos.sql.functions import call, is_known
from service.local.cosmos.sql.lexer import query_error
from service.local.cosmos.sql.text_functions import like
from service.local.cosmos.sql.values import UNDEFINED, equal, is_number, less, member

Row = dict[str, Any]
"""The values of the aliases of FROM. Results of aggregates are in it too, under the call itself."""
Evaluator = Callable[[Any], Any]
Subqueries = Callable[[tree.Query, "Scope"], Callable[[Row], Iterable[Any]]]


class Scope:
    """What an expression may name: aliases, parameters, and how to run a subquery."""

    def __init__(self, names: Iterable[str], parameters: Mapping[str, Any], run: Subqueries) -> None:
        self.names = frozenset(names)
        self.parameters = parameters
        self.run = run

    def with_names(self, names: Iterable[str]) -> "Scope":
        """The same with more aliases: what a subquery sees."""
        return Scope(self.names | frozenset(names), self.parameters, self.run)


def compile_expression(node: tree.Expression, scope: Scope) -> Evaluator:
    """The function that gives the value of the expression for a row."""
    return _COMPILERS[type(node)](node, scope)


def _literal(node: tree.Literal, scope: Scope) -> Evaluator:  # noqa: ARG001 - one of a table
    value = node.value
    return lambda row: value  # noqa: ARG005


def _undefined(node: tree.UndefinedLiteral, scope: Scope) -> Evaluator:  # noqa: ARG001
    return lambda row: UNDEFINED  # noqa: ARG005


def _parameter(node: tree.Parameter, scope: Scope) -> Evaluator:
    if node.name not in scope.parameters:
        raise BadRequest(f"The query parameter {node.name!r} is not given.")
    value = scope.parameters[node.name]
    return lambda row: value  # noqa: ARG005


def _name(node: tree.Name, scope: Scope) -> Evaluator:
    name = node.name
    if name not in scope.names:
        raise query_error("SC2001", f"Identifier '{name[:100]}' could not be resolved.")
    return lambda row: row.get(name, UNDEFINED)


def _member(node: tree.Member, scope: Scope) -> Evaluator:
    of = compile_expression(node.of, scope)
    if isinstance(node.at, tree.Literal):
        fixed = node.at.value
        if isinstance(fixed, str):
            return lambda row: value.get(fixed, UNDEFINED) if isinstance(value := of(row), dict) else UNDEFINED
        return lambda row: member(of(row), fixed)
    at = compile_expression(node.at, scope)
    return lambda row: member(of(row), at(row))


def _unary(node: tree.Unary, scope: Scope) -> Evaluator:
    value = compile_expression(node.operand, scope)
    if node.operator == "NOT":
        return lambda row: not found if isinstance(found := value(row), bool) else UNDEFINED
    change = _SIGNS[node.operator]
    return lambda row: change(found) if is_number(found := value(row)) else UNDEFINED


_SIGNS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": lambda value: ~int(value),
}


def _and(left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(row: Row) -> object:
        first = left(row)
        if first is False:
            return False
        second = right(row)
        if second is False:
            return False
        return True if first is True and second is True else UNDEFINED

    return evaluate


def _or(left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(row: Row) -> object:
        first = left(row)
        if first is True:
            return True
        second = right(row)
        if second is True:
            return True
        return False if first is False and second is False else UNDEFINED

    return evaluate


def _coalesce(left: Evaluator, right: Evaluator) -> Evaluator:
    return lambda row: value if (value := left(row)) is not UNDEFINED else right(row)


def _concat(left: Any, right: Any) -> Any:  # noqa: ANN401 - values are anything
    return left + right if isinstance(left, str) and isinstance(right, str) else UNDEFINED


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:  # noqa: ANN401
        if not is_number(left) or not is_number(right):
            return UNDEFINED
        try:
            return function(left, right)
        except (ArithmeticError, ValueError):
            return UNDEFINED

    return apply


def _divide(left: float, right: float) -> float:
    result = left / right
    return int(result) if result.is_integer() and abs(result) < 2**53 else result


def _bits(function: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    return _arithmetic(lambda left, right: function(int(left), int(right)))


def _negated(value: Any) -> Any:  # noqa: ANN401
    return not value if isinstance(value, bool) else UNDEFINED


def _ordered(left: Any, right: Any, *, or_equal: bool) -> Any:  # noqa: ANN401
    found = less(left, right)
    return found if found is not False or not or_equal else equal(left, right)


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": equal,
    "!=": lambda left, right: _negated(equal(left, right)),
    "<": less,
    ">": lambda left, right: less(right, left),
    "<=": lambda left, right: _ordered(left, right, or_equal=True),
    ">=": lambda left, right: _ordered(right, left, or_equal=True),
    "||": _concat,
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(_divide),
    "%": _arithmetic(lambda left, right: left - right * int(left / right)),
    "|": _bits(operator.or_),
    "&": _bits(operator.and_),
    "^": _bits(operator.xor),
    "<<": _bits(lambda left, right: left << (right & 63)),
    ">>": _bits(lambda left, right: left >> (right & 63)),
    ">>>": _bits(lambda left, right: (left & (1 << 64) - 1) >> (right & 63)),
}
_SHORT_CUTS: Final[Mapping[str, Callable[[Evaluator, Evaluator], Evaluator]]] = {
    "AND": _and,
    "OR": _or,
    "??": _coalesce,
}


def _binary(node: tree.Binary, scope: Scope) -> Evaluator:
    left, right = compile_expression(node.left, scope), compile_expression(node.right, scope)
    if node.operator in _SHORT_CUTS:
        return _SHORT_CUTS[node.operator](left, right)
    apply = _OPERATORS[node.operator]
    return lambda row: apply(left(row), right(row))


def _conditional(node: tree.Conditional, scope: Scope) -> Evaluator:
    condition, one, other = (compile_expression(part, scope) for part in (node.condition, node.one, node.other))
    return lambda row: one(row) if condition(row) is True else other(row)


def _in(node: tree.In, scope: Scope) -> Evaluator:
    value = compile_expression(node.value, scope)
    choices = [compile_expression(choice, scope) for choice in node.choices]

    def evaluate(row: Row) -> object:
        found = value(row)
        if found is UNDEFINED:
            return UNDEFINED
        return any(equal(found, choice(row)) is True for choice in choices)

    return evaluate


def _between(node: tree.Between, scope: Scope) -> Evaluator:
    low = tree.Binary(">=", node.value, node.low)
    high = tree.Binary("<=", node.value, node.high)
    return compile_expression(tree.Binary("AND", low, high), scope)


def _like(node: tree.Like, scope: Scope) -> Evaluator:
    value, pattern = compile_expression(node.value, scope), compile_expression(node.pattern, scope)
    return lambda row: like(value(row), pattern(row), node.escape)


def _call(node: tree.Call, scope: Scope) -> Evaluator:
    if node.name in AGGREGATES:
        # Its value was computed over the whole group and put into the row.
        return lambda row: row.get(node, UNDEFINED)
    if not is_known(node.name):
        raise query_error("SC2005", f"'{node.name[:100]}' is not a recognized built-in function name.")
    arguments = [compile_expression(argument, scope) for argument in node.arguments]
    return lambda row: call(node.name, [argument(row) for argument in arguments])


def _array(node: tree.ArrayOf, scope: Scope) -> Evaluator:
    items = [compile_expression(item, scope) for item in node.items]
    return lambda row: [value for item in items if (value := item(row)) is not UNDEFINED]


def _object(node: tree.ObjectOf, scope: Scope) -> Evaluator:
    items = [(name, compile_expression(item, scope)) for name, item in node.items]
    return lambda row: {name: value for name, item in items if (value := item(row)) is not UNDEFINED}


def _subquery(node: tree.Subquery, scope: Scope) -> Evaluator:
    rows = scope.run(node.query, scope)
    if node.kind == "EXISTS":
        return lambda row: any(True for _ in rows(row))
    if node.kind == "ARRAY":
        return lambda row: list(rows(row))
    return lambda row: next(iter(rows(row)), UNDEFINED)


_COMPILERS: Final[Mapping[type, Callable[[Any, Scope], Evaluator]]] = {
    tree.Literal: _literal,
    tree.UndefinedLiteral: _undefined,
    tree.Parameter: _parameter,
    tree.Name: _name,
    tree.Member: _member,
    tree.Unary: _unary,
    tree.Binary: _binary,
    tree.Conditional: _conditional,
    tree.In: _in,
    tree.Between: _between,
    tree.Like: _like,
    tree.Call: _call,
    tree.ArrayOf: _array,
    tree.ObjectOf: _object,
    tree.Subquery: _subquery,
}
