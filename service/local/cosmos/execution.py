"""Running operations against a container: routing, faults, throttling, charging, writing, logging."""

from service.local.cosmos.container import Container
from service.local.cosmos.documents import Transaction
from service.local.cosmos.errors import CosmosError, Throttled
from service.local.cosmos.operations import WRITES, Operation, Outcome, decide
from service.local.cosmos.ranges import Range

FAILED_DEPENDENCY = 424


def check_budget(container: Container, place: Range) -> None:
    """429 if the range has nothing left to spend."""
    wait = place.budget.wait_ms(container.clock())
    if wait:
        raise Throttled(wait)


def run(container: Container, operation: Operation, place: Range) -> Outcome:
    """Do one operation by itself; errors come back as outcomes."""
    try:
        if container.faults.armed:
            _operation_fault(container, operation, place)
        if place.budget.limited:
            check_budget(container, place)
        outcome = decide(operation, container.store, container.rules, container.minter)
    except CosmosError as error:
        place.budget.spend(error.charge)
        _log(container, operation, place, error.status, error.sub_status, None)
        return Outcome(error.status, error.charge, error=error)
    status, charge, _, put, delete, _ = outcome
    if delete is not None:
        container.delete(delete)
    if put is not None:
        container.put(put)
    place.budget.spend(charge)
    if put is not None:
        store = container.store
        store.lsn = put.lsn
        container.write_log.add(operation.kind, put.id, operation.key.text, status, 0, put.lsn, place.id, put)
    elif delete is not None:
        container.store.lsn += 1
        _log(container, operation, place, status, 0, outcome)
    return outcome


def run_atomic(container: Container, operations: list[Operation], place: Range) -> list[Outcome]:
    """Do all operations or none. If one fails, the others are 424 and nothing is written.

    Charged as a whole, into debt: a batch that costs more than a second's share could never pass otherwise.
    """
    check_budget(container, place)
    transaction = Transaction(container.store)
    outcomes: list[Outcome] = []
    for operation in operations:
        try:
            if container.faults.armed:
                _operation_fault(container, operation, place)
            outcome = decide(operation, transaction, container.rules, container.minter)
        except CosmosError as error:
            place.budget.spend(error.charge)
            return _rolled_back(container, operations, place, len(outcomes), error)
        if outcome.delete is not None:
            transaction.delete(outcome.delete)
        if outcome.put is not None:
            transaction.put(outcome.put)
        outcomes.append(outcome)
    if transaction.changed:
        container.store.lsn += 1
    for name, document in transaction.changes():
        if document is None:
            container.delete(name)
        else:
            container.put(document)
    place.budget.spend(sum(outcome.charge for outcome in outcomes))
    for operation, outcome in zip(operations, outcomes, strict=True):
        _log(container, operation, place, outcome.status, 0, outcome)
    return outcomes


def _rolled_back(
    container: Container, operations: list[Operation], place: Range, failed: int, error: CosmosError
) -> list[Outcome]:
    outcomes = [Outcome(FAILED_DEPENDENCY, 0.0) for _ in operations]
    outcomes[failed] = Outcome(error.status, error.charge, error=error)
    for operation, outcome in zip(operations, outcomes, strict=True):
        _log(container, operation, place, outcome.status, outcome.sub_status, None)
    return outcomes


def _operation_fault(container: Container, operation: Operation, place: Range) -> None:
    fault = container.faults.take("operation", operation.kind, place.id, document_id(operation))
    error = fault.error() if fault else None
    if error is not None:
        raise error


def document_id(operation: Operation) -> str:
    """The id that an operation names, or whose body has it."""
    if operation.id is not None:
        return operation.id
    body = operation.body
    return str(body.get("id", "")) if isinstance(body, dict) else ""


def _log(
    container: Container, operation: Operation, place: Range, status: int, sub_status: int, outcome: Outcome | None
) -> None:
    if operation.kind not in WRITES:
        return
    put = outcome.put if outcome else None
    lsn = put.lsn if put else container.store.lsn if outcome else 0
    name = put.id if put else document_id(operation)
    container.write_log.add(operation.kind, name, operation.key.text, status, sub_status, lsn, place.id, put)
