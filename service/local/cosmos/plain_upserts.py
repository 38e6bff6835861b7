"""Plain upserts of a bulk request in one stretch of code: what a load test sends by the hundred thousand.

The same as `execution.run` for an upsert without conditions into a container without TTL, unique keys, throttling,
faults or a disk, in a third of the calls; a test holds the two against each other. Whatever is not plain is left to
the long way.
"""

from binascii import b2a_base64
from collections.abc import Callable
from typing import Any

import orjson

from service.local.cosmos.container import Container
from service.local.cosmos.documents import NEVER, Document
from service.local.cosmos.errors import CosmosError
from service.local.cosmos.indexing import SYSTEM, scalars
from service.local.cosmos.item_rules import BAD_ID, LOGICAL_PARTITION_BYTES, MAX_ITEM_BYTES
from service.local.cosmos.journal import Journal
from service.local.cosmos.operations import Outcome
from service.local.cosmos.ranges import Range
from service.local.cosmos.throughput import write_charge

MAX_PLAIN_ID_CHARS = 255
PlainUpsert = Callable[[dict[str, Any]], Outcome | None]
"""Stores the document of an entry; None if it is not plain, and then nothing has happened."""


def plain_upserts(container: Container, place: Range) -> PlainUpsert | None:
    """The short way for one request to a range, if the container allows it."""
    rules, budget = container.rules, place.budget
    path = rules.keys.only
    if (
        path is None
        or container.faults.armed
        or budget.limited
        or rules.unique
        or rules.default_ttl is not None
        or not rules.indexing.everything
        or rules.partition_limit_bytes < LOGICAL_PARTITION_BYTES
        or type(container.journal) is not Journal
    ):
        return None
    keys, parse, routes, route = rules.keys.cache, rules.keys.parse, container.routes, container.route
    store, log, minter = container.store, container.write_log.add, container.minter
    documents, versions = store.for_writing()
    prefix = minter.prefix
    bad_id, plain, dumps, range_id = BAD_ID.search, SYSTEM.isdisjoint, orjson.dumps, place.id
    head, link, mark = minter.links
    now, suffix, tail = minter.stamp()

    def upsert(entry: dict[str, Any]) -> Outcome | None:  # noqa: PLR0911 - each is a reason to take the long way
        body, key_text = entry.get("resourceBody"), entry.get("partitionKey")
        if len(entry) != 3 or body.__class__ is not dict or key_text.__class__ is not str:
            return None
        try:
            key = keys.get(key_text) or parse(key_text)
        except CosmosError:
            return None
        if (routes.get(key.epk) or route(key)) is not place:
            return None
        document_id, value = body.get("id"), body.get(path)
        if (
            document_id.__class__ is not str
            or not 0 < len(document_id) < MAX_PLAIN_ID_CHARS
            or bad_id(document_id)
            or value.__class__ is not str
            or value != key.components[0]
            or "ttl" in body
            or not plain(body)
        ):
            return None
        try:
            text, values = dumps(body), scalars(body.values())
        except (orjson.JSONEncodeError, RecursionError):
            return None
        if len(text) > MAX_ITEM_BYTES // 2:
            return None
        name = (key.text, document_id)
        old = documents.get(name)
        if old is None:
            number = store.numbers = store.numbers + 1
            status = 201
        else:
            number = old.number
            status = 200
        store.etags += 1
        store.lsn = lsn = store.lsn + 1
        etag = f"{store.etags:08x}{suffix}"
        rid = b2a_base64(prefix + number.to_bytes(8, "little"), newline=False).replace(b"/", b"-")
        raw = b"".join((text[:-1], head, rid, link, rid, mark, etag.encode(), tail))
        document = Document(document_id, key, raw, f'"{etag}"', number, lsn, now, NEVER)
        documents[name] = document
        versions.append((lsn, name))
        charge = write_charge(len(raw), values)
        budget.total += charge
        log("Upsert", document_id, key.text, status, 0, lsn, range_id, raw)
        return Outcome(status, charge, document)

    return upsert
