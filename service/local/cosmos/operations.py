"""Single operations on documents: what each needs, checks and changes.

`decide` looks at a view and says what would happen; nothing is written. So the same code serves single requests, bulk,
and transactional batches, whose changes count only if all of them succeed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from service.local.cosmos.documents import Document, Key, View
from service.local.cosmos.errors import BadRequest, Conflict, CosmosError, NotFound, PreconditionFailed
from service.local.cosmos.item_rules import ItemRules, check_id
from service.local.cosmos.minter import Minted, Minter
from service.local.cosmos.partition_key import KeyValue
from service.local.cosmos.patch import apply_patch
from service.local.cosmos.throughput import REFUSED_WRITE, read_charge, write_charge

ALREADY_THERE: Final = (
    "Entity with the specified id already exists in the system. Learn more: https://aka.ms/CosmosDB/sql/errors/conflict"
)


@dataclass(slots=True)
class Operation:
    """One thing to do with one document. `body` is its own copy: it becomes the document."""

    kind: str
    key: KeyValue
    id: str | None = None
    body: Any = None
    if_match: str | None = None
    if_none_match: str | None = None


class Outcome(NamedTuple):
    """What an operation comes to: a status, its cost, the document to answer with, and what changes; or the error."""

    status: int
    charge: float
    document: Document | None = None
    put: Document | None = None
    delete: Key | None = None
    error: CosmosError | None = None

    @property
    def sub_status(self) -> int:
        """What says more about an error."""
        return self.error.sub_status if self.error is not None else 0


def decide(operation: Operation, view: View, rules: ItemRules, minter: Minter) -> Outcome:
    """What the operation comes to, or the error that it meets."""
    handler = _KINDS.get(operation.kind)
    if handler is None:
        raise BadRequest(f"The operation type {operation.kind!r} is not supported.")
    return handler(operation, view, rules, minter)


def _create(operation: Operation, view: View, rules: ItemRules, minter: Minter) -> Outcome:
    body, name = _incoming(operation, rules)
    if view.get(name) is not None:
        raise Conflict(ALREADY_THERE, REFUSED_WRITE)
    return _written(minter.mint(rules, view, operation.key, body, None), rules, 201)


def _upsert(operation: Operation, view: View, rules: ItemRules, minter: Minter) -> Outcome:
    body, name = _incoming(operation, rules)
    old = view.get(name)
    # An upsert is a create first and a replace second, so a condition meets only a document that is there.
    if old is not None and (operation.if_match or operation.if_none_match):
        _check_conditions(operation, old)
    return _written(minter.mint(rules, view, operation.key, body, old), rules, 201 if old is None else 200)


def _replace(operation: Operation, view: View, rules: ItemRules, minter: Minter) -> Outcome:
    body, name = _incoming(operation, rules)
    old_name = name if operation.id is None else (name[0], operation.id)
    old = _existing(view, old_name)
    _check_conditions(operation, old)
    # The body may have another id (azure-cosmos' own test_headers counts on it): the document is renamed.
    if old_name != name and view.get(name) is not None:
        raise Conflict(ALREADY_THERE, REFUSED_WRITE)
    written = _written(minter.mint(rules, view, operation.key, body, old), rules, 200)
    return written if old_name == name else written._replace(delete=old_name)


def _patch(operation: Operation, view: View, rules: ItemRules, minter: Minter) -> Outcome:
    old = _existing(view, _named(operation))
    _check_conditions(operation, old)
    body = old.value()
    apply_patch(body, operation.body, protected=rules.keys.paths)
    rules.check_key(operation.key, body)
    return _written(minter.mint(rules, view, operation.key, body, old), rules, 200)


def _delete(operation: Operation, view: View, rules: ItemRules, minter: Minter) -> Outcome:  # noqa: ARG001 - one of a table
    name = _named(operation)
    old = _existing(view, name)
    _check_conditions(operation, old)
    return Outcome(204, write_charge(old.size, rules.indexing.count(old.text)), None, None, name)


def _read(operation: Operation, view: View, rules: ItemRules, minter: Minter) -> Outcome:  # noqa: ARG001 - as above
    document = _existing(view, _named(operation))
    if operation.if_none_match and operation.if_none_match in {"*", document.etag}:
        return Outcome(304, 1.0, document)
    return Outcome(200, read_charge(document.size), document)


_KINDS: Final[dict[str, Callable[[Operation, View, ItemRules, Minter], Outcome]]] = {
    "Create": _create,
    "Upsert": _upsert,
    "Replace": _replace,
    "Patch": _patch,
    "Delete": _delete,
    "Read": _read,
}
WRITES: Final = frozenset(_KINDS) - {"Read"}


def _incoming(operation: Operation, rules: ItemRules) -> tuple[dict[str, Any], Key]:
    """The body that is to be stored, and its name, both checked."""
    body = operation.body
    if not isinstance(body, dict):
        raise BadRequest("The request payload is invalid. Ensure to provide a valid request payload.")
    document_id = check_id(body.get("id"))
    rules.check_key(operation.key, body)
    return body, (operation.key.text, document_id)


def _named(operation: Operation) -> Key:
    if not isinstance(operation.id, str):
        raise BadRequest(f"The operation {operation.kind} names no id.")
    return operation.key.text, operation.id


def _existing(view: View, name: Key) -> Document:
    document = view.get(name)
    if document is None:
        raise NotFound(
            "Entity with the specified id does not exist in the system. More info: https://aka.ms/cosmosdb-tsg-not-found",
            charge=1.0,
        )
    return document


def _check_conditions(operation: Operation, document: Document) -> None:
    """If-Match and If-None-Match of a write."""
    match, none_match = operation.if_match, operation.if_none_match
    if (match and match not in {"*", document.etag}) or (none_match and none_match in {"*", document.etag}):
        raise PreconditionFailed(
            "Operation cannot be performed because one of the specified precondition is not met.", REFUSED_WRITE
        )


def _written(minted: Minted, rules: ItemRules, status: int) -> Outcome:
    document, values = minted
    if not rules.indexing.everything:
        values = rules.indexing.count(document.text)
    return Outcome(status, write_charge(document.size, values), document, document)
