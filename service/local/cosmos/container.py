"""A container: its properties, ranges, documents, and everything that can be done to them in process."""

from collections.abc import Callable, Mapping
from typing import Any

from service.local.cosmos.documents import Document, Key, Store
from service.local.cosmos.faults import Faults
from service.local.cosmos.item_rules import LOGICAL_PARTITION_BYTES, ItemRules
from service.local.cosmos.journal import Journal
from service.local.cosmos.minter import Minter
from service.local.cosmos.partition_key import Component, KeyValue
from service.local.cosmos.ranges import Range, RangeMap
from service.local.cosmos.resource_ids import DocumentRids
from service.local.cosmos.system_properties import SystemProperties
from service.local.cosmos.throughput import Budget
from service.local.cosmos.write_log import WriteLog


class Container:
    """One container of the account. Tests hold on to it; the wire reaches it through the account."""

    def __init__(
        self,
        properties: dict[str, Any],
        *,
        self_link: str,
        rids: DocumentRids,
        ranges: int,
        throughput: float,
        partition_limit_bytes: int,
        now: Callable[[], float],
        clock: Callable[[], float],
        journal: Journal,
    ) -> None:
        self.properties = properties
        self.rules = ItemRules.from_properties(properties, partition_limit_bytes)
        self.store = Store(sized=partition_limit_bytes < LOGICAL_PARTITION_BYTES)
        self.write_log = WriteLog()
        self.faults = Faults()
        self.now = now
        self.clock = clock
        self.journal = journal
        self.throughput = throughput
        self.ranges = RangeMap(self.rules.keys, ranges, Budget)
        self.system = SystemProperties(rids, self_link)
        self.minter = Minter(self.system, self.store, now)
        self._gone_total = 0.0
        self._gone_refused = 0
        self.set_throughput(throughput)

    @property
    def id(self) -> str:
        """Its name."""
        return str(self.properties["id"])

    @property
    def rid(self) -> str:
        """Its resource id."""
        return str(self.properties["_rid"])

    # In process, for tests

    def documents(self) -> list[dict[str, Any]]:
        """All documents, in order of creation."""
        self.expire()
        return [document.value() for document in self.store.in_order()]

    def get(self, document_id: str, partition_key: Component | list[Component]) -> dict[str, Any] | None:
        """One document, or None. A hierarchical key is a list."""
        self.expire()
        components = tuple(partition_key) if isinstance(partition_key, list) else (partition_key,)
        document = self.store.get((self.rules.keys.of(components).text, document_id))
        return document.value() if document else None

    def count(self) -> int:
        """How many documents there are."""
        self.expire()
        return len(self.store)

    def split(self, into: int | None = None, range_id: str | None = None) -> list[str]:
        """Split one range in two, or as many as it takes to have `into`; the ids there are then.

        Requests that name an old id get 410/1002 from now on.
        """
        before = list(self.ranges.ranges)
        if into is not None:
            self.ranges.split_into(into)
        else:
            self.ranges.split(range_id if range_id is not None else self.ranges.ranges[0].id)
        for parent in before:
            if parent not in self.ranges.ranges:
                self._gone_total += parent.budget.total
                self._gone_refused += parent.budget.refused
        self.set_throughput(self.throughput)
        return [r.id for r in self.ranges.ranges]

    def set_throughput(self, request_units: float) -> None:
        """Share so many RU/s evenly among the ranges, as the service does; 0 never throttles."""
        self.throughput = request_units
        for one in self.ranges.ranges:
            one.budget.rate = request_units / len(self.ranges.ranges)
        self.journal.changed()

    def throttle_range(self, range_id: str, on: bool = True, *, retry_after_ms: int = 1000) -> None:
        """Answer 429 with this wait for everything on one range, until it is taken back."""
        self.ranges.by_id(range_id).budget.blocked_ms = max(1, retry_after_ms) if on else 0

    def request_units(self) -> float:
        """What all operations have cost so far, those on ranges that were split since included."""
        return round(self._gone_total + sum(one.budget.total for one in self.ranges.ranges), 2)

    def throttled(self) -> int:
        """How many requests and operations have got a 429 so far."""
        return self._gone_refused + sum(one.budget.refused for one in self.ranges.ranges)

    # For the wire

    def route(self, key: KeyValue) -> Range:
        """The range that holds a key."""
        return self.ranges.of(key.epk)

    def put(self, document: Document) -> None:
        """Store a document."""
        self.store.put(document)
        self.journal.put(document)

    def delete(self, name: Key) -> None:
        """Remove a document."""
        self.store.delete(name)
        self.journal.delete(name)

    def expire(self) -> None:
        """Remove what has outlived its TTL."""
        if self.rules.default_ttl is not None:
            for name in self.store.expire(self.now()):
                self.journal.delete(name)

    def replace_properties(self, properties: Mapping[str, Any]) -> None:
        """Take new properties: indexing policy, TTL and the like; keys stay."""
        rules = ItemRules.from_properties(properties, self.rules.partition_limit_bytes)
        rules.keys = self.rules.keys
        self.properties = dict(properties)
        self.rules = rules
        self.journal.changed()

    def headers(self, *places: Range) -> dict[str, str]:
        """Where an answer comes from, and how far that has come.

        The token has the form that SDKs send back (version -1: no vector of regions). A page comes from one range at a
        time: of several, the first is named. Without it azure-cosmos forgets all ranges that it knows, and asks again.
        """
        lsn = str(self.store.lsn)
        headers = {"x-ms-session-token": ",".join(f"{place.id}:-1#{lsn}" for place in places), "lsn": lsn}
        if places:
            headers["x-ms-documentdb-partitionkeyrangeid"] = places[0].id
        return headers
