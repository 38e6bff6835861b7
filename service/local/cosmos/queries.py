"""Queries and feeds on the wire: over a partition key, a range, a part of one, or everything."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import orjson

from service.local.cosmos.container import Container
from service.local.cosmos.documents import Document
from service.local.cosmos.errors import BadRequest
from service.local.cosmos.execution import check_budget
from service.local.cosmos.paging import Page, page_of_query
from service.local.cosmos.scope import Scope
from service.local.cosmos.sql.execute import Executable
from service.local.cosmos.sql.parser import parse
from service.local.cosmos.sql.plan import ALL_FEATURES, needs_plan, query_plan
from service.local.cosmos.sql.predicate import key_components
from service.local.cosmos.throughput import query_charge
from service.local.cosmos.wire import Request, Response, json_response, parse_object

ALL_ITEMS: Final = "SELECT * FROM c"
CROSS_PARTITION_OFF: Final = (
    "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, "
    "specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
)
NOT_SERVABLE: Final = (
    "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) "
    "exception that all newer clients will know how to handle gracefully. This exception is traced, but unless you see "
    "it bubble up as an exception (which only happens on older SDK clients), then you can safely ignore this message."
)
METRICS: Final = (
    "totalExecutionTimeInMs=0.10;queryCompileTimeInMs=0.01;queryLogicalPlanBuildTimeInMs=0.01;"
    "queryPhysicalPlanBuildTimeInMs=0.01;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=0.05;"
    "indexLookupTimeInMs=0.00;documentLoadTimeInMs=0.01;systemFunctionExecuteTimeInMs=0.00;"
    "userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount={scanned};retrievedDocumentSize={read};"
    "outputDocumentCount={count};outputDocumentSize={size};writeOutputTimeInMs=0.00;indexUtilizationRatio=1.00"
)


def serve_query(container: Container, request: Request) -> Response:
    """Answer a query, or a request for its plan."""
    text, parameters = _spec(request)
    query = parse(text)
    keys = container.rules.keys
    components = key_components(query, keys.steps, parameters)
    if request.flag("x-ms-cosmos-is-query-plan-request"):
        features = request.header("x-ms-cosmos-supported-query-features", "").split(",")
        epk = None if components is None else keys.of(components).epk
        return json_response(query_plan(query, parameters, {one.strip() for one in features}, epk))
    scope = Scope.of_request(container, request)
    if scope.everywhere and components is not None:
        scope = Scope.of_key(container, keys.of(components))
    if scope.everywhere:
        if not request.flag("x-ms-documentdb-query-enablecrosspartition"):
            raise BadRequest(CROSS_PARTITION_OFF)
        if needs_plan(query):
            plan = query_plan(query, parameters, ALL_FEATURES)
            raise BadRequest(NOT_SERVABLE, 1004, orjson.dumps(plan).decode())
    return _answer(container, request, scope, Executable(query, parameters))


def serve_feed(container: Container, request: Request) -> Response:
    """All documents, page by page."""
    scope = Scope.of_request(container, request)
    return _answer(container, request, scope, Executable(parse(ALL_ITEMS), {}))


def query_plain(request: Request, rows: list[dict[str, Any]], name: str) -> Response:
    """A query over databases, containers or offers."""
    text, parameters = _spec(request)
    found = Executable(parse(text), parameters).over(rows)
    return json_response({"_rid": "", name: found, "_count": len(found)}, headers={"x-ms-item-count": str(len(found))})


def _answer(container: Container, request: Request, scope: Scope, query: Executable) -> Response:
    for place in scope.places:
        check_budget(container, place)
    page = page_of_query(query, container.store.in_order(), _filter(scope), container.system.rid, request)
    body = orjson.dumps({"_rid": container.rid, "Documents": page.items, "_count": len(page.items)})
    charge = query_charge(page.scanned, len(body))
    for place in scope.places:
        place.budget.spend(charge / len(scope.places))
    scanned = 0 if query.counts_only else page.scanned  # the index alone knows how many there are
    return Response(200, _headers(container, request, scope, replace(page, scanned=scanned)), body, charge)


def _filter(scope: Scope) -> Callable[[Document], bool]:
    if scope.everywhere:
        return lambda document: True  # noqa: ARG005
    return scope.has


def _headers(container: Container, request: Request, scope: Scope, page: Page) -> dict[str, str]:
    headers = container.headers(*scope.places) | {"x-ms-item-count": str(len(page.items))}
    if page.next is not None:
        headers["x-ms-continuation"] = page.next
    if request.flag("x-ms-documentdb-populatequerymetrics"):
        size = len(orjson.dumps(page.items))
        figures = METRICS.format(
            scanned=page.scanned, read=size if page.scanned else 0, size=size, count=len(page.items)
        )
        headers["x-ms-documentdb-query-metrics"] = figures
    if request.flag("x-ms-cosmos-populateindexmetrics"):
        headers["x-ms-cosmos-index-utilization"] = _index_metrics(container)
    return headers


def _index_metrics(container: Container) -> str:
    """Which indexes a query used: here always that of the partition key. Base64 of JSON, as the SDKs decode it."""
    names = [f"{path}/?" for path in container.rules.keys.paths]
    used = [{"FilterExpression": "", "IndexSpec": n, "FilterPreciseSet": True, "IndexPreciseSet": True} for n in names]
    single = [one | {"IndexImpactScore": "High"} for one in used]
    lists: dict[str, list[Any]] = {"UtilizedSingleIndexes": single, "PotentialSingleIndexes": []}
    lists |= {"UtilizedCompositeIndexes": [], "PotentialCompositeIndexes": []}
    return b64encode(orjson.dumps(lists)).decode()


def _spec(request: Request) -> tuple[str, dict[str, Any]]:
    """The text of the query and its parameters by name."""
    spec = parse_object(request.body)
    text, given = spec.get("query"), spec.get("parameters") or []
    if not isinstance(text, str) or not isinstance(given, list):
        raise BadRequest("The query spec needs a text as its query and a list as its parameters.")
    parameters: dict[str, Any] = {}
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise BadRequest("A parameter of the query has no name.")
        parameters[one["name"]] = one.get("value")
    return text, parameters
