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
from service.local.cosmos.plain_upserts import read_plain_upserts, takes_plain_upserts, write_plain_upserts
from service.local.cosmos.ranges import Range
from service.local.cosmos.wire import Request, Response, parse_json

MAX_OPERATIONS: Final = 100
MAX_BYTES: Final = 2 * 1024 * 1024
NO_OPERATIONS: Final = "Batch request has no operations."
WRONG_RANGE: Final = "The partition key does not belong to the range that the request names."
TOO_MANY: Final = "Batch request has more operations than what is supported."


def serve_batch(container: Container, request: Request) -> Response:
    """Run the batch in the request."""
    minimal = request.header("prefer") == "return=minimal"
    if request.flag("x-ms-cosmos-batch-atomic"):
        entries = _entries(request)
        key = _key(container, request)
        place = _place_of_key(container, request, key)
        before = place.budget.total
        outcomes = run_atomic(container, [_operation(entry, key) for entry in entries], place)
        answers = [_answer(outcome, entry, minimal) for outcome, entry in zip(outcomes, entries, strict=True)]
        mixed = any(outcome.status >= 300 for outcome in outcomes)
    else:
        place = _place(container, request)
        check_budget(container, place)
        before = place.budget.total
        upserts = None
        if takes_plain_upserts(container, place):
            upserts = read_plain_upserts(container, place, request.body)
        if upserts is None or len(upserts) > MAX_OPERATIONS:
            answers, mixed = _bulk(container, request, place, minimal)
        else:
            answers, mixed = write_plain_upserts(container, place, upserts, minimal=minimal), False
    charge = round(place.budget.total - before, 2)
    return Response(207 if mixed else 200, container.headers(place), f"[{','.join(answers)}]".encode(), charge)


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


def _key(container: Container, request: Request) -> KeyValue:
    text = request.header("x-ms-documentdb-partitionkey")
    if text is None:
        raise BadRequest("PartitionKey value must be supplied for this operation.")
    return container.rules.keys.parse(text)


def _place_of_key(container: Container, request: Request, key: KeyValue) -> Range:
    """Where an atomic batch goes."""
    place = container.route(key)
    range_id = request.range_id
    if range_id is not None and container.ranges.by_id(range_id) is not place:
        raise BadRequest(WRONG_RANGE, 1001)
    return place


def _place(container: Container, request: Request) -> Range:
    """Where a bulk request goes."""
    range_id = request.range_id
    if range_id is None:
        raise BadRequest("A batch that is not atomic must name its partition key range.")
    return container.ranges.by_id(range_id)


def _bulk(container: Container, request: Request, place: Range, minimal: bool) -> tuple[list[str], bool]:
    """The answer to each entry, and whether any of them was refused."""
    go_on = request.header("x-ms-cosmos-batch-continue-on-error", "true").lower() != "false"
    entries = _entries(request)
    answers: list[str] = []
    mixed = False
    for entry in entries:
        outcome = _one(container, place, entry)
        answers.append(_answer(outcome, entry, minimal))
        mixed = mixed or outcome.status >= 300
        if outcome.status >= 400 and not go_on:
            left = len(entries) - len(answers)
            answers += [_answer(Outcome(FAILED_DEPENDENCY, 0.0), entry, minimal)] * left
            break
    return answers, mixed


def _one(container: Container, place: Range, entry: dict[str, Any]) -> Outcome:
    try:
        key = container.rules.keys.parse(entry["partitionKey"])
        if container.route(key) is not place:
            raise BadRequest(WRONG_RANGE, 1001)
        return run(container, _operation(entry, key), place)
    except (KeyError, TypeError, AttributeError):
        error = BadRequest("An operation of a bulk request needs its partition key as a text.")
        return Outcome(400, 0.0, error=error)
    except CosmosError as refused:
        return Outcome(refused.status, 0.0, error=refused)


def _operation(entry: dict[str, Any], key: KeyValue) -> Operation:
    return Operation(
        entry.get("operationType", ""),
        key,
        entry.get("id"),
        entry.get("resourceBody"),
        entry.get("ifMatch"),
        entry.get("ifNoneMatch"),
    )


def _answer(outcome: Outcome, entry: dict[str, Any], minimal: bool) -> str:
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
    return orjson.dumps(result).decode()
