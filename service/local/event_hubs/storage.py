"""Hubs on disk: a description per hub, and a journal of segments per partition.

A record reaches the operating system before its sender is told, so it outlives this process, however that ends. It is
not forced to the platter: a local stack need not survive the loss of power.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

SEGMENT_BYTES = 64 * 1024 * 1024
"""Where a new file is begun; retention frees whole files."""

_RECORD = struct.Struct(">IIqqq")
"""Length of the event, its checksum, sequence number, offset, enqueued milliseconds."""


@dataclass(frozen=True, slots=True)
class StoredHub:
    """What a hub's description says."""

    name: str
    created_ms: int
    partitions: int
    consumer_groups: list[str]


class HubStore:
    """The directory of one hub."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def save(self, hub: StoredHub) -> None:
        """Writes the description, whole or not at all."""
        self._directory.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {
                "name": hub.name,
                "created_ms": hub.created_ms,
                "partitions": hub.partitions,
                "consumer_groups": hub.consumer_groups,
            }
        )
        _replace(self._directory / "hub.json", text)

    def load(self) -> StoredHub:
        """Reads the description."""
        fields = json.loads((self._directory / "hub.json").read_text())
        return StoredHub(fields["name"], fields["created_ms"], fields["partitions"], fields["consumer_groups"])

    def journal(self, partition_id: str) -> "PartitionJournal":
        """The journal of a partition."""
        return PartitionJournal(self._directory / partition_id)

    def delete(self) -> None:
        """Removes the hub and all its events."""
        for path in sorted(self._directory.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        self._directory.rmdir()


def stored_hubs(directory: Path) -> Iterator[HubStore]:
    """The hubs kept in a data directory."""
    for description in sorted(directory.glob("*/hub.json")):
        yield HubStore(description.parent)


class PartitionJournal:
    """Events of one partition in files named by the first sequence number in them.

    The last file is never deleted: it says where the sequence goes on. What a crash left half written at its end is
    cut off when it is loaded; the sender of that event was never told that it was accepted.
    """

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._file: int | None = None
        self._size = 0

    def append(self, records: Iterable[tuple[int, int, int, bytes]]) -> None:
        """Writes (sequence, offset, enqueued ms, event) in one go."""
        parts: list[bytes] = []
        first = None
        for sequence, offset, enqueued_ms, event in records:
            first = sequence if first is None else first
            parts += (_RECORD.pack(len(event), zlib.crc32(event), sequence, offset, enqueued_ms), event)
        if first is None:
            return
        block = b"".join(parts)
        if self._file is None or self._size >= self._segment_bytes:
            self._begin(first)
        if self._file is not None:
            os.write(self._file, block)
            self._size += len(block)

    def load(self) -> Iterator[tuple[int, int, int, bytes]]:
        """The events that were kept, oldest first; those that retention took may still be among them."""
        for path in self._segments():
            raw = path.read_bytes()
            position = 0
            while (record := _record(raw, position)) is not None:
                sequence, offset, enqueued_ms, event, position = record
                yield sequence, offset, enqueued_ms, event
            if position < len(raw):
                os.truncate(path, position)

    def begin(self) -> int:
        """The first sequence number that retention has left."""
        marker = self._directory / "begin"
        return int(marker.read_text()) if marker.exists() else 0

    def trim(self, first: int) -> None:
        """Remembers that the events before `first` are gone, and deletes the files that hold no others."""
        segments = self._segments()
        for path, following in pairwise(segments):
            if int(following.stem) <= first:
                path.unlink()
        if self._directory.exists():
            _replace(self._directory / "begin", str(first))

    def close(self) -> None:
        """Closes the file; the next append begins another one."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin(self, first: int) -> None:
        self.close()
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{first:020d}.log"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._size = os.fstat(self._file).st_size

    def _segments(self) -> list[Path]:
        return sorted(self._directory.glob("*.log"))


def _record(raw: bytes, position: int) -> tuple[int, int, int, bytes, int] | None:
    start = position + _RECORD.size
    if start > len(raw):
        return None
    length, checksum, sequence, offset, enqueued_ms = _RECORD.unpack_from(raw, position)
    event = raw[start : start + length]
    if len(event) < length or zlib.crc32(event) != checksum:
        return None
    return sequence, offset, enqueued_ms, event, start + length


def _replace(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)
