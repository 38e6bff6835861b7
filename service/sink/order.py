"""Order by document: which records may go, and which must wait for earlier ones.

An event waits until every earlier event that shares a document with it has wholly completed; records of one event on
one document follow each other. So no document ever has two operations in flight, retries keep their
place, and no event can be completed ahead of an earlier one on the same document.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from service.sink.outcome import Item
from service.sink.outcomes import Step
from service.sink.record import Operation, Record

Document = tuple[bytes, str]
_WRITES: Final = (Operation.UPSERT, Operation.DELETE)


class Pending:
    """An event on its way through the sink: what of it is still open, and who waits for it."""

    __slots__ = ("blockers", "dropped", "entries", "item", "open", "waiters")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.entries: Sequence[Entry] = ()
        self.open = 0
        """Records of it that are not completed."""
        self.blockers = 0
        """Earlier events that share a document with it."""
        self.waiters: list[Pending] | None = None
        self.dropped = False
        """Its partition was lost: nothing of it is sent or settled any more."""


class Entry:
    """A record on its way through the sink."""

    __slots__ = ("document", "etag", "following", "missed", "pending", "record", "size", "step", "taken_at", "tries")

    def __init__(self, record: Record, pending: Pending, taken_at: float, step: Step = Step.UPSERT) -> None:
        self.record = record
        self.pending = pending
        self.taken_at = taken_at
        self.document = (record.key, record.id)
        self.size = len(record.body) + len(record.key) + _FRAME_BYTES
        self.tries = 0
        self.step = step
        """What is sent next for it. Guarded writes go through several, and have an ETag and count what they missed."""
        self.etag = ""
        self.missed = 0
        self.following: Entry | None = None
        """The next record of the same event on the same document."""


# What the bulk protocol puts around a body and its key: names, quotes, braces, an ETag.
_FRAME_BYTES: Final = 80


class DocumentOrder:
    """The documents that have open records, and the last event of each."""

    def __init__(self) -> None:
        self._last: dict[Document, Pending] = {}

    def __len__(self) -> int:
        return len(self._last)

    def admit(self, pending: Pending, entries: Sequence[Entry]) -> Iterable[Entry]:
        """Take an event in arrival order. Gives the records that may go at once."""
        if len(entries) == 1:
            return entries if self.admit_one(pending, entries[0]) else ()
        pending.entries = entries
        pending.open = len(entries)
        return self._admit_several(pending, entries)

    def admit_one(self, pending: Pending, entry: Entry) -> bool:
        """Take an event of one record. Says whether it may go at once."""
        pending.entries = (entry,)
        pending.open = 1
        last = self._last
        before = last.get(entry.document)
        last[entry.document] = pending
        if before is None:
            return True
        _wait_for(before, pending)
        return False

    def complete(self, entry: Entry) -> Iterable[Entry]:
        """The record is completed (or given up). Gives the records that may go now because of it."""
        pending = entry.pending
        pending.open -= 1
        if pending.open:
            return () if entry.following is None else (entry.following,)
        if len(pending.entries) == 1 and pending.waiters is None:  # the usual case, in few steps
            self._last.pop(entry.document, None)
            pending.entries = ()  # or event and record would hold each other until the garbage collector comes
            return ()
        return self._finish(pending)

    def _admit_several(self, pending: Pending, entries: Sequence[Entry]) -> Iterable[Entry]:
        first: dict[Document, Entry] = {}
        latest: dict[Document, Entry] = {}
        for entry in entries:
            if entry.record.operation not in _WRITES:
                continue
            if entry.document in latest:
                latest[entry.document].following = entry
            else:
                first[entry.document] = entry
            latest[entry.document] = entry
        befores = {id(before): before for document in first if (before := self._last.get(document)) is not None}
        for before in befores.values():
            _wait_for(before, pending)
        self._last.update(dict.fromkeys(first, pending))
        return () if pending.blockers else tuple(first.values())

    def _finish(self, pending: Pending) -> list[Entry]:
        released: list[Entry] = []
        finished = [pending]
        while finished:
            done = finished.pop()
            for entry in done.entries:
                if self._last.get(entry.document) is done:
                    del self._last[entry.document]
            done.entries = ()
            for waiter in done.waiters or ():
                waiter.blockers -= 1
                if waiter.blockers:
                    continue
                if waiter.dropped:
                    finished.append(waiter)  # it would only have waited for others to wait for it
                else:
                    released.extend(_heads(waiter.entries))
        return released


def everything_behind(pendings: Iterable[Pending]) -> list[Pending]:
    """These events and all that wait for them, directly or not."""
    seen: dict[int, Pending] = {}
    todo = list(pendings)
    while todo:
        pending = todo.pop()
        if id(pending) not in seen:
            seen[id(pending)] = pending
            todo.extend(pending.waiters or ())
    return list(seen.values())


def _wait_for(before: Pending, pending: Pending) -> None:
    pending.blockers += 1
    if before.waiters is None:
        before.waiters = []
    before.waiters.append(pending)


def _heads(entries: Sequence[Entry]) -> Iterable[Entry]:
    followers = {id(entry.following) for entry in entries if entry.following is not None}
    return [entry for entry in entries if id(entry) not in followers and entry.record.operation in _WRITES]
