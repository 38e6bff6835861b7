"""An account that is kept in a directory: what was there before a restart is there after it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from service.local.cosmos.account import Account, Database
from service.local.cosmos.container import Container
from service.local.cosmos.documents import NEVER, Document
from service.local.cosmos.journal import FileJournal, Journal, read_journal
from service.local.cosmos.offers import Offer, Throughput
from service.local.cosmos.resource_ids import container_number
from service.local.cosmos.system_properties import NAMES, etag_version

ACCOUNT_FILE: Final = "account.json"
FORMAT: Final = 1


class DiskAccount(Account):
    """Keeps databases, containers and offers in one file, and the documents of each container in a journal."""

    def __init__(self, directory: Path, **options: Any) -> None:  # noqa: ANN401 - those of Account
        super().__init__(**options)
        self._directory = directory
        self._loading = True
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / ACCOUNT_FILE
        if file.exists():
            self._load(orjson.loads(file.read_bytes()))
        self._loading = False
        self.changed()

    def open_journal(self, database: Database, properties: Mapping[str, Any]) -> Journal:  # noqa: ARG002 - the rid says it
        """The file of a container's changes."""
        return FileJournal(self._path(properties["_rid"]), self.changed)

    def changed(self) -> None:
        """Write the account anew, in one step."""
        if self._loading:
            return
        temporary = self._directory / (ACCOUNT_FILE + ".new")
        temporary.write_bytes(orjson.dumps(self._snapshot()))
        os.replace(temporary, self._directory / ACCOUNT_FILE)  # noqa: PTH105 - the two are the same

    def close(self) -> None:
        """Write what is left, and close the files."""
        super().close()
        self.changed()

    def _path(self, rid: str) -> Path:
        return self._directory / f"{rid.replace('+', '_').rstrip('=')}.jsonl"

    def _snapshot(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "next_database": self.next_database,
            "next_offer": self.next_offer,
            "etags": self.etags,
            "offers": [_offer(offer) for offer in self.offers.values()],
            "databases": [
                {
                    "number": database.number,
                    "next_container": database.next_container,
                    "properties": database.properties,
                    "containers": [
                        {"properties": one.properties, "throughput": one.throughput, "ranges": one.ranges.snapshot()}
                        for one in database.containers.values()
                    ],
                }
                for database in self.databases.values()
            ],
        }

    def _load(self, kept: Mapping[str, Any]) -> None:
        if kept.get("format") != FORMAT:
            raise ValueError(f"{self._directory / ACCOUNT_FILE} was written by another version of this server.")
        self.next_database, self.next_offer, self.etags = kept["next_database"], kept["next_offer"], kept["etags"]
        for one in kept["databases"]:
            database = Database(one["number"], one["properties"], next_container=one["next_container"])
            self.databases[database.id] = database
            for container in one["containers"]:
                self._load_container(database, container)
        for one in kept["offers"]:
            throughput = Throughput(one["limit"], one["autoscale"], one["increment"])
            self.offers[one["rid"]] = Offer(one["number"], one["rid"], one["link"], throughput)

    def _load_container(self, database: Database, kept: Mapping[str, Any]) -> None:
        properties = kept["properties"]
        number = container_number(properties["_rid"])
        container = self.build_container(database, properties, number, 1, kept["throughput"], Journal())
        container.ranges.restore(kept["ranges"])
        container.set_throughput(kept["throughput"])
        path = self._path(properties["_rid"])
        lines = 0
        for change in read_journal(path):
            lines += 1
            _replay(container, change)
        if lines > 2 * len(container.store) + 1 or not _ends_well(path):
            _rewrite(path, container)
        container.journal = self.open_journal(database, properties)
        database.containers[container.id] = container


def _replay(container: Container, change: Mapping[str, Any]) -> None:
    if "x" in change:
        partition_key, document_id = change["x"]
        container.store.delete((partition_key, document_id))
        container.store.lsn += 1
        return
    if "c" in change:
        container.store.lsn, container.store.numbers, container.store.etags = change["c"]
        return
    components, number, lsn = change["k"]
    body, rules, store = change["d"], container.rules, container.store
    key = rules.keys.of(tuple(components))
    expires = rules.expiry(body, body["_ts"]) if rules.default_ttl is not None else NEVER
    terms = rules.unique_terms(key, body)
    version = etag_version(body["_etag"])
    text = b"%b" % orjson.dumps({name: value for name, value in body.items() if name not in NAMES})
    store.put(
        Document(body["id"], key, text, number, version, lsn, body["_ts"], expires, terms, system=container.system)
    )
    store.lsn = max(store.lsn, lsn)
    store.numbers = max(store.numbers, number)
    store.etags = max(store.etags, version)


def _rewrite(path: Path, container: Container) -> None:
    """The file anew with what is left: no longer than it has to be, and whole."""
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    journal = FileJournal(temporary, lambda: None)
    journal.counters(container.store.lsn, container.store.numbers, container.store.etags)
    for document in reversed(list(container.store.newest_first())):
        journal.put(document)
    journal.close()
    os.replace(temporary, path)  # noqa: PTH105 - the two are the same


def _ends_well(path: Path) -> bool:
    if not path.exists() or not path.stat().st_size:
        return True
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _offer(offer: Offer) -> dict[str, Any]:
    return {
        "number": offer.number,
        "rid": offer.resource_rid,
        "link": offer.resource_link,
        "limit": offer.throughput.limit,
        "autoscale": offer.throughput.autoscale,
        "increment": offer.throughput.increment_percent,
    }
