"""Plain upserts of a bulk request in one stretch of code: what a load test sends by the hundred thousand.

The same as `execution.run` for an upsert without conditions into a container without TTL, unique keys, throttling,
faults or a disk, in a quarter of the time; a test holds the two against each other. Whatever is not plain is left to
the long way.
"""

from collections.abc import Iterable
from typing import Any, Final

import orjson

from service.local.cosmos.container import Container
from service.local.cosmos.documents import NEVER, Document
from service.local.cosmos.errors import CosmosError
from service.local.cosmos.indexing import scalars
from service.local.cosmos.item_rules import BAD_ID, LOGICAL_PARTITION_BYTES, MAX_ITEM_BYTES
from service.local.cosmos.journal import Journal
from service.local.cosmos.ranges import Range
from service.local.cosmos.system_properties import NAMES, etag
from service.local.cosmos.throughput import write_cents
from service.local.cosmos.write_log import Entry

MAX_PLAIN_ID_CHARS: Final = 255
MAX_PLAIN_BYTES: Final = MAX_ITEM_BYTES // 2
NOT_PLAIN: Final = NAMES | {"ttl"}
CREATED: Final = '{"statusCode":201,"requestCharge":'
REPLACED: Final = '{"statusCode":200,"requestCharge":'


def takes_plain_upserts(container: Container, place: Range) -> bool:
    """Whether the short way may be gone at all."""
    rules = container.rules
    return (
        rules.keys.only is not None
        and not container.faults.armed
        and not place.budget.limited
        and not rules.unique
        and rules.default_ttl is None
        and rules.indexing.everything
        and rules.partition_limit_bytes >= LOGICAL_PARTITION_BYTES
        and type(container.journal) is Journal
        and not container.write_log.keep_bodies
    )


def plain_upserts(container: Container, place: Range, entries: Iterable[dict[str, Any]], *, minimal: bool) -> list[str]:
    """Store the documents of the first entries, as far as they are plain; the answer to each, as JSON."""
    keys, parse, path = container.rules.keys.cache, container.rules.keys.parse, container.rules.keys.only
    store, system, low, high, range_id = container.store, container.system, place.low, place.high, place.id
    size = system.size
    documents, numbers, version, lsn = store.for_writing(), store.numbers, store.etags, store.lsn
    now = int(container.now())
    tail = etag(0, now)[9:-1] + ('\\""' if minimal else '\\"","resourceBody":')
    charges: dict[int, str] = {}
    new, dumps, bad_id, plain = tuple.__new__, orjson.dumps, BAD_ID.search, NOT_PLAIN.isdisjoint
    answers: list[str] = []
    writes: list[Entry] = []
    spent_cents = 0
    for entry in entries:
        try:
            if len(entry) != 3 or entry["operationType"] != "Upsert":
                break
            body, key_text = entry["resourceBody"], entry["partitionKey"]
            key = keys.get(key_text) or parse(key_text)
            document_id, value = body["id"], body[path]
            if (
                not low <= key.epk < high
                or value.__class__ is not str
                or value != key.components[0]
                or not 0 < len(document_id) < MAX_PLAIN_ID_CHARS
                or bad_id(document_id)
                or not plain(body)
            ):
                break
            text = dumps(body)[:-1]
            # Without another brace or bracket every value is a scalar.
            flat = text.rfind(b"{") == 0 and b"[" not in text
            values = len(body) if flat else scalars(body.values())
        except (KeyError, TypeError, RecursionError, CosmosError):
            break  # something is missing or of another kind: the long way says what
        if len(text) > MAX_PLAIN_BYTES:
            break
        name = (key.text, document_id)
        old = documents.pop(name, None)
        if old is None:
            number = numbers = numbers + 1
            status, head = 201, CREATED
        else:
            number = old.number
            status, head = 200, REPLACED
        version += 1
        lsn += 1
        # As Document(..) does it, in half the time.
        document = new(Document, (document_id, key, text, number, version, lsn, now, NEVER, (), system))
        documents[name] = document
        writes.append(("Upsert", document_id, key.text, status, 0, lsn, range_id, None))
        cents = write_cents(len(text) + size, values)
        spent_cents += cents
        charge = charges.get(cents) or charges.setdefault(cents, str(cents / 100))
        whole = "" if minimal else document.body.decode()
        answers.append(f'{head}{charge},"eTag":"\\"{version:08x}{tail}{whole}}}')
    store.numbers, store.etags, store.lsn = numbers, version, lsn
    place.budget.total += spent_cents / 100
    container.write_log.extend(writes)
    return answers
