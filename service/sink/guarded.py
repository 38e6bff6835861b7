"""Guarded writes: no record is ever written over a newer one.

A new document is created; where one is there already, its stamp is read and compared, and it is replaced only as long
as it is still the one that was read (If-Match). The ETags of what was written are remembered, so the usual update is
one operation. A guarded delete leaves nothing behind to compare with: an older record that comes after it creates the
document again.
"""

from collections import OrderedDict
from enum import Enum
from typing import Any, Final

from service.sink.container import Result
from service.sink.order import Document, Entry
from service.sink.outcome import Outcome
from service.sink.outcomes import Step
from service.sink.record import Operation
from service.sink.stamp import Precedence, Stamp, compare

# A create that says "conflict" for a document that a read does not find, this often, meets a unique key of another one.
_UNIQUE_KEY_ROUNDS: Final = 3


class Again(Enum):
    """What else may become of an answer than an outcome."""

    SEND = "send the next step"
    DEAD = "a unique key stands against it"


class Guard:
    """Decides the steps of guarded writes. Remembers the ETags of at most `remembered` documents."""

    def __init__(self, stamp_name: str, *, remembered: int = 50_000, leave_unstamped: bool = False) -> None:
        """`leave_unstamped`: a document without a stamp counts as newer (backfill), not as older (live consumer)."""
        self._stamp_name = stamp_name
        self._remembered = remembered
        self._leave_unstamped = leave_unstamped
        self._known: OrderedDict[Document, tuple[str, Stamp | None]] = OrderedDict()
        self.unstamped = 0
        """Documents that were left alone because they had no stamp."""

    def prepare(self, entry: Entry) -> Outcome | None:
        """Choose the first step of a record; an outcome if what is remembered already decides."""
        known = self._known.get(entry.document)
        if known is None:
            entry.step = Step.READ if entry.record.operation is Operation.DELETE else Step.CREATE
            return None
        self._known.move_to_end(entry.document)
        return self._compare(entry, *known)

    def answered(self, entry: Entry, result: Result) -> Outcome | Again:
        """A step was done."""
        if entry.step is Step.READ:
            body = result.get("resourceBody")
            document: dict[str, Any] = body if isinstance(body, dict) else {}
            etag = str(result.get("eTag") or document.get("_etag") or "")
            return self._compare(entry, etag, Stamp.parse(document.get(self._stamp_name))) or Again.SEND
        if entry.step is Step.DELETE:
            self._known.pop(entry.document, None)
        elif written := result.get("eTag"):
            self._remember(entry.document, str(written), entry.record.stamp)
        return Outcome.COMMITTED

    def conflicted(self, entry: Entry) -> Outcome | Again:
        """The document was not as it was thought to be."""
        self._known.pop(entry.document, None)
        if entry.step is Step.READ:  # it is not there
            if entry.record.operation is Operation.DELETE:
                return Outcome.COMMITTED
            entry.missed += 1
            entry.step = Step.CREATE
            return Again.DEAD if entry.missed >= _UNIQUE_KEY_ROUNDS else Again.SEND
        entry.step = Step.READ
        return Again.SEND

    def _compare(self, entry: Entry, etag: str, stored: Stamp | None) -> Outcome | None:
        stamp = entry.record.stamp
        if stamp is None:
            raise ValueError("a guarded write needs a stamp: the decoder must be made for guarded writes")
        if stored is None and self._leave_unstamped:
            self.unstamped += 1
            return Outcome.SUPERSEDED
        precedence = compare(stamp, stored)
        if precedence is Precedence.NEWER:
            entry.step = Step.DELETE if entry.record.operation is Operation.DELETE else Step.REPLACE
            entry.etag = etag
            return None
        self._remember(entry.document, etag, stored)
        return Outcome.COMMITTED if precedence is Precedence.SAME else Outcome.SUPERSEDED

    def _remember(self, document: Document, etag: str, stamp: Stamp | None) -> None:
        self._known[document] = etag, stamp
        self._known.move_to_end(document)
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)
