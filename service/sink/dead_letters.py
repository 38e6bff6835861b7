"""Dead letters: records that can never be committed, kept with their reason.

They stand in append blobs by hub, partition and hour, one JSON line each. An append is durable when it returns; one
that got no answer is looked for before it is tried again, so no letter is written twice by one process. A record that
is read again after a crash may be: letters are the same if hub, incarnation, partition, sequence and index are.
"""

import asyncio
import base64
import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import orjson
import structlog
from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob.aio import BlobClient, ContainerClient

from service.errors import Retry
from service.source.events import Event, Hub, PartitionId

log = structlog.get_logger(__name__)

# Azure Storage allows 50,000 blocks per append blob: rolled somewhat before.
_MAX_BLOCKS: Final = 49_500
# Storage takes 4 MiB and more; aiohttp copies a body at once, and warns beyond this.
_MAX_APPEND_BYTES: Final = 1024 * 1024
_TIMEOUT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Letter:
    """A record that can never be committed: its event, and which of its records it is."""

    hub: Hub
    partition: PartitionId
    event: Event
    index: int
    reason: str
    status: int
    """Cosmos' own status, or 0 where it was never asked."""
    sub_status: int
    tries: int
    at: datetime
    """When it was given up."""


class DeadLetterBox(Protocol):
    """Where dead letters are kept."""

    async def append(self, letters: Sequence[Letter]) -> None:
        """Durable on return. Raises Retry if not all could be kept for now: call again with the same sequence then."""


def letter_line(letter: Letter, *, with_body: bool = True) -> bytes:
    """One line of a blob. The body is the whole event's; of several letters of one event only the first needs it."""
    event = letter.event
    fields: dict[str, Any] = {
        "namespace": letter.hub.namespace,
        "hub": letter.hub.name,
        "group": letter.hub.group,
        "incarnation": letter.hub.incarnation,
        "partition": letter.partition,
        "sequence": event.sequence,
        "index": letter.index,
        "offset": event.offset,
        "enqueued": datetime.fromtimestamp(event.enqueued_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        "properties": {str(_plain(name)): _plain(value) for name, value in event.properties.items()},
        "content_type": event.content_type,
        "content_encoding": event.content_encoding,
        "body": base64.b64encode(event.body).decode() if with_body else None,
        "reason": letter.reason,
        "status": letter.status,
        "sub_status": letter.sub_status,
        "tries": letter.tries,
        "at": letter.at.isoformat(timespec="milliseconds"),
    }
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE, default=str)


def _plain(value: object) -> Any:  # noqa: ANN401 - what JSON can hold
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class BlobDeadLetters:
    """The letters of this process in a blob container, which is created if it is missing."""

    def __init__(self, container: ContainerClient) -> None:
        self._container = container
        self._blobs: dict[str, _AppendBlob] = {}
        self._created = False
        self._letters: Sequence[Letter] = ()
        self._left: deque[tuple[str, bytes]] = deque()
        """What of the letters is not known to be durable: places and chunks."""

    async def append(self, letters: Sequence[Letter]) -> None:
        """One append for all letters of a partition, if they fit into one."""
        if letters is not self._letters:
            self._letters, self._left = letters, _plan(letters)
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                if not self._created:
                    await self._create()
                while self._left:
                    await self._append(*self._left[0])
                    self._left.popleft()
        except (AzureError, TimeoutError) as fault:
            raise Retry(f"dead letters cannot be stored: {_first_line(fault)}") from fault
        self._letters = ()

    async def _create(self) -> None:
        with contextlib.suppress(ResourceExistsError):
            await self._container.create_container()
        self._created = True

    async def _append(self, place: str, chunk: bytes) -> None:
        if place not in self._blobs:
            self._blobs = {name: blob for name, blob in self._blobs.items() if name[-13:] == place[-13:]}  # this hour's
            self._blobs[place] = _AppendBlob(self._container, place)
        try:
            await self._blobs[place].append(chunk)
        except ResourceNotFoundError:
            self._created = False  # someone removed the container or the blob: begin anew
            del self._blobs[place]
            raise


class _AppendBlob:
    """One place's blobs: the first, and those it was rolled into."""

    def __init__(self, container: ContainerClient, place: str) -> None:
        self._container = container
        self._place = place
        self._roll = 0
        self._blob: BlobClient | None = None
        self._position = 0
        self._blocks = 0
        self._unsure: bytes | None = None
        """What was last sent without an answer."""

    async def append(self, chunk: bytes) -> None:
        blob = self._blob or await self._open()
        if self._unsure == chunk and await self._arrived(blob, chunk):
            self._unsure = None
            return
        self._unsure = chunk
        while True:
            try:
                answer = await blob.append_block(chunk, appendpos_condition=self._position)
            except HttpResponseError as fault:
                if fault.status_code == 412:  # another process has appended, or this append has arrived before
                    if await self._arrived(blob, chunk):
                        break
                    continue
                if getattr(fault, "error_code", None) == "BlockCountExceedsLimit":
                    blob = await self._next()
                    continue
                raise
            self._position += len(chunk)
            self._blocks = int(str(answer.get("blob_committed_block_count") or self._blocks + 1))
            break
        self._unsure = None
        if self._blocks >= _MAX_BLOCKS:
            await self._next()

    async def _arrived(self, blob: BlobClient, chunk: bytes) -> bool:
        """Whether the chunk stands where it was to stand; the position is then behind everything that is there."""
        at = self._position
        properties = await blob.get_blob_properties()
        size = properties.size
        found = False
        if size >= at + len(chunk):
            download = await blob.download_blob(offset=at, length=len(chunk))
            found = await download.readall() == chunk
        self._position = size
        self._blocks = properties.append_blob_committed_block_count or self._blocks
        return found

    async def _open(self) -> BlobClient:
        while True:
            suffix = f"-{self._roll}" if self._roll else ""
            blob = self._container.get_blob_client(f"{self._place}{suffix}.jsonl")
            try:
                await blob.create_append_blob(match_condition=MatchConditions.IfMissing)
                self._position = self._blocks = 0
            except ResourceExistsError:
                properties = await blob.get_blob_properties()
                self._position = properties.size
                self._blocks = properties.append_blob_committed_block_count or 0
                if self._blocks >= _MAX_BLOCKS:
                    self._roll += 1
                    continue
            self._blob = blob
            return blob

    async def _next(self) -> BlobClient:
        self._roll += 1
        self._blob = None
        return await self._open()


def _plan(letters: Sequence[Letter]) -> deque[tuple[str, bytes]]:
    lines: dict[str, list[bytes]] = {}
    bodies: set[tuple[str, int]] = set()
    for letter in letters:
        hub = letter.hub
        place = f"{hub.namespace}/{hub.name}/{hub.group}/{letter.partition}/{letter.at:%Y/%m/%d/%H}"
        event = place, letter.event.sequence
        lines.setdefault(place, []).append(letter_line(letter, with_body=event not in bodies))
        bodies.add(event)
    return deque((place, chunk) for place, texts in lines.items() for chunk in _chunks(texts))


def _chunks(texts: Sequence[bytes]) -> list[bytes]:
    """Lines packed into as few appends as fit. A line that is longer than an append is cut over several; each append
    that follows such a one, or opens a batch, starts on a new line, so a torn line spoils no other.
    """
    chunks: list[bytes] = []
    part = b"\n"
    for text in texts:
        if len(part) + len(text) > _MAX_APPEND_BYTES and part != b"\n":
            chunks.append(part)
            part = b""
        part += text
        while len(part) > _MAX_APPEND_BYTES:
            chunks.append(part[:_MAX_APPEND_BYTES])
            part = part[_MAX_APPEND_BYTES:]
    chunks.append(part)
    return chunks


def _first_line(fault: BaseException) -> str:
    return (str(fault) or type(fault).__name__).splitlines()[0]
