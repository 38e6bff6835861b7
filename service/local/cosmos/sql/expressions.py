"""Tokens to expressions, by the precedence of operators in the documentation ("Equality and comparison operators")."""

from typing import Final

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.sql.lexer import Token, syntax_error
from service.local.cosmos.sql.tree import (
    ArrayOf,
    Between,
    Binary,
    Call,
    Conditional,
    Expression,
    In,
    Like,
    Literal,
    Member,
    Name,
    ObjectOf,
    Parameter,
    Query,
    Subquery,
    Unary,
    UndefinedLiteral,
)

RESERVED: Final = frozenset(
    (
        *("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "BY", "OFFSET", "LIMIT", "JOIN", "IN", "AS", "AND", "OR", "NOT"),
        *("BETWEEN", "LIKE", "ASC", "DESC", "TOP", "DISTINCT", "VALUE", "EXISTS", "ARRAY", "ESCAPE"),
        *("TRUE", "FALSE", "NULL", "UNDEFINED"),
    )
)
COMPARISONS: Final = frozenset({"=", "!=", "<>", "<", "<=", ">", ">="})
LEVELS: Final = (("|",), ("^",), ("&",), ("<<", ">>", ">>>"), ("+", "-", "||"), ("*", "/", "%"))
CONSTANTS: Final[dict[str, Expression]] = {
    "TRUE": Literal(True),
    "FALSE": Literal(False),
    "NULL": Literal(None),
    "UNDEFINED": UndefinedLiteral(),
}
MAX_DEPTH: Final = 100


class ExpressionParser:
    """Reads expressions from a list of tokens, and keeps the place in it."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self.inside = 0
        """How many subqueries we are inside of."""

    def query(self) -> Query:
        """A SELECT statement: the subclass knows."""
        raise NotImplementedError

    def expression(self) -> Expression:
        """Any expression."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadRequest("The query is nested too deeply.")
        condition = self._or()
        if self.accept_sign("?"):
            one = self.expression()
            self.expect_sign(":")
            condition = Conditional(condition, one, self.expression())
        while self.accept_sign("??"):
            condition = Binary("??", condition, self._or())
        self._depth -= 1
        return condition

    def expressions(self) -> tuple[Expression, ...]:
        """Expressions with commas between."""
        found = [self.expression()]
        while self.accept_sign(","):
            found.append(self.expression())
        return tuple(found)

    def _or(self) -> Expression:
        left = self._and()
        while self.accept_word("OR"):
            left = Binary("OR", left, self._and())
        return left

    def _and(self) -> Expression:
        left = self._not()
        while self.accept_word("AND"):
            left = Binary("AND", left, self._not())
        return left

    def _not(self) -> Expression:
        if self.accept_word("NOT"):
            return Unary("NOT", self._not())
        return self._comparison()

    def _comparison(self) -> Expression:
        left = self._binary(0)
        while True:
            if self.peek.kind == "sign" and self.peek.text in COMPARISONS:
                operator = self.take().text
                left = Binary("!=" if operator == "<>" else operator, left, self._binary(0))
                continue
            if self.peek.upper == "NOT" and self._tokens[self._at + 1].upper in {"IN", "BETWEEN", "LIKE"}:
                self.take()
                left = Unary("NOT", self._membership(left))
            elif self.peek.upper in {"IN", "BETWEEN", "LIKE"}:
                left = self._membership(left)
            else:
                return left

    def _membership(self, left: Expression) -> Expression:
        if self.accept_word("IN"):
            self.expect_sign("(")
            choices = self.expressions()
            self.expect_sign(")")
            return In(left, choices)
        if self.accept_word("BETWEEN"):
            low = self._binary(0)
            self.expect_word("AND")
            return Between(left, low, self._binary(0))
        self.expect_word("LIKE")
        pattern = self._binary(0)
        escape = self.take_kind("string") if self.accept_word("ESCAPE") else None
        return Like(left, pattern, escape)

    def _binary(self, level: int) -> Expression:
        if level == len(LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.peek.kind == "sign" and self.peek.text in LEVELS[level]:
            left = Binary(self.take().text, left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        if self.peek.kind == "sign" and self.peek.text in {"-", "+", "~"}:
            operator = self.take().text
            return Unary(operator, self._unary())
        return self.postfix()

    def postfix(self) -> Expression:
        """A primary with the members after it."""
        value = self.primary()
        while True:
            if self.accept_sign("."):
                token = self.take()
                if token.kind != "word":
                    raise syntax_error(token.text, token.start)
                if self.at_sign("(") and isinstance(value, Name) and value.name.lower() == "udf":
                    raise BadRequest("User-defined functions are not supported here.")
                value = Member(value, Literal(token.text))
            elif self.accept_sign("["):
                value = Member(value, self.expression())
                self.expect_sign("]")
            else:
                return value

    def primary(self) -> Expression:  # noqa: PLR0911 - one case each
        """A constant, a name, a call, a subquery, or something in brackets."""
        token = self.take()
        if token.kind == "number":
            return Literal(_number(token.text))
        if token.kind == "string":
            return Literal(token.text)
        if token.kind == "parameter":
            return Parameter(token.text)
        if token.kind == "word":
            return self._word(token)
        if token.text == "(":
            return self._bracketed()
        if token.text == "[":
            items = () if self.at_sign("]") else self.expressions()
            self.expect_sign("]")
            return ArrayOf(items)
        if token.text == "{":
            return self._object()
        raise syntax_error(token.text or "end of query", token.start)

    def _word(self, token: Token) -> Expression:
        word = token.upper
        if word in CONSTANTS:
            return CONSTANTS[word]
        if word in {"EXISTS", "ARRAY"} and self.at_sign("("):
            self.take()
            return self._subquery(word)
        if self.accept_sign("("):
            arguments = () if self.at_sign(")") else self.expressions()
            self.expect_sign(")")
            return Call(word, arguments)
        if word in RESERVED - {"VALUE"}:
            raise syntax_error(token.text, token.start)
        return Name(token.text)

    def _bracketed(self) -> Expression:
        if self.peek.upper == "SELECT":
            return self._subquery("SCALAR")
        value = self.expression()
        self.expect_sign(")")
        return value

    def _subquery(self, kind: str) -> Subquery:
        self.inside += 1
        query = self.query()
        self.inside -= 1
        self.expect_sign(")")
        return Subquery(kind, query)

    def _object(self) -> ObjectOf:
        items: list[tuple[str, Expression]] = []
        while not self.at_sign("}"):
            name = self.name_or_string()
            self.expect_sign(":")
            items.append((name, self.expression()))
            if not self.accept_sign(","):
                break
        self.expect_sign("}")
        return ObjectOf(tuple(items))

    # Tokens

    @property
    def peek(self) -> Token:
        """The token that comes next."""
        return self._tokens[self._at]

    def take(self) -> Token:
        """The next token, which is used up by it; the end is never."""
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def take_kind(self, kind: str) -> str:
        """The text of the next token, which must be of that kind."""
        token = self.take()
        if token.kind != kind:
            raise syntax_error(token.text, token.start)
        return token.text

    def identifier(self) -> str:
        """A name that is no keyword."""
        if not self.at_plain_word():
            raise syntax_error(self.peek.text, self.peek.start)
        return self.take().text

    def name_or_string(self) -> str:
        """A name, with or without quotes."""
        if self.peek.kind not in {"word", "string"}:
            raise syntax_error(self.peek.text, self.peek.start)
        return self.take().text

    def at_plain_word(self) -> bool:
        """Whether a name that is no keyword comes next."""
        return self.peek.kind == "word" and self.peek.upper not in RESERVED

    def next_word_is(self, word: str) -> bool:
        """Whether this word comes after the next token."""
        return self.at_plain_word() and self._tokens[self._at + 1].upper == word

    def at_sign(self, sign: str) -> bool:
        """Whether this sign comes next."""
        return self.peek.kind == "sign" and self.peek.text == sign

    def accept_sign(self, sign: str) -> bool:
        """Take this sign, if it comes next."""
        found = self.at_sign(sign)
        self._at += found
        return found

    def accept_word(self, word: str) -> bool:
        """Take this keyword, if it comes next."""
        found = self.peek.upper == word
        self._at += found
        return found

    def expect_sign(self, sign: str) -> None:
        """Take this sign, which must come next."""
        if not self.accept_sign(sign):
            raise syntax_error(self.peek.text or "end of query", self.peek.start)

    def expect_word(self, word: str) -> None:
        """Take this keyword, which must come next."""
        if not self.accept_word(word):
            raise syntax_error(self.peek.text or "end of query", self.peek.start)

    def expect_end(self) -> None:
        """Nothing may come any more."""
        if self.peek.kind != "end":
            raise syntax_error(self.peek.text, self.peek.start)


def _number(text: str) -> int | float:
    if text[:2].lower() == "0x":
        return int(text, 16)
    value = float(text)
    if value in {float("inf"), float("-inf")}:
        raise BadRequest(f"The number {text[:50]} is out of range.")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
