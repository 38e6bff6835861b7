"""The account: databases, containers and offers, by name or by resource id."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from service.local.cosmos.container import Container
from service.local.cosmos.errors import BadRequest, Conflict, NotFound
from service.local.cosmos.indexing import full_policy
from service.local.cosmos.item_rules import LOGICAL_PARTITION_BYTES, check_id
from service.local.cosmos.journal import Journal
from service.local.cosmos.offers import Offer, Throughput
from service.local.cosmos.partition_key import KeyDefinition
from service.local.cosmos.resource_ids import DocumentRids, container_rid, database_rid

MAX_NAME_CHARS: Final = 255
MAX_RU_PER_RANGE: Final = 10_000  # the most that a physical partition serves
NEW_RU_PER_RANGE: Final = 6_000  # what each of several gets in a new container (the official test suites count on it)


@dataclass(slots=True)
class Database:
    """A database: properties, and containers by name."""

    number: int
    properties: dict[str, Any]
    containers: dict[str, Container] = field(default_factory=dict)
    next_container: int = 1

    @property
    def id(self) -> str:
        """Its name."""
        return str(self.properties["id"])

    @property
    def rid(self) -> str:
        """Its resource id."""
        return str(self.properties["_rid"])


@dataclass
class Account:
    """Everything under one endpoint."""

    ranges: int = 1
    """How many ranges a container gets whose creator does not say."""
    throttle_offers: bool = True
    """Whether throughput that is set over the wire throttles; Microsoft's emulator does so only when asked."""
    partition_limit_bytes: int = LOGICAL_PARTITION_BYTES
    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    databases: dict[str, Database] = field(default_factory=dict)
    offers: dict[str, Offer] = field(default_factory=dict)
    """By the resource id of what they are for."""
    next_database: int = 1
    next_offer: int = 1
    etags: int = 0

    def open_journal(self, database: Database, properties: Mapping[str, Any]) -> Journal:  # noqa: ARG002 - the disk's do
        """Where the changes of a new container go; an account on disk has its own."""
        return Journal()

    def changed(self) -> None:
        """Something but documents has changed."""

    def flush(self) -> None:
        """Hand over to the operating system what is to be kept."""
        for database in self.databases.values():
            for container in database.containers.values():
                container.journal.flush()

    def close(self) -> None:
        """Nothing more will come."""
        for database in self.databases.values():
            for container in database.containers.values():
                container.journal.close()

    def create_database(self, database_id: object, throughput: Throughput | None = None) -> Database:
        """A new database."""
        name = check_name(database_id)
        if name in self.databases:
            raise Conflict("Resource with specified id, name, or unique index already exists.")
        rid = database_rid(self.next_database)
        properties = {
            "id": name,
            "_rid": rid,
            "_self": f"dbs/{rid}/",
            "_etag": self.new_etag(),
            "_colls": "colls/",
            "_users": "users/",
            "_ts": int(self.now()),
        }
        database = self.databases[name] = Database(self.next_database, properties)
        self.next_database += 1
        if throughput is not None:
            self._offer(properties, throughput)
        self.changed()
        return database

    def database(self, name: str) -> Database:
        """The database of that name or resource id."""
        found = self.databases.get(name) or next((d for d in self.databases.values() if d.rid == name), None)
        if found is None:
            raise NotFound(sub_status=0)
        return found

    def delete_database(self, name: str) -> None:
        """Remove a database and all that is in it."""
        database = self.database(name)
        for container in list(database.containers):
            self.delete_container(database, container)
        self.offers.pop(database.rid, None)
        del self.databases[database.id]
        self.changed()

    def create_container(
        self,
        database: Database,
        given: Mapping[str, Any],
        throughput: Throughput | None = None,
        *,
        ranges: int | None = None,
    ) -> Container:
        """A new container, with as many ranges as its throughput needs, unless it is said how many."""
        name = check_name(given.get("id"))
        if "partitionKey" not in given:
            raise BadRequest("Partition key definition is required: the container has none.")
        properties = self._container_properties(database, name, given)
        if name in database.containers:
            raise Conflict("Resource with specified id, name, or unique index already exists.")
        offered = throughput.limit if throughput else 0
        container = self.build_container(
            database,
            properties,
            database.next_container,
            ranges or max(self.ranges, _ranges_for(offered)),
            offered if self.throttle_offers else 0,
            self.open_journal(database, properties),
        )
        database.next_container += 1
        database.containers[name] = container
        if throughput is not None:
            self._offer(properties, throughput)
        self.changed()
        return container

    def build_container(
        self,
        database: Database,
        properties: dict[str, Any],
        number: int,
        ranges: int,
        throughput: float,
        journal: Journal,
    ) -> Container:
        """The container itself, which is not yet part of its database."""
        return Container(
            properties,
            self_link=properties["_self"],
            rids=DocumentRids(database.number, number),
            ranges=ranges,
            throughput=throughput,
            partition_limit_bytes=self.partition_limit_bytes,
            now=self.now,
            clock=self.clock,
            journal=journal,
        )

    def container(self, database: str, name: str) -> Container:
        """The container of that name or resource id."""
        containers = self.database(database).containers
        found = containers.get(name) or next((c for c in containers.values() if c.rid == name), None)
        if found is None:
            raise NotFound(sub_status=1003)
        return found

    def delete_container(self, database: Database, name: str) -> None:
        """Remove a container and its documents."""
        container = self.container(database.id, name)
        container.journal.discard()
        self.offers.pop(container.rid, None)
        del database.containers[container.id]
        self.changed()

    def replace_container(self, container: Container, given: Mapping[str, Any]) -> None:
        """Change what may be changed of a container: its policies and TTL, not its id or keys."""
        old = container.properties
        if given.get("id") != old["id"]:
            raise BadRequest("The id of a container cannot be changed.")
        for fixed in ("partitionKey", "uniqueKeyPolicy"):
            if fixed in given and given[fixed] is not None and _plain(given[fixed]) != _plain(old.get(fixed)):
                raise BadRequest(f"The property {fixed!r} of a container cannot be changed.")
        kept = {name: value for name, value in old.items() if name.startswith("_") or name in FIXED}
        new = {name: value for name, value in given.items() if not name.startswith("_") and value is not None}
        merged = new | kept
        merged.setdefault("indexingPolicy", old["indexingPolicy"])
        merged["indexingPolicy"] = full_policy(merged["indexingPolicy"])
        merged |= {"_etag": self.new_etag(), "_ts": int(self.now())}
        container.replace_properties(merged)

    def new_etag(self) -> str:
        """An etag for a database or container."""
        self.etags += 1
        return f'"0000{self.etags:04x}-0000-0000-0000-{int(self.now()):012x}"'

    def owner_of(self, rid: str) -> Container | None:
        """The container that an offer is for, if it is for one."""
        return next((c for d in self.databases.values() for c in d.containers.values() if c.rid == rid), None)

    def set_offer(self, container: Container, throughput: Throughput | None) -> None:
        """Give a container an offer, or take it away."""
        self.offers.pop(container.rid, None)
        if throughput is not None:
            self._offer(container.properties, throughput)
        self.changed()

    def replace_offer(self, offer: Offer, throughput: Throughput) -> None:
        """Change an offer. More than the ranges can serve makes them split, as in the service, but at once."""
        if throughput.autoscale != offer.throughput.autoscale:
            raise BadRequest("An offer cannot be changed between fixed and autoscale throughput this way.")
        offer.throughput = throughput
        container = self.owner_of(offer.resource_rid)
        if container is not None:
            needed = -(-throughput.limit // MAX_RU_PER_RANGE)
            if needed > len(container.ranges.ranges):
                container.split(into=needed)
            container.set_throughput(throughput.limit if self.throttle_offers else 0)
        self.changed()

    def _offer(self, properties: Mapping[str, Any], throughput: Throughput) -> None:
        self.offers[properties["_rid"]] = Offer(self.next_offer, properties["_rid"], properties["_self"], throughput)
        self.next_offer += 1

    def _container_properties(self, database: Database, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        rid = container_rid(database.number, database.next_container)
        properties = {key: value for key, value in given.items() if not key.startswith("_") and value is not None}
        properties["id"] = name
        properties["indexingPolicy"] = full_policy(given.get("indexingPolicy"))
        properties["partitionKey"] = KeyDefinition.from_json(given["partitionKey"]).to_json()
        properties.setdefault(
            "conflictResolutionPolicy",
            {"mode": "LastWriterWins", "conflictResolutionPath": "/_ts", "conflictResolutionProcedure": ""},
        )
        properties.setdefault("geospatialConfig", {"type": "Geography"})
        return properties | {
            "_rid": rid,
            "_ts": int(self.now()),
            "_self": f"dbs/{database.rid}/colls/{rid}/",
            "_etag": self.new_etag(),
            "_docs": "docs/",
            "_sprocs": "sprocs/",
            "_triggers": "triggers/",
            "_udfs": "udfs/",
            "_conflicts": "conflicts/",
        }


FIXED: Final = ("id", "partitionKey", "uniqueKeyPolicy", "conflictResolutionPolicy")


def check_name(value: object) -> str:
    """The name of a database or container, if it follows the rules."""
    name = check_id(value)
    if len(name) > MAX_NAME_CHARS:
        raise BadRequest(f"The input name is invalid: its length must not exceed {MAX_NAME_CHARS}.")
    return name


def _ranges_for(request_units: int) -> int:
    return 1 if request_units <= MAX_RU_PER_RANGE else -(-request_units // NEW_RU_PER_RANGE)


def _plain(value: object) -> object:
    """A policy without what its creator may leave out."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v not in (None, False) and k != "version"}
    return value
