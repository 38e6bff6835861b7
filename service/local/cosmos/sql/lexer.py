"""Query text to tokens."""

import re
from dataclasses import dataclass
from typing import Final

import orjson

from service.local.cosmos.errors import BadRequest

MAX_QUERY_CHARS: Final = 256 * 1024  # documented limit of a query text: 512 KB of UTF-16

_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")
  | (?P<parameter>@[A-Za-z_][A-Za-z0-9_]*)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign><=|>=|!=|<>|\|\||\?\?|<<|>>>|>>|[-+*/%=<>().,\[\]{}:?&|^~])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'", '"': '"', "\\": "\\", "/": "/"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: its kind, what it means, and where it stands."""

    kind: str
    """number, string, parameter, word, sign, end"""
    text: str
    start: int

    @property
    def upper(self) -> str:
        """A word without regard to case: keywords are so."""
        return self.text.upper() if self.kind == "word" else ""


def tokenize(text: str) -> list[Token]:
    """The tokens of a query, the last of kind `end`."""
    if len(text) > MAX_QUERY_CHARS:
        raise BadRequest(f"The query is longer than {MAX_QUERY_CHARS} characters.")
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise syntax_error(text[at], at)
        kind, piece = str(found.lastgroup), found.group()
        if kind == "string":
            piece = unquote(piece)
        if kind != "space":
            tokens.append(Token(kind, piece, at))
        at = found.end()
    return [*tokens, Token("end", "", at)]


def unquote(text: str) -> str:
    """What a quoted string means."""
    body = text[1:-1]
    if text[0] == "'":
        body = body.replace("''", "'")
    if "\\" not in body:
        return body
    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _escape, body, flags=re.DOTALL)


def _escape(found: re.Match[str]) -> str:
    sign = found.group(1)
    return chr(int(sign[1:], 16)) if len(sign) > 1 else _ESCAPES.get(sign, sign)


def syntax_error(near: str, at: int) -> BadRequest:
    """What the service says to a text that is no query."""
    return query_error("SC1001", f"Syntax error, incorrect syntax near '{near[:50]}'.", at, at + len(near))


def query_error(code: str, message: str, start: int = 0, end: int = 0) -> BadRequest:
    """An error in the query, in the service's own form."""
    error = {"severity": "Error", "location": {"start": start, "end": end}, "code": code, "message": message}
    return BadRequest(orjson.dumps({"errors": [error]}).decode())
