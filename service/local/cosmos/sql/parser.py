"""Tokens to a query tree: the statements."""

from dataclasses import replace
from typing import Final

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.sql.expressions import ExpressionParser
from service.local.cosmos.sql.lexer import tokenize
from service.local.cosmos.sql.tree import Expression, Literal, Member, Name, Order, Query, Selected, Source

ROOT: Final = "root"
MAX_JOINS: Final = 10


def parse(text: str) -> Query:
    """The query that the text is, or 400."""
    parser = QueryParser(tokenize(text))
    try:
        query = parser.query()
    except RecursionError as error:
        raise BadRequest("The query is nested too deeply.") from error
    parser.expect_end()
    return query


def parse_condition(text: str) -> Query:
    """The condition of a patch, `FROM c WHERE ..`: a query without its SELECT."""
    parser = QueryParser(tokenize(text))
    query = replace(parser.from_where(), value=Literal(True))
    parser.expect_end()
    return query


class QueryParser(ExpressionParser):
    """Reads SELECT statements; subqueries come back here from expressions."""

    def query(self) -> Query:
        """A SELECT statement."""
        self.expect_word("SELECT")
        distinct = self.accept_word("DISTINCT")
        top = self.primary() if self.accept_word("TOP") else None
        everything, value = False, None
        columns: tuple[Selected, ...] = ()
        if self.accept_word("VALUE"):
            value = self.expression()
        elif self.accept_sign("*"):
            everything = True
        else:
            columns = self._columns()
        query = self.from_where()
        group: tuple[Expression, ...] = ()
        if self.accept_word("GROUP"):
            self.expect_word("BY")
            group = self.expressions()
        order = self._order()
        offset, limit = None, None
        if self.accept_word("OFFSET"):
            offset = self.primary()
            self.expect_word("LIMIT")
            limit = self.primary()
        if everything and len(query.sources) != 1:
            raise BadRequest("'SELECT *' is only valid with a single input set.")
        return Query(everything, value, columns, distinct, top, query.sources, query.where, group, order, offset, limit)

    def from_where(self) -> Query:
        """The clauses FROM and WHERE."""
        sources: list[Source] = []
        if self.accept_word("FROM"):
            sources.append(self._source(first=not self.inside))
            while self.accept_word("JOIN"):
                sources.append(self._source(first=False))
            if len(sources) > MAX_JOINS + 1:
                raise BadRequest(f"The query has more than {MAX_JOINS} joins.")
        where = self.expression() if self.accept_word("WHERE") else None
        return Query(sources=tuple(sources), where=where)

    def _columns(self) -> tuple[Selected, ...]:
        columns: list[Selected] = []
        unnamed = 0
        while True:
            expression = self.expression()
            name = self._alias() or _implied_name(expression)
            if name is None:
                unnamed += 1
                name = f"${unnamed}"
            columns.append(Selected(expression, name))
            if not self.accept_sign(","):
                return tuple(columns)

    def _alias(self) -> str | None:
        if self.accept_word("AS"):
            return self.name_or_string()
        return self.take().text if self.at_plain_word() else None

    def _order(self) -> tuple[Order, ...]:
        if not self.accept_word("ORDER"):
            return ()
        self.expect_word("BY")
        keys: list[Order] = []
        while True:
            expression = self.expression()
            descending = self.accept_word("DESC")
            if not descending:
                self.accept_word("ASC")
            keys.append(Order(expression, descending))
            if not self.accept_sign(","):
                return tuple(keys)

    def _source(self, first: bool) -> Source:
        """A source. The first name of the first source stands for the container, whatever it is."""
        if self.at_sign("("):
            subquery = self.primary()
            self.accept_word("AS")
            return Source(subquery, self.identifier(), each=True)
        if self.next_word_is("IN"):
            alias = self.identifier()
            self.expect_word("IN")
            path = self.postfix()
            return Source(_rooted(path) if first else path, alias, each=True)
        path = self.postfix()
        alias = self._alias() or _implied_name(path) or ROOT
        if isinstance(path, Name) and first:
            return Source(None, alias)
        return Source(_rooted(path) if first else path, alias)


def _rooted(path: Expression) -> Expression:
    """The path with its first name replaced by the container's own."""
    if isinstance(path, Member):
        return Member(_rooted(path.of), path.at)
    return Name(ROOT) if isinstance(path, Name) else path


def _implied_name(expression: Expression) -> str | None:
    """The name that a column or source has without an alias: the last one of its path."""
    if isinstance(expression, Name):
        return expression.name
    if isinstance(expression, Member) and isinstance(expression.at, Literal) and isinstance(expression.at.value, str):
        return expression.at.value
    return None
