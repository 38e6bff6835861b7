"""Dead letters as they stand in their blobs: to list them, to show one, and to mark those that were sent again."""

import base64
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import orjson
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob.aio import ContainerClient

from service.source.events import Event, Hub, PartitionId

_ENDING: Final = ".jsonl"
_MARKS_ENDING: Final = ".redriven"
LetterKey = tuple[str, str, int, str, int, int]
"""Namespace, hub, incarnation, partition, sequence, index: letters with the same key are about the same record."""


@dataclass(frozen=True, slots=True)
class StoredLetter:
    """One letter as it was read."""

    blob: str
    hub: Hub
    partition: PartitionId
    event: Event
    index: int
    reason: str
    status: int
    sub_status: int
    tries: int
    at: datetime
    redriven: bool
    """It was sent again, and completed."""
    duplicate: bool
    """A letter before it is about the same record."""

    @property
    def key(self) -> LetterKey:
        """What the letter is about."""
        return self.hub.namespace, self.hub.name, self.hub.incarnation, self.partition, self.event.sequence, self.index

    def summary(self) -> dict[str, Any]:
        """For lists: everything but the body."""
        return {
            "blob": self.blob,
            "hub": self.hub.name,
            "partition": self.partition,
            "sequence": self.event.sequence,
            "index": self.index,
            "reason": self.reason,
            "status": self.status,
            "tries": self.tries,
            "at": self.at.isoformat(),
            "redriven": self.redriven,
            "duplicate": self.duplicate,
        }


class LetterArchive:
    """The letters in one blob container. Reading holds one blob at a time."""

    def __init__(self, container: ContainerClient) -> None:
        self._container = container
        self.torn = 0
        """Lines that were not readable: cut off by a crash."""

    async def letters(self, prefix: str = "") -> AsyncIterator[StoredLetter]:
        """All letters under a prefix, oldest blob first within each partition. None if there is no container."""
        seen: set[LetterKey] = set()
        try:
            names = [blob.name async for blob in self._container.list_blobs(name_starts_with=prefix)]
        except ResourceNotFoundError:
            return
        for name in sorted(name for name in names if name.endswith(_ENDING)):
            marked = await self._marks(name) if name + _MARKS_ENDING in names else frozenset[LetterKey]()
            for letter in self._parse(name, await self._read(name), marked, seen):
                yield letter

    async def find(self, partition: str, sequence: int, index: int | None = None) -> list[StoredLetter]:
        """The letters about one event, or one record of it."""
        return [
            letter
            async for letter in self.letters()
            if letter.partition == partition and letter.event.sequence == sequence and index in {None, letter.index}
        ]

    async def mark(self, blob: str, letters: Iterable[tuple[StoredLetter, str]], at: datetime) -> None:
        """Note beside a blob what became of letters that were sent again. Durable on return."""
        lines = b"".join(
            orjson.dumps({"key": letter.key, "outcome": outcome, "at": at}, option=orjson.OPT_APPEND_NEWLINE)
            for letter, outcome in letters
        )
        marks = self._container.get_blob_client(blob + _MARKS_ENDING)
        with contextlib.suppress(ResourceExistsError):
            await marks.create_append_blob(match_condition=MatchConditions.IfMissing)
        await marks.append_block(lines)

    async def _marks(self, name: str) -> frozenset[LetterKey]:
        text = await self._read(name + _MARKS_ENDING)
        return frozenset(tuple(orjson.loads(line)["key"]) for line in text.splitlines() if line)

    async def _read(self, name: str) -> bytes:
        download = await self._container.download_blob(name)
        text: bytes = await download.readall()
        return text

    def _parse(
        self, name: str, text: bytes, marked: frozenset[LetterKey], seen: set[LetterKey]
    ) -> Iterable[StoredLetter]:
        bodies: dict[tuple[int, str, int], bytes] = {}
        for line in text.splitlines():
            if not line:
                continue
            try:
                fields = orjson.loads(line)
                event = (fields["incarnation"], fields["partition"], fields["sequence"])
                if fields["body"] is not None:
                    bodies[event] = base64.b64decode(fields["body"])
                letter = _letter(name, fields, bodies[event])
            except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
                self.torn += 1
                continue
            duplicate = letter.key in seen
            seen.add(letter.key)
            yield replace(letter, redriven=letter.key in marked, duplicate=duplicate)


def _letter(blob: str, fields: dict[str, Any], body: bytes) -> StoredLetter:
    event = Event(
        fields["sequence"],
        fields["offset"],
        round(datetime.fromisoformat(fields["enqueued"]).timestamp() * 1000),
        body,
        fields["properties"],
        content_type=fields["content_type"],
        content_encoding=fields["content_encoding"],
    )
    hub = Hub(fields["namespace"], fields["hub"], fields["group"], fields["incarnation"])
    return StoredLetter(
        blob,
        hub,
        PartitionId(fields["partition"]),
        event,
        fields["index"],
        fields["reason"],
        fields["status"],
        fields["sub_status"],
        fields["tries"],
        datetime.fromisoformat(fields["at"]),
        redriven=False,
        duplicate=False,
    )
