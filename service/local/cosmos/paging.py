"""Pages of results, and the tokens by which a client asks for the next one."""

import itertools
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from service.local.cosmos.documents import Document
from service.local.cosmos.errors import BadRequest
from service.local.cosmos.resource_ids import document_number
from service.local.cosmos.sql.execute import Executable
from service.local.cosmos.wire import Request

DEFAULT_ITEMS: Final = 1000
MAX_ITEMS: Final = 100_000
BAD_TOKEN: Final = "Invalid Continuation Token: the header x-ms-continuation is not one of ours for this query."
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024  # the most that one answer of the service holds


@dataclass(frozen=True, slots=True)
class Page:
    """Some results, where to go on, and how many documents were looked at."""

    items: list[Any]
    next: str | None
    scanned: int


def page_size(request: Request) -> int:
    """How many results the client wants at most."""
    text = request.header("x-ms-max-item-count", "-1").strip()
    try:
        size = int(text)
    except ValueError as error:
        raise BadRequest(f"The header x-ms-max-item-count has the value {text[:20]!r}, which is no number.") from error
    if size == 0 or size < -1:
        raise BadRequest("The header x-ms-max-item-count must be -1 or a positive number.")
    return DEFAULT_ITEMS if size == -1 else min(size, MAX_ITEMS)


def page_of_query(
    query: Executable,
    documents: Sequence[Document],
    wanted: Callable[[Document], bool],
    rid: Callable[[int], str],
    request: Request,
) -> Page:
    """The page that the request's continuation asks for."""
    token = request.header("x-ms-continuation")
    size = page_size(request)
    if query.streams:
        return _streamed(query, documents, wanted, rid, _Place.parse(token), size)
    start = _Offset.parse(token)
    results = query.over(document.value() for document in documents if wanted(document))
    end = start + size
    return Page(results[start:end], _Offset.text(end) if end < len(results) else None, len(documents))


@dataclass(frozen=True, slots=True)
class _Place:
    """After which document, how many results of the next one are used up, and how many were left out and given.

    Written as the service does, `-RID:~<rid>#RT:1#TRC:<given>`, so that a token of the service is taken too; SKP and
    INR are our own.
    """

    number: int = 0
    inner: int = 0
    skipped: int = 0
    given: int = 0

    @classmethod
    def parse(cls, token: str | None) -> "_Place":
        if not token:
            return cls()
        head, *rest = token.split("#")
        fields = dict(one.split(":", 1) for one in rest if ":" in one)
        numbers = [fields.get(name, "0") for name in ("INR", "SKP", "TRC")]
        rid = head.partition("RID:~")[2]
        try:
            if head[1:].startswith("RID:~") and all(n.isdecimal() and len(n) < 18 for n in numbers):
                return cls(document_number(rid), *(int(number) for number in numbers))
        except ValueError:
            pass
        raise BadRequest(BAD_TOKEN)

    def text(self, rid: Callable[[int], str]) -> str:
        return f"-RID:~{rid(self.number)}#RT:1#TRC:{self.given}#SKP:{self.skipped}#INR:{self.inner}"


class _Offset:
    """How many results were given, where all have to be computed anyway."""

    @staticmethod
    def parse(token: str | None) -> int:
        if not token:
            return 0
        head, _, number = token.partition(":")
        if head != "+OFF" or not number.isdecimal() or len(number) > 18:
            raise BadRequest(BAD_TOKEN)
        return int(number)

    @staticmethod
    def text(count: int) -> str:
        return f"+OFF:{count}"


def _streamed(
    query: Executable,
    documents: Sequence[Document],
    wanted: Callable[[Document], bool],
    rid: Callable[[int], str],
    place: _Place,
    size: int,
) -> Page:
    """Results document by document, from a place until the page is full."""
    skip, most = query.bounds
    items: list[Any] = []
    scanned = taken = 0
    skipped, given, inner = place.skipped, place.given, place.inner
    first = bisect_right(documents, place.number, key=lambda one: one.number)
    last = place.number
    for document in itertools.islice(documents, first, None):
        if wanted(document):
            scanned += 1
            for result in _results(query, document, inner):
                if skipped < skip:
                    skipped += 1
                elif most is not None and given >= most:
                    return Page(items, None, scanned)
                elif len(items) >= size or taken > MAX_PAGE_BYTES:
                    # Only now it is sure that there is more: a full last page has no continuation.
                    return Page(items, _Place(last, inner, skipped, given).text(rid), scanned)
                else:
                    items.append(result)
                    given += 1
                    taken += document.size
                inner += 1
        last, inner = document.number, 0
    return Page(items, None, scanned)


def _results(query: Executable, document: Document, after: int) -> Any:  # noqa: ANN401 - results are anything
    if query.passes_all:
        return iter((orjson.Fragment(document.body),))
    return itertools.islice(query.of_document(document.value()), after, None)
