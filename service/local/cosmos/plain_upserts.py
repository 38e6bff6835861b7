"""Plain upserts of a bulk request in one stretch of code: what a load test sends by the hundred thousand.

The same as the long way (`batch`, `execution.run`) for a request that has nothing but upserts without conditions, in
the compact form in which SDKs write them, into a container without TTL, unique keys, throttling, faults or a disk; a
test holds the two against each other. (Documents are kept as they were written here: white space, and names that come
twice, count in their size.) A request that has anything else in it goes the long way as a whole.
"""

import re
from typing import Final

import orjson

from service.local.cosmos.container import Container
from service.local.cosmos.documents import NEVER, Document
from service.local.cosmos.errors import CosmosError
from service.local.cosmos.indexing import scalars
from service.local.cosmos.item_rules import LOGICAL_PARTITION_BYTES, MAX_ITEM_BYTES
from service.local.cosmos.journal import Journal
from service.local.cosmos.partition_key import MAX_CACHED_KEYS, KeyValue
from service.local.cosmos.ranges import Range
from service.local.cosmos.system_properties import NAMES, etag
from service.local.cosmos.throughput import CENTS_PER_INDEXED_PATH, WRITE_BASE_CENTS, WRITE_CENTS_PER_KB
from service.local.cosmos.write_log import Entry

MAX_PLAIN_ID_CHARS: Final = 255
MAX_PLAIN_BYTES: Final = MAX_ITEM_BYTES // 2
NOT_PLAIN: Final = NAMES | {"ttl"}
NOT_PLAIN_IDS: Final = re.compile(r"[/\\?#]| $", re.MULTILINE)
HEAD: Final = b'{"operationType":"Upsert","partitionKey":"'
MIDDLE: Final = b'","resourceBody":'
CLOSING: Final = ord("}")
CREATED: Final = '{"statusCode":201,"requestCharge":'
REPLACED: Final = '{"statusCode":200,"requestCharge":'


PlainUpsert = tuple[str, KeyValue, bytes, int]
"""Id, key, document as JSON, and how many values there are in it: all are indexed."""


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


def read_plain_upserts(container: Container, place: Range, payload: bytes) -> list[PlainUpsert] | None:
    """The upserts of a request, or None where not all of it is plain.

    The request is cut where one operation follows another. That could also stand inside a document; but if every piece
    is a key and a whole document, then all cuts were between operations.
    """
    if not payload.startswith(b"[" + HEAD) or not payload.endswith(b"}]") or len(payload) > MAX_PLAIN_BYTES:
        return None
    pieces = payload[len(HEAD) + 1 : -2].split(b"}," + HEAD)
    known, path, plain, loads = place.plain_keys, container.rules.keys.only, NOT_PLAIN.isdisjoint, orjson.loads
    found: list[PlainUpsert] = []
    try:
        for piece in pieces:
            key_text, _, text = piece.partition(MIDDLE)
            body = loads(text)
            key = known.get(key_text) or _learn(container, place, key_text)
            if body[path] != key.components[0] or not plain(body) or text[-1] != CLOSING:
                return None
            # Without another brace or bracket every value is a scalar.
            flat = text.find(b"{", 1) < 0 and b"[" not in text
            found.append((body["id"], key, text, len(body) if flat else scalars(body.values())))
        ids = [upsert[0] for upsert in found]
        odd = NOT_PLAIN_IDS.search("\n".join(ids)) or not all(ids) or max(map(len, ids)) > MAX_PLAIN_ID_CHARS
    except (KeyError, TypeError, ValueError, RecursionError, CosmosError):
        return None  # something is missing or of another kind: the long way says what
    return None if odd else found


def _learn(container: Container, place: Range, key_text: bytes) -> KeyValue:
    """A key of this range. Raises ValueError where it is not one plain text."""
    value = key_text[3:-3].decode()
    if key_text != b'[\\"%b\\"]' % value.encode() or not value.isprintable() or '"' in value or "\\" in value:
        raise ValueError(value)
    key = container.rules.keys.of((value,))
    if not place.low <= key.epk < place.high:
        raise ValueError(value)
    if len(place.plain_keys) >= MAX_CACHED_KEYS:
        place.plain_keys.clear()
    place.plain_keys[key_text] = key
    return key


def write_plain_upserts(container: Container, place: Range, upserts: list[PlainUpsert], *, minimal: bool) -> list[str]:
    """Store them; the answer to each, as JSON."""
    store, system, range_id = container.store, container.system, place.id
    size = system.size
    documents, numbers, version, lsn = store.for_writing(), store.numbers, store.etags, store.lsn
    now = int(container.now())
    tail = etag(0, now)[9:-1] + ('\\""' if minimal else '\\"","resourceBody":')
    charges: dict[int, str] = {}
    new = tuple.__new__
    answers: list[str] = []
    writes: list[Entry] = []
    spent_cents = 0
    for document_id, key, text, values in upserts:
        key_text = key.text
        name = (key_text, document_id)
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
        writes.append(("Upsert", document_id, key_text, status, 0, lsn, range_id, None))
        # As `write_cents` does it.
        cents = WRITE_BASE_CENTS + WRITE_CENTS_PER_KB * (len(text) + size) // 1024 + CENTS_PER_INDEXED_PATH * values
        spent_cents += cents
        charge = charges.get(cents) or charges.setdefault(cents, str(cents / 100))
        whole = "" if minimal else document.body.decode()
        answers.append(f'{head}{charge},"eTag":"\\"{version:08x}{tail}{whole}}}')
    store.numbers, store.etags, store.lsn = numbers, version, lsn
    place.budget.total += spent_cents / 100
    container.write_log.extend(writes)
    return answers
