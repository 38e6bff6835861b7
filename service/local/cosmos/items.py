"""Documents on the wire: single reads and writes, feeds, queries and batches under `docs`."""

from collections.abc import Mapping

from service.local.cosmos.batch import serve_batch
from service.local.cosmos.change_feed import serve_change_feed
from service.local.cosmos.container import Container
from service.local.cosmos.errors import BadRequest, CosmosError
from service.local.cosmos.execution import run
from service.local.cosmos.operations import Operation
from service.local.cosmos.partition_key import KeyValue
from service.local.cosmos.queries import serve_feed, serve_query
from service.local.cosmos.wire import Request, Response, parse_object

ITEM_METHODS: Mapping[str, str] = {"GET": "Read", "PUT": "Replace", "PATCH": "Patch", "DELETE": "Delete"}
FEW_COMPONENTS = (
    "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection."
)


def kind_of(request: Request) -> str:
    """What a request under `docs` means to do, by the words that faults are armed with."""
    if len(request.path) > 5:
        return ITEM_METHODS.get(request.method, "")
    if request.method == "GET":
        return "Feed"
    if request.flag("x-ms-cosmos-is-batch-request"):
        return "Batch"
    if request.is_query or request.flag("x-ms-cosmos-is-query-plan-request"):
        return "Query"
    return "Upsert" if request.flag("x-ms-documentdb-is-upsert") else "Create"


def serve_items(container: Container, request: Request) -> Response:
    """Answer a request to `docs` or to one document."""
    container.expire()
    kind = kind_of(request)
    if len(request.path) == 5:
        if kind == "Batch":
            return serve_batch(container, request)
        if kind == "Query":
            return serve_query(container, request)
        if request.method == "GET":
            return (
                serve_feed(container, request)
                if request.header("a-im") is None
                else serve_change_feed(container, request)
            )
        if request.method != "POST":
            raise CosmosError(405, "The requested verb is not supported.")
        return _serve_one(
            container, request, Operation(kind, _key(container, request), None, parse_object(request.body))
        )
    if not kind:
        raise CosmosError(405, "The requested verb is not supported.")
    key = _key(container, request)
    name = _resolve_rid(container, request.path[5], key)
    body = parse_object(request.body) if kind in {"Replace", "Patch"} else None
    return _serve_one(container, request, Operation(kind, key, name, body))


def _serve_one(container: Container, request: Request, operation: Operation) -> Response:
    operation.if_match = request.header("if-match")
    operation.if_none_match = request.header("if-none-match")
    place = container.route(operation.key)
    outcome = run(container, operation, place)
    if outcome.error is not None:
        raise outcome.error
    headers = container.headers(place)
    document = outcome.document
    if document is None:
        return Response(outcome.status, headers, b"", outcome.charge)
    headers |= {"etag": document.etag, "x-ms-item-lsn": str(document.lsn)}
    minimal = operation.kind != "Read" and request.header("prefer") == "return=minimal"
    body = b"" if minimal or outcome.status == 304 else document.body
    return Response(outcome.status, headers, body, outcome.charge)


def _key(container: Container, request: Request) -> KeyValue:
    text = request.header("x-ms-documentdb-partitionkey")
    keys = container.rules.keys
    if text is None:
        raise BadRequest("PartitionKey value must be supplied for this operation.")
    components = keys.components(text)
    if components and len(components) < len(keys.paths):
        raise BadRequest(FEW_COMPONENTS, 1001)
    return keys.parse(text)


def _resolve_rid(container: Container, name: str, key: KeyValue) -> str:
    """The id of a document that a link names by resource id, or the name itself."""
    if container.store.get((key.text, name)) is not None or not name.endswith("=="):
        return name
    for document in container.store.in_order():
        if document.key.text == key.text and container.system.rid(document.number) == name:
            return document.id
    return name
