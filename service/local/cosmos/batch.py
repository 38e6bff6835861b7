"""Batches on the wire: transactional ones, and bulk as the JS and Java SDKs send it.

Both are a POST to `docs` with `x-ms-cosmos-is-batch-request`. Transactional: `batch-atomic: true` and the partition key
in the header. Bulk: `batch-atomic: false`, the range id in the header and the partition key of each operation in the
body, as a text that holds JSON (captured from @azure/cosmos `executeBulkOperations`).
"""

from typing import Any, Final

import orjson

from service.local.cosmos.container import Container
from service.local.cosmos.errors import BadRequest, CosmosError, Throttled
from service.local.cosmos.execution import FAILED_DEPENDENCY, check_budget, run, run_atomic
from service.local.cosmos.operations import Operation, Outcome
from service.local.cosmos.partition_key import KeyValue
from service.local.cosmos.plain_upserts import plain_upserts
from service.local.cosmos.ranges import Range
from service.local.cosmos.wire import Request, Response, parse_json

MAX_OPERATIONS: Final = 100
MAX_BYTES: Final = 2 * 1024 * 1024
NO_OPERATIONS: Final = "Batch request has no operations."
TOO_MANY: Final = "Batch request has more operations than what is supported."


def serve_batch(container: Container, request: Request) -> Response:
    """Run the batch in the request."""
    entries = _entries(request)
    atomic = request.flag("x-ms-cosmos-batch-atomic")
    minimal = request.header("prefer") == "return=minimal"
    if atomic:
        place, outcomes = _atomic(container, request, entries)
    else:
        place, outcomes = _bulk(container, request, entries)
    mixed = any(outcome.status >= 300 for outcome in outcomes)
    bodies = [_result(outcome, entry, minimal) for outcome, entry in zip(outcomes, entries, strict=True)]
    charge = round(sum(outcome.charge for outcome in outcomes), 2)
    headers = {"x-ms-session-token": container.session_token(place.id), "lsn": str(container.store.lsn)}
    return Response(207 if mixed else 200, headers, orjson.dumps(bodies), charge)


def _entries(request: Request) -> list[Any]:
    if len(request.body) > MAX_BYTES:
        raise CosmosError(413, "Request size is too large")
    entries = parse_json(request.body)
    if not isinstance(entries, list):
        raise BadRequest("The batch request is not an array of operations.")
    if not entries:
        raise BadRequest(NO_OPERATIONS)
    if len(entries) > MAX_OPERATIONS:
        raise BadRequest(TOO_MANY)
    if not all(isinstance(entry, dict) for entry in entries):
        raise BadRequest("An operation of the batch is not an object.")
    return entries


def _atomic(container: Container, request: Request, entries: list[Any]) -> tuple[Range, list[Outcome]]:
    text = request.header("x-ms-documentdb-partitionkey")
    if text is None:
        raise BadRequest("PartitionKey value must be supplied for this operation.")
    key = container.rules.keys.parse(text)
    place = container.route(key)
    range_id = request.header("x-ms-documentdb-partitionkeyrangeid")
    if range_id is not None and container.ranges.by_id(range_id) is not place:
        raise BadRequest("The partition key does not belong to the range that the request names.", 1001)
    return place, run_atomic(container, [_operation(entry, key) for entry in entries], place)


def _bulk(container: Container, request: Request, entries: list[Any]) -> tuple[Range, list[Outcome]]:
    range_id = request.header("x-ms-documentdb-partitionkeyrangeid")
    if range_id is None:
        raise BadRequest("A batch that is not atomic must name its partition key range.")
    place = container.ranges.by_id(range_id)
    check_budget(container, place)
    go_on = request.header("x-ms-cosmos-batch-continue-on-error", "true").lower() != "false"
    outcomes: list[Outcome] = []
    parse, route = container.rules.keys.parse, container.route
    plain = plain_upserts(container, place)
    for entry in entries:
        if plain is not None and entry.get("operationType") == "Upsert":
            done = plain(entry)
            if done is not None:
                outcomes.append(done)
                continue
        try:
            key = parse(entry["partitionKey"])
            if route(key) is not place:
                raise BadRequest("The partition key does not belong to the range that the request names.", 1001)
            outcome = run(container, _operation(entry, key), place)
        except (KeyError, TypeError, AttributeError):
            error: CosmosError = BadRequest("An operation of a bulk request needs its partition key as a text.")
            outcome = Outcome(400, 0.0, error=error)
        except CosmosError as refused:
            outcome = Outcome(refused.status, 0.0, error=refused)
        outcomes.append(outcome)
        if outcome.status >= 400 and not go_on:
            outcomes += [Outcome(FAILED_DEPENDENCY, 0.0) for _ in range(len(entries) - len(outcomes))]
            break
    return place, outcomes


def _operation(entry: dict[str, Any], key: KeyValue) -> Operation:
    return Operation(
        entry.get("operationType", ""),
        key,
        entry.get("id"),
        entry.get("resourceBody"),
        entry.get("ifMatch"),
        entry.get("ifNoneMatch"),
    )


def _result(outcome: Outcome, entry: dict[str, Any], minimal: bool) -> dict[str, Any]:
    """One entry of the answer: names as the SDKs' parsers read them."""
    result: dict[str, Any] = {"statusCode": outcome.status, "requestCharge": outcome.charge}
    document = outcome.document
    if document is not None:
        result["eTag"] = document.etag
        wanted = entry["operationType"] == "Read" or not (minimal or entry.get("minimalReturnPreference"))
        if wanted and outcome.status != 304:
            result["resourceBody"] = orjson.Fragment(document.body)
    if outcome.error is not None:
        result["subStatusCode"] = outcome.error.sub_status
        result["message"] = outcome.error.message
        if isinstance(outcome.error, Throttled):
            result["retryAfterMilliseconds"] = outcome.error.retry_after_ms
        elif "x-ms-retry-after-ms" in outcome.error.headers:
            result["retryAfterMilliseconds"] = int(outcome.error.headers["x-ms-retry-after-ms"])
    return result
