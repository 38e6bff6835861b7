"""The change feed: the latest version of each document that has changed since a place in the feed.

A GET of `docs` with `A-IM: Incremental Feed`. The place is an etag (`If-None-Match`): the number of the last change
that was seen, or `*` for now. Nothing new is 304, with the etag to go on from. (REST reference: "List documents".)
"""

from email.utils import parsedate_to_datetime
from typing import Final

import orjson

from service.local.cosmos.container import Container
from service.local.cosmos.documents import Document
from service.local.cosmos.errors import BadRequest
from service.local.cosmos.execution import check_budget
from service.local.cosmos.paging import page_size
from service.local.cosmos.scope import Scope
from service.local.cosmos.throughput import query_charge
from service.local.cosmos.wire import Request, Response

INCREMENTAL: Final = "incremental feed"


def serve_change_feed(container: Container, request: Request) -> Response:
    """The next page of changes, oldest first."""
    if request.header("a-im", "").lower() != INCREMENTAL:
        raise BadRequest("Only the latest version of each document is in this change feed (A-IM: Incremental Feed).")
    scope = Scope.of_request(container, request)
    for place in scope.places:
        check_budget(container, place)
    size = page_size(request)
    after, since = _start(container, request)
    changed: list[Document] = []
    for document in container.store.newest_first():
        if document.lsn <= after:
            break
        if document.timestamp >= since and (scope.everywhere or scope.has(document)):
            changed.append(document)
    changed.reverse()
    # The documents of one transaction share a place in the feed: a page does not end between them.
    while size < len(changed) and changed[size].lsn == changed[size - 1].lsn:
        size += 1
    page = changed[:size]
    # With all seen, go on from the end of the feed: what other ranges have got need not be looked at again.
    last = page[-1].lsn if len(changed) > size else container.store.lsn
    headers = container.headers(*scope.places) | {"etag": f'"{last}"', "x-ms-item-count": str(len(page))}
    if not page:
        return Response(304, headers)
    items = [_with_lsn(document) for document in page]
    body = orjson.dumps({"_rid": container.rid, "Documents": items, "_count": len(items)})
    charge = query_charge(len(page), len(body))
    for place in scope.places:
        place.budget.spend(charge / len(scope.places))
    return Response(200, headers, body, charge)


def _with_lsn(document: Document) -> orjson.Fragment:
    return orjson.Fragment(document.body[:-1] + b',"_lsn":%d}' % document.lsn)


def _start(container: Container, request: Request) -> tuple[int, float]:
    """After which change, and from what time on."""
    etag, modified = request.header("if-none-match"), request.header("if-modified-since")
    since = 0.0
    if modified is not None:
        try:
            since = parsedate_to_datetime(modified).timestamp()
        except (TypeError, ValueError) as error:
            raise BadRequest("The header If-Modified-Since is not a date of RFC 1123.") from error
    if etag is None:
        return 0, since
    text = etag.strip().strip('"')
    if text == "*":
        return container.store.lsn, since
    if not text.isdecimal() or len(text) > 18:
        raise BadRequest("The header If-None-Match is no etag of this change feed.")
    return int(text), since
