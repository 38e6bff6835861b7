"""What was written, in order: for tests that have to know."""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from service.local.cosmos.documents import Document

DEFAULT_LIMIT: Final = 200_000
Entry = tuple[str, str, str, int, int, int, str, bytes | None]
"""A write but for its number. (Plain values: quick to make, and the garbage collector need not look at them.)"""


class Write(NamedTuple):
    """One operation that meant to write. `lsn` is 0 if it did not come to that."""

    number: int
    operation: str
    id: str
    partition_key: str
    status: int
    sub_status: int
    lsn: int
    range_id: str
    body: bytes | None
    """What was stored, if the log keeps bodies."""


class WriteLog:
    """The last writes of a container, refused ones included; the oldest are forgotten beyond `limit`."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._entries: deque[Entry] = deque(maxlen=limit)
        self.total = 0
        """How many there were, the forgotten ones included."""
        self.keep_bodies = False

    def add(  # called for every operation: names would cost
        self,
        operation: str,
        document_id: str,
        partition_key: str,
        status: int,
        sub_status: int,
        lsn: int,
        range_id: str,
        document: Document | None,
    ) -> None:
        """Note one."""
        body = document.body if self.keep_bodies and document is not None else None
        self.extend([(operation, document_id, partition_key, status, sub_status, lsn, range_id, body)])

    def extend(self, entries: list[Entry]) -> None:
        """Note several."""
        self._entries += entries
        self.total += len(entries)

    def set_limit(self, limit: int) -> None:
        """Keep at most so many from now on (0: none)."""
        self._entries = deque(self._entries, maxlen=limit)

    def clear(self) -> None:
        """Forget all; the total starts again."""
        self._entries.clear()
        self.total = 0

    def committed(self) -> list[Write]:
        """Those that changed something."""
        return [entry for entry in self if entry.lsn]

    def of(self, document_id: str) -> list[Write]:
        """Those of one document id."""
        return [entry for entry in self if entry.id == document_id]

    def __iter__(self) -> Iterator[Write]:
        first = self.total - len(self._entries) + 1
        return (Write(number, *entry) for number, entry in enumerate(self._entries, first))

    def __len__(self) -> int:
        return len(self._entries)
