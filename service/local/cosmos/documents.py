"""The documents of a container, and the views through which operations see them.

A document is kept as the JSON text of what the client sent: nothing is shared with a caller, and a million of them are
light on memory and on the garbage collector.
"""

import heapq
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

import orjson

from service.local.cosmos.partition_key import KeyValue
from service.local.cosmos.system_properties import SystemProperties, etag

Key = tuple[str, str]
"""Partition key text and id: what names a document."""
Term = tuple[str, int, str]
"""Partition key text, number of the unique key, and its values as JSON: what no two documents may share."""
NEVER: Final = float("inf")


class Document(NamedTuple):
    """One stored version of a document. (A named tuple: a frozen dataclass takes four times as long to make.)"""

    id: str
    key: KeyValue
    text: bytes
    """What the client sent, as JSON, but for system properties. Its last byte is the closing brace.

    Not to be the bytes that orjson wrote themselves: those leave gaps of several times their size behind them.
    """
    number: int
    """Order of creation within the container; also what its `_rid` is made of."""
    version: int
    """What its `_etag` is made of: no two versions of any documents of the container share it."""
    lsn: int
    """Order of the last change within the container; the documents of one transaction share it."""
    timestamp: int
    expires: float
    terms: tuple[Term, ...]
    system: SystemProperties

    @property
    def name(self) -> Key:
        """What names it."""
        return self.key.text, self.id

    @property
    def body(self) -> bytes:
        """The whole document as JSON, as a client reads it."""
        return self.system.joined(self.text, self.number, self.version, self.timestamp)

    @property
    def size(self) -> int:
        """How many bytes the whole document takes."""
        return len(self.text) + self.system.size

    @property
    def etag(self) -> str:
        """What names this version to clients."""
        return etag(self.version, self.timestamp)

    def value(self) -> dict[str, Any]:
        """The document itself, a fresh copy."""
        value: dict[str, Any] = orjson.loads(self.body)
        return value


class View(Protocol):
    """What an operation may look at: the store, or the store with the pending changes of a transaction over it."""

    def get(self, name: Key) -> Document | None:
        """The document of that name."""
        ...

    def holder(self, term: Term) -> Key | None:
        """Which document has this unique key value."""
        ...

    def partition_bytes(self, partition_key: str) -> int:
        """How much the documents of one logical partition take."""
        ...


class Store:
    """All documents of a container by name, and in order of creation or of the last change.

    `sized` says whether logical partitions are limited, so that their sizes have to be known.
    """

    def __init__(self, *, sized: bool = False) -> None:
        # In order of the last change: a document that changes is taken out and comes back as the last.
        self._documents: dict[Key, Document] = {}
        self._holders: dict[Term, Key] = {}
        self._sized = sized
        self._sizes: dict[str, int] = {}
        self._expiring: list[tuple[float, int, Key]] = []
        self._snapshot: list[Document] | None = None
        self.lsn = 0
        self.numbers = 0
        self.etags = 0

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, name: Key) -> Document | None:
        """The document of that name."""
        return self._documents.get(name)

    def holder(self, term: Term) -> Key | None:
        """Which document has this unique key value."""
        return self._holders.get(term)

    def partition_bytes(self, partition_key: str) -> int:
        """How much the documents of one logical partition take, if that is known."""
        return self._sizes.get(partition_key, 0)

    def put(self, document: Document) -> None:
        """Take a new document, or a new version of one."""
        name = (document.key.text, document.id)
        if self._sized or document.terms:
            self._forget(name)
            self._remember(name, document)
        self._documents.pop(name, None)
        self._documents[name] = document
        if document.expires != NEVER:
            heapq.heappush(self._expiring, (document.expires, document.version, name))
        self._snapshot = None

    def for_writing(self) -> dict[Key, Document]:
        """The documents themselves, for the short way of bulk, which keeps their order as `put` does."""
        self._snapshot = None
        return self._documents

    def delete(self, name: Key) -> None:
        """Remove a document; nothing happens if there is none."""
        self._forget(name)
        if self._documents.pop(name, None) is not None:
            self._snapshot = None

    def expire(self, now: float) -> list[Key]:
        """Remove what has outlived its time; which they were."""
        gone: list[Key] = []
        while self._expiring and self._expiring[0][0] <= now:
            _, version, name = heapq.heappop(self._expiring)
            current = self._documents.get(name)
            if current is not None and current.version == version:
                self.delete(name)
                gone.append(name)
        return gone

    def in_order(self) -> list[Document]:
        """All, in order of creation. The list is shared until the next write: not to be changed."""
        if self._snapshot is None:
            self._snapshot = sorted(self._documents.values(), key=attrgetter("number"))
        return self._snapshot

    def newest_first(self) -> Iterator[Document]:
        """All, the one that changed last first: the change feed backwards."""
        return reversed(self._documents.values())

    def _remember(self, name: Key, document: Document) -> None:
        self._sizes[name[0]] = self._sizes.get(name[0], 0) + document.size
        for term in document.terms:
            self._holders[term] = name

    def _forget(self, name: Key) -> None:
        old = self._documents.get(name)
        if old is None or not (self._sized or old.terms):
            return
        left = self._sizes[name[0]] - old.size
        if left:
            self._sizes[name[0]] = left
        else:
            del self._sizes[name[0]]
        for term in old.terms:
            self._holders.pop(term, None)


class Transaction:
    """Pending changes over a store: seen by the operations of one batch, and by nobody else until applied."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: dict[Key, Document | None] = {}
        self._holders: dict[Term, Key | None] = {}
        self._grown: dict[str, int] = {}

    def get(self, name: Key) -> Document | None:
        """The document of that name, as this transaction has left it."""
        return self._pending[name] if name in self._pending else self._store.get(name)

    def holder(self, term: Term) -> Key | None:
        """Which document has this unique key value."""
        return self._holders[term] if term in self._holders else self._store.holder(term)

    def partition_bytes(self, partition_key: str) -> int:
        """How much the documents of one logical partition take."""
        return self._store.partition_bytes(partition_key) + self._grown.get(partition_key, 0)

    def put(self, document: Document) -> None:
        """Note a document to be written."""
        self._note(document.name, document)

    def delete(self, name: Key) -> None:
        """Note a document to be removed."""
        self._note(name, None)

    @property
    def changed(self) -> bool:
        """Whether there is anything to apply."""
        return bool(self._pending)

    def changes(self) -> Iterator[tuple[Key, Document | None]]:
        """What there is to apply, in order; None is a removal."""
        return iter(self._pending.items())

    def _note(self, name: Key, document: Document | None) -> None:
        old = self.get(name)
        for term in old.terms if old else ():
            self._holders[term] = None
        for term in document.terms if document else ():
            self._holders[term] = name
        growth = (document.size if document else 0) - (old.size if old else 0)
        self._grown[name[0]] = self._grown.get(name[0], 0) + growth
        self._pending[name] = document
