"""One Avro file of Capture: looked over before it is read, then read with fastavro.

A file is checked whole, block by block, before the first of its events is given out, so a truncated one gives none.
"""

import io
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import fastavro
import orjson
import pyarrow as pa  # type: ignore[import-untyped]

from service.jobs.faults import BadInput
from service.jobs.storage import Ends
from service.source.events import Event

_PROPERTY: Final = ["long", "double", "string", "bytes", "null"]
READER_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "EventData",
    "namespace": "Microsoft.ServiceBus.Messaging",
    "fields": [
        {"name": "SequenceNumber", "type": "long"},
        {"name": "Offset", "type": "string"},
        {"name": "EnqueuedTimeUtc", "type": "string"},
        {"name": "SystemProperties", "type": {"type": "map", "values": _PROPERTY}},
        {"name": "Properties", "type": {"type": "map", "values": _PROPERTY}},
        {"name": "Body", "type": ["null", "bytes"]},
    ],
}
"""What is asked of every file; one whose unions are in another order, or without null, is read by it just as well."""
_TYPES: Final = {
    "SequenceNumber": {"long", "int"},
    "Offset": {"string"},
    "EnqueuedTimeUtc": {"string"},
    "Body": {"bytes"},
}
_MAGIC: Final = b"Obj\x01"
_CODECS: Final = ("null", "deflate", "snappy")
_SYNC_BYTES: Final = 16
_CRC_BYTES: Final = 4


class BadFile(Exception):
    """No sound file of Capture; the message says why."""


def check_ends(ends: Ends | BadInput) -> bool:
    """Look at the beginning and the end of a file: is it Avro, by a schema and codec of Capture, and is its last block
    whole? Gives whether it has blocks at all. Raises BadFile, also where the ends cannot be seen.
    """
    if isinstance(ends, BadInput):
        raise BadFile(str(ends))
    if not ends.size:
        return False
    head = io.BytesIO(ends.head)
    metadata, sync = _header(head)
    _check_metadata(metadata)
    if head.tell() == ends.size:
        return False
    if ends.tail != sync:
        raise BadFile("it is cut off: its last block is not whole")
    return True


def check(path: str | Path) -> int:
    """Walk all blocks; gives the number of events. Raises BadFile. A file of no bytes holds none."""
    size = Path(path).stat().st_size
    if not size:
        return 0
    with Path(path).open("rb") as file:
        metadata, sync = _header(file)
        _check_metadata(metadata)
        records = 0
        while (at := file.tell()) < size:
            count, length = _long(file), _long(file)
            if count < 0 or length < 0 or file.tell() + length + _SYNC_BYTES > size:
                raise BadFile(f"it is cut off: the block at byte {at} of {size} is not whole")
            file.seek(length, io.SEEK_CUR)
            if file.read(_SYNC_BYTES) != sync:
                raise BadFile(f"it is damaged: the block at byte {at} does not end as it should")
            records += count
    return records


def read(path: str | Path, batch: int) -> Iterator[list[Event]]:
    """The events in lists of `batch`. Raises BadFile."""
    if not Path(path).stat().st_size:
        return
    with Path(path).open("rb") as file:
        try:
            rows = iter(fastavro.reader(file, reader_schema=READER_SCHEMA))
            while events := [_event(row) for row in islice(rows, batch)]:  # type: ignore[arg-type]
                yield events
        except BadFile:
            raise
        except Exception as fault:  # whatever fastavro and its codecs make of garbage
            raise BadFile(f"it cannot be decoded: {type(fault).__name__}: {fault}"[:300]) from fault


def enqueued_ms(text: str) -> int:
    """From `11/16/2016 4:44:11 PM`, as the service writes it (UTC without saying so), or from an ISO time."""
    try:
        at = datetime.strptime(text, "%m/%d/%Y %I:%M:%S %p").replace(tzinfo=UTC)
    except ValueError:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return round(at.timestamp() * 1000)


def _event(row: dict[str, Any]) -> Event:
    body, system = row["Body"], row["SystemProperties"]
    return Event(
        row["SequenceNumber"],
        row["Offset"],
        enqueued_ms(row["EnqueuedTimeUtc"]),
        body or b"",
        row["Properties"],
        "data" if body is not None else "value",
        system.get("content-type"),
        system.get("content-encoding"),
    )


def _check_metadata(metadata: dict[str, bytes]) -> None:
    codec = metadata.get("avro.codec", b"null").decode(errors="replace")
    if codec not in _CODECS:
        raise BadFile(f"its codec is {codec}; read are {', '.join(_CODECS)}")
    try:
        fields = {field["name"]: _kinds(field["type"]) for field in orjson.loads(metadata["avro.schema"])["fields"]}
    except (KeyError, TypeError, ValueError):
        raise BadFile("its schema cannot be read") from None
    for name, wanted in _TYPES.items():
        if not fields.get(name, set()) & wanted:
            found = "missing" if name not in fields else f"of type {', '.join(sorted(fields[name]))}"
            raise BadFile(f"it is no file of Capture: in its schema {name} is {found}")


def _kinds(kind: Any) -> set[str]:  # noqa: ANN401 - an Avro schema
    kinds = kind if isinstance(kind, list) else [kind]
    return {each if isinstance(each, str) else str(each.get("type")) for each in kinds}


def _header(file: BinaryIO) -> tuple[dict[str, bytes], bytes]:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise BadFile("it is no Avro file: its first bytes are not `Obj` and 1")
    metadata: dict[str, bytes] = {}
    while count := _long(file):
        if count < 0:
            _long(file)  # the size of the block in bytes, which we do not need
        for _ in range(abs(count)):
            name = _bytes(file).decode(errors="replace")
            metadata[name] = _bytes(file)
    sync = file.read(_SYNC_BYTES)
    if len(sync) != _SYNC_BYTES:
        raise BadFile("it is cut off within its header")
    return metadata, sync


def _bytes(file: BinaryIO) -> bytes:
    length = _long(file)
    found = file.read(max(length, 0))
    if length < 0 or len(found) != length:
        raise BadFile("it is cut off within its header")
    return found


def _long(file: BinaryIO) -> int:
    """A zig-zag number of variable length (Avro 1.12, "Primitive Types")."""
    value = _varint(file)
    return (value >> 1) ^ -(value & 1)


def _varint(file: BinaryIO) -> int:
    value = shift = 0
    while True:
        byte = file.read(1)
        if not byte or shift > 63:
            raise BadFile("it is cut off, or damaged")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7


def _read_snappy(file: BinaryIO) -> io.BytesIO:
    """A block: its length in bytes, what is packed, and the CRC of what was (Avro 1.12, "Required Codecs")."""
    block = file.read(_long(file))
    packed, crc = block[:-_CRC_BYTES], block[-_CRC_BYTES:]
    body = pa.decompress(packed, _varint(io.BytesIO(packed)), "snappy", asbytes=True)
    if zlib.crc32(body).to_bytes(_CRC_BYTES, "big") != crc:
        raise BadFile("it is damaged: a block has another check sum than it says")
    return io.BytesIO(body)


# fastavro's own needs another package; pyarrow is here anyway, and does the same.
fastavro.read.BLOCK_READERS["snappy"] = _read_snappy
