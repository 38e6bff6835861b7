"""Versions of documents: a body becomes a stored document."""

from collections.abc import Callable
from typing import Any, Final

import orjson

from service.local.cosmos.documents import NEVER, Document, Store, View
from service.local.cosmos.errors import BadRequest
from service.local.cosmos.indexing import scalars
from service.local.cosmos.item_rules import LOGICAL_PARTITION_BYTES, MAX_ITEM_BYTES, ItemRules
from service.local.cosmos.partition_key import KeyValue
from service.local.cosmos.system_properties import NAMES, SystemProperties

MAX_DEPTH_MESSAGE: Final = "The document is nested too deeply."
Minted = tuple[Document, int]
"""A document, and how many values it has."""


class Minter:
    """Makes versions of documents, with the counters of one container."""

    __slots__ = ("_store", "now", "system")

    def __init__(self, system: SystemProperties, store: Store, now: Callable[[], float]) -> None:
        self.system = system
        self.now = now
        self._store = store

    def mint(self, rules: ItemRules, view: View, key: KeyValue, body: dict[str, Any], old: Document | None) -> Minted:
        """The document that this body becomes; `old` is the version it takes over from."""
        now = int(self.now())
        if not NAMES.isdisjoint(body):
            for name in NAMES:
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
        try:
            text = b"%b" % orjson.dumps(body)
            values = scalars(body.values())
        except (orjson.JSONEncodeError, RecursionError) as error:
            raise BadRequest(MAX_DEPTH_MESSAGE) from error
        # The lsn moves on only when a write is committed, so all of a batch have the same.
        made = Document(
            body["id"], key, text, number, store.etags, store.lsn + 1, now, expires, terms, system=self.system
        )
        if made.size > MAX_ITEM_BYTES or rules.partition_limit_bytes < LOGICAL_PARTITION_BYTES:
            rules.check_size(view, key.text, made.size, old.size if old else 0)
        return made, values
