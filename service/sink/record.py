"""Records: what an event asks to be done to documents.

A record is an operation on one document. Its body is the sender's own text, byte for byte, but for the stamp (and the
id, where that is taken from elsewhere), so large numbers and the order of members survive. What can never be
committed is found out here, as far as that can be known without asking Cosmos, and carries its reason.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import orjson

from service.sink import json_text
from service.sink.document_rules import (
    BAD_IN_ID,
    MAX_DOCUMENT_BYTES,
    MISSING,
    KeyReader,
    Undecodable,
    check_id,
    raise_too_large,
    value_at,
)
from service.sink.routing import EffectiveKey, PartitionKeyDefinition, split_path
from service.sink.stamp import Stamp
from service.sink.transform import Transform
from service.source.events import Event, Hub, PartitionId

_CLOSING_BRACE: Final = ord("}")
_GZIP: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Operation(Enum):
    """What is to be done for a record."""

    UPSERT = "upsert"
    DELETE = "delete"
    DROP = "drop"
    """Nothing: the user's transform wants it so, or the event holds no records."""
    POISON = "poison"
    """It can never be committed: to the dead letters."""


@dataclass(slots=True)
class Record:
    """One operation on one document. Not frozen only because that would triple the time to make one."""

    operation: Operation
    index: int
    """Its place among the records of its event."""
    id: str = ""
    key: bytes = b""
    """The partition key as the bulk protocol wants it: a JSON array inside a JSON string."""
    effective_key: EffectiveKey = 0
    body: bytes = b""
    """The document with its stamp."""
    stamp: Stamp | None = None
    """Only where guarded writes were asked for: the order of this record among all of its document."""
    reason: str = ""
    """Why it is POISON."""

    @property
    def document(self) -> tuple[bytes, str]:
        """Which document this is about."""
        return self.key, self.id


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """How documents are made of events (settings DOCUMENT_*)."""

    id: str = "/id"
    """Path of the id, or `sequence`: made of incarnation, partition, sequence and index."""
    stamp: str = "_sluice"
    """Name of the stamp's property; empty for none."""
    transform: str = ""
    """`module:function`; empty for none."""
    body: str = "object"
    """`object`, `array`, or the path of an array within an object."""
    delete: str = ""
    """Path whose truth makes the record a delete; empty for none."""
    unzipped_max_bytes: int = 32 * 1024 * 1024
    """A gzip body that grows beyond this is a bomb: most hubs take 1 MB, and JSON seldom packs 32 to 1."""


DROPPED: Final = Record(Operation.DROP, 0)
_UPSERT: Final = Operation.UPSERT  # by name: looking up the member takes ten times as long


class _Place:
    """What all records of one partition have in common."""

    __slots__ = ("end", "enqueued", "incarnation", "partition", "prefix", "sequence")

    def __init__(self, stamp_name: str, hub: Hub, partition: PartitionId) -> None:
        self.incarnation = hub.incarnation
        self.partition = str(partition)
        name, where = orjson.dumps(stamp_name), orjson.dumps(self.partition)
        self.prefix = b',%b:{"incarnation":%d,"partition":%b,"sequence":' % (name, hub.incarnation, where)
        self.sequence = -1
        self._at(0)

    def _at(self, seconds: int) -> None:
        self.enqueued = seconds
        self.end = b',"index":0,"enqueued":%d}}' % seconds
        """What follows the sequence in the stamp of an event's only record, and ends the document."""

    def enter(self, event: Event) -> None:
        """Go on to this event. Its time never falls along the partition: a broker's clock may be set back."""
        seconds = event.enqueued_ms // 1000
        if seconds != self.enqueued and (seconds > self.enqueued or event.sequence <= self.sequence):
            self._at(seconds)
        self.sequence = event.sequence


class Decoder:
    """Makes records of events. Never raises: what cannot be decoded is a record with a reason."""

    def __init__(
        self,
        options: DocumentOptions,
        definition: PartitionKeyDefinition,
        *,
        guarded: bool = False,
        transform: Transform | None = None,
    ) -> None:
        """`guarded`: records carry their stamp as a value as well. `transform` stands in for the one that is named."""
        self._options = options
        self._keys = KeyReader(definition)
        self._guarded = guarded
        self._transform = transform or (Transform.load(options.transform) if options.transform else None)
        self._delete = split_path(options.delete) if options.delete else None
        self._id = None if options.id == "sequence" else split_path(options.id)
        self._id_in_body = self._id == ("id",)
        self._stamp = options.stamp
        self._plain = self._id_in_body and bool(options.stamp)
        self._places: dict[PartitionId, _Place] = {}
        self._single = options.body == "object"
        self._array = () if options.body in {"object", "array"} else split_path(options.body)

    def decode(self, event: Event, hub: Hub, partition: PartitionId) -> list[Record]:
        """The records of the event, in order; one that drops if there are none."""
        place = self._places.get(partition)
        if place is None or place.incarnation != hub.incarnation:
            place = self._places[partition] = _Place(self._stamp, hub, partition)
        place.enter(event)
        try:
            body = self._text(event)
            if self._transform is not None:
                return self._transformed(self._transform, event, body, place)
            if self._single:
                return [self._record(orjson.loads(body), body, 0, place)]
            several = enumerate(self._elements(body))
            return [self._record(document, text, index, place) for index, (document, text) in several] or [DROPPED]
        except Undecodable as fault:
            return [Record(Operation.POISON, 0, reason=str(fault))]
        except orjson.JSONDecodeError as fault:
            return [Record(Operation.POISON, 0, reason=f"the body is not JSON: {fault}")]
        except RecursionError:
            return [Record(Operation.POISON, 0, reason="the body is nested too deeply")]

    def _text(self, event: Event) -> bytes:
        if event.body_kind != "data":
            raise Undecodable(f"the body is an AMQP {event.body_kind}, not data")
        body = event.body
        encoding = event.content_encoding
        if body[:2] == _GZIP or (encoding is not None and encoding.lower() == "gzip"):
            body = unzip(body, self._options.unzipped_max_bytes)
        if body[:3] == _BYTE_ORDER_MARK:
            body = body[3:]
        if not body:
            raise Undecodable("the body is empty")
        return body

    def _elements(self, body: bytes) -> Iterator[tuple[Any, bytes]]:
        found = orjson.loads(body)
        if self._array:
            found = value_at(found, self._array)
        if not isinstance(found, list):
            where = self._options.body if self._array else "the body"
            raise Undecodable(f"{where} is not an array" if found is not MISSING else f"{where} is missing")
        text = body.decode()
        for element, (start, end) in zip(
            found, json_text.elements(text, json_text.find(text, self._array)), strict=True
        ):
            yield element, text[start:end].encode()

    def _transformed(self, transform: Transform, event: Event, body: bytes, place: _Place) -> list[Record]:
        records: list[Record] = []
        for document, _ in [(orjson.loads(body), body)] if self._single else self._elements(body):
            try:
                made = transform(document, event, place.partition)
            except Exception as fault:  # noqa: BLE001 - the user's code may raise anything; it must not stop the others
                reason = f"the transform raised {type(fault).__name__}: {fault}"[:1000]
                records.append(Record(Operation.POISON, len(records), reason=reason))
                continue
            for one in made:
                records.append(self._made(one, len(records), place))
        return records or [DROPPED]

    def _made(self, document: Any, index: int, place: _Place) -> Record:  # noqa: ANN401 - any JSON
        try:
            text = orjson.dumps(document)
        except TypeError as fault:
            reason = f"what the transform gave back is not JSON: {fault}"
            return Record(Operation.POISON, index, reason=reason)
        return self._record(document, text, index, place)

    def _record(self, document: Any, text: bytes, index: int, place: _Place) -> Record:  # noqa: ANN401 - any JSON
        if type(document) is not dict:
            reason = f"the record is {_kind(document)}, not an object"
            return Record(Operation.POISON, index, reason=reason)
        try:
            if self._id_in_body:
                document_id = document.get("id", MISSING)
                if (
                    type(document_id) is not str
                    or not 0 < len(document_id) < 256
                    or document_id[-1] == " "
                    or BAD_IN_ID(document_id)
                ):
                    document_id = check_id(document_id, "/id")
            else:
                document_id = self._other_id(document, place, index)
            key, effective = self._keys.read(document)
            stamp = None
            if self._guarded:
                stamp = Stamp(place.incarnation, place.partition, place.sequence, index, place.enqueued)
            if self._delete is not None and _is_true(value_at(document, self._delete)):
                return Record(Operation.DELETE, index, document_id, key, effective, b"", stamp)
            # Nearly always:
            if self._plain and not index and self._stamp not in document and text[-1] == _CLOSING_BRACE:
                body = b"%b%b%d%b" % (text[:-1], place.prefix, place.sequence, place.end)
            else:
                body = self._stamped(document, document_id, text, index, place)
            if len(body) > MAX_DOCUMENT_BYTES:
                raise_too_large(body)
        except Undecodable as fault:
            return Record(Operation.POISON, index, reason=str(fault))
        return Record(_UPSERT, index, document_id, key, effective, body, stamp)

    def _other_id(self, document: dict[str, Any], place: _Place, index: int) -> str:
        if self._id is None:
            return f"{place.incarnation}-{place.partition}-{place.sequence}-{index}"
        value = value_at(document, self._id)
        if type(value) is int:
            value = str(value)
        return check_id(value, self._options.id)

    def _stamped(self, document: dict[str, Any], document_id: str, text: bytes, index: int, place: _Place) -> bytes:
        # The key is in the document, so it is never empty and a comma is always right.
        own_id = b"" if self._id_in_body or document.get("id") == document_id else b',"id":' + orjson.dumps(document_id)
        foreign = [name for name in (self._stamp, "id" if own_id else "") if name and name in document]
        text = json_text.without(text, foreign) if foreign else text.strip()
        if not self._stamp:
            return text[:-1] + own_id + b"}" if own_id else text
        stamp = b'%b%b%d,"index":%d,"enqueued":%d}}' % (own_id, place.prefix, place.sequence, index, place.enqueued)
        return text[:-1] + stamp


def unzip(body: bytes, max_bytes: int) -> bytes:
    """The body of a gzip text, member after member. Raises Undecodable if it is none, or grows too large."""
    parts: list[bytes] = []
    left = max_bytes
    rest = body
    try:
        while rest:
            reader = zlib.decompressobj(31)  # 31: a gzip header, and the largest window
            part = reader.decompress(rest, left + 1)
            left -= len(part)
            if left < 0:
                raise Undecodable(f"the gzip body grows beyond {max_bytes} bytes")
            if not reader.eof:
                raise Undecodable("the gzip body is cut off")
            parts.append(part)
            rest = reader.unused_data
    except zlib.error as fault:
        raise Undecodable(f"the body is not gzip: {fault}") from fault
    return b"".join(parts)


def _is_true(value: Any) -> bool:  # noqa: ANN401 - any JSON
    return value is not MISSING and bool(value)


def _kind(value: Any) -> str:  # noqa: ANN401 - any JSON
    names: Sequence[tuple[type, str]] = ((list, "an array"), (str, "a string"), (bool, "a boolean"), (int, "a number"))
    if value is None:
        return "null"
    return next((name for kind, name in names if isinstance(value, kind)), "a number")
