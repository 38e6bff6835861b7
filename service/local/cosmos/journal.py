"""Where the changes of a container go so that they outlive the process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from service.local.cosmos.documents import Document, Key


class Journal:
    """Keeps nothing: an account in memory."""

    def put(self, document: Document) -> None:
        """A document was written."""

    def delete(self, name: Key) -> None:
        """A document was removed."""

    def changed(self) -> None:
        """The properties, ranges or throughput of the container have changed."""

    def flush(self) -> None:
        """Hand over what was noted: after it the end of this process loses nothing."""

    def close(self) -> None:
        """Nothing more will come."""

    def discard(self) -> None:
        """The container is gone: forget it."""


class FileJournal(Journal):
    """A file with one line of JSON per change, only ever added to.

    A line is whole or it is the last: what a crash cut off is left out when the file is read again. Nothing is synced
    to the disk itself: it outlives the process, not the machine.
    """

    def __init__(self, path: Path, changed: Callable[[], None]) -> None:
        self._path = path
        self._changed = changed
        self._pending: list[bytes] = []
        self._file = path.open("ab")

    def put(self, document: Document) -> None:
        """A document was written."""
        head = orjson.dumps([document.key.components, document.number, document.lsn])
        self._pending.append(b'{"k":' + head + b',"d":' + document.body + b"}\n")

    def delete(self, name: Key) -> None:
        """A document was removed."""
        self._pending.append(orjson.dumps({"x": name}) + b"\n")

    def counters(self, lsn: int, numbers: int, etags: int) -> None:
        """How far the counters have come: what they gave to documents that are gone must not be given again."""
        self._pending.append(orjson.dumps({"c": [lsn, numbers, etags]}) + b"\n")

    def changed(self) -> None:
        """The properties, ranges or throughput of the container have changed."""
        self._changed()

    def flush(self) -> None:
        """Hand over what was noted to the operating system."""
        if self._pending:
            self._file.write(b"".join(self._pending))
            self._file.flush()
            self._pending.clear()

    def close(self) -> None:
        """Nothing more will come; a second time does nothing."""
        if not self._file.closed:
            self.flush()
            self._file.close()

    def discard(self) -> None:
        """The container is gone: its file goes too."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The changes in a file, the first first; a last line that was cut off is left out."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield orjson.loads(line)
