"""Queries and feeds on the wire."""

from typing import Any

import orjson

from service.local.cosmos.container import Container
from service.local.cosmos.errors import BadRequest
from service.local.cosmos.wire import Request, Response, json_response, parse_object


def serve_query(container: Container, request: Request) -> Response:
    """Answer a query."""
    text = str(parse_object(request.body).get("query", "")).lower()
    if "count(" in text:
        return json_response({"_rid": container.rid, "Documents": [container.count()], "_count": 1})
    if text.startswith("select * from c"):
        return serve_feed(container, request)
    raise BadRequest("not yet")


def serve_feed(container: Container, request: Request) -> Response:  # noqa: ARG001
    """All documents."""
    bodies = [orjson.Fragment(document.body) for document in container.store.in_order()]
    return json_response({"_rid": container.rid, "Documents": bodies, "_count": len(bodies)})


def query_plain(request: Request, rows: list[dict[str, Any]], name: str) -> Response:
    """A query over databases, containers or offers."""
    parse_object(request.body)
    return json_response({"_rid": "", name: rows, "_count": len(rows)})
