"""Versions of documents: a body becomes a stored document with its system properties."""

from binascii import b2a_base64
from collections.abc import Callable
from typing import Any, Final

import orjson

from service.local.cosmos.documents import NEVER, Document, Store, View
from service.local.cosmos.errors import BadRequest
from service.local.cosmos.indexing import SYSTEM, scalars
from service.local.cosmos.item_rules import LOGICAL_PARTITION_BYTES, MAX_ITEM_BYTES, ItemRules
from service.local.cosmos.partition_key import KeyValue
from service.local.cosmos.resource_ids import DocumentRids

MAX_DEPTH_MESSAGE: Final = "The document is nested too deeply."
Minted = tuple[Document, int]
"""A document, and how many values it has."""


class Minter:
    """Makes versions of documents: the counters, ids and links of one container.

    The hottest place of the server: system properties are joined to the JSON text, not put into the object.
    """

    __slots__ = ("_now", "_second", "_stamp", "_store", "links", "prefix", "rid")

    def __init__(self, rids: DocumentRids, self_link: str, store: Store, now: Callable[[], float]) -> None:
        self.rid = rids.of
        self.prefix = rids.prefix
        self.links = (b',"_rid":"', b'","_self":"%sdocs/' % self_link.encode(), b'/","_etag":"\\"')
        self._store = store
        self._now = now
        self._second = -1
        self._stamp = ("", b"")

    def stamp(self) -> tuple[int, str, bytes]:
        """The second it is, and what it adds to an etag and to the end of a body."""
        now = int(self._now())
        if now != self._second:
            self._second = now
            self._stamp = (f"-0000-0000-0000-{now:012x}", b'\\"","_attachments":"attachments/","_ts":%d}' % now)
        return now, *self._stamp

    def mint(self, rules: ItemRules, view: View, key: KeyValue, body: dict[str, Any], old: Document | None) -> Minted:
        """The document that this body becomes; `old` is the version it takes over from."""
        now, suffix, tail = self.stamp()
        if not SYSTEM.isdisjoint(body):
            for name in SYSTEM:
                body.pop(name, None)
        expires = rules.expiry(body, now) if rules.default_ttl is not None or "ttl" in body else NEVER
        terms = rules.unique_terms(key, body) if rules.unique else ()
        if terms:
            rules.check_unique(view, (key.text, body["id"]), terms)
        store = self._store
        if old is None:
            number = store.numbers = store.numbers + 1
        else:
            number = old.number
        store.etags += 1
        etag = f"{store.etags:08x}{suffix}"
        rid = b2a_base64(self.prefix + number.to_bytes(8, "little"), newline=False).replace(b"/", b"-")
        head, link, mark = self.links
        try:
            text = orjson.dumps(body)
            values = scalars(body.values())
        except (orjson.JSONEncodeError, RecursionError) as error:
            raise BadRequest(MAX_DEPTH_MESSAGE) from error
        raw = b"".join((text[:-1], head, rid, link, rid, mark, etag.encode(), tail))
        if len(raw) > MAX_ITEM_BYTES or rules.partition_limit_bytes < LOGICAL_PARTITION_BYTES:
            rules.check_size(view, key.text, len(raw), len(old.body) if old else 0)
        # The lsn moves on only when a write is committed, so all of a batch have the same.
        return Document(body["id"], key, raw, f'"{etag}"', number, store.lsn + 1, now, expires, terms), values
