"""The completion map: the done-ahead set as a short text inside the checkpoint.

A map says which sequences beyond the frontier are completed. It is bound by a digest to the hub, its incarnation,
the partition and the frontier it was written with: a map that is damaged, foreign or from another checkpoint
does not read, and then everything beyond the frontier is simply done again.

Format 1: `1.` + base64url of zlib of: 12 bytes of SHA-256, then pairs of varints (gap, run): from the frontier on,
`gap` sequences that are not completed, then `run` sequences that are.
"""

import base64
import binascii
import hashlib
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from service.source.events import Hub, PartitionId

MAX_TEXT = 64 * 1024
"""Checkpoints are written every few seconds: a larger map is cut, and keeps what is nearest to the frontier."""
MAX_BYTES = 4 * 1024 * 1024
"""What a map may unpack to. 64 KB of zlib could claim a thousand times its size."""
_DIGEST_BYTES = 12
_VERSION = "1."


@dataclass(frozen=True, slots=True)
class CompletionMap:
    """Sequences known to be completed, as ranges in rising order."""

    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    """Each end is the first sequence that no longer belongs to its range."""

    def __contains__(self, sequence: int) -> bool:
        index = bisect_right(self.starts, sequence) - 1
        return index >= 0 and sequence < self.ends[index]

    def __len__(self) -> int:
        return sum(end - start for start, end in zip(self.starts, self.ends, strict=True))

    def beyond(self, frontier: int) -> Iterator[int]:
        """The sequences in the map that are higher than this, in rising order."""
        for start, end in zip(self.starts, self.ends, strict=True):
            yield from range(max(start, frontier + 1), end)

    @property
    def last(self) -> int:
        """The highest sequence in the map; -1 when it is empty."""
        return self.ends[-1] - 1 if self.ends else -1


EMPTY = CompletionMap()


class UnreadableMap(ValueError):
    """The text is no map of this partition at this frontier."""


def encode(hub: Hub, partition: PartitionId, frontier: int, sequences: Iterable[int]) -> str | None:
    """The map as text; None when nothing is done ahead. `sequences` need not be sorted."""
    pairs = list(_runs(frontier, sorted(sequences)))
    while pairs:
        text = _VERSION + _pack(_binding(hub, partition, frontier), pairs)
        if len(text) <= MAX_TEXT:
            return text
        # What is left out is done again after a restart. Runs differ in length, so this converges from above.
        pairs = pairs[: int(len(pairs) * MAX_TEXT / len(text) * 0.95)]
    return None


def decode(hub: Hub, partition: PartitionId, frontier: int, text: str | None) -> CompletionMap:
    """The map that was written with this frontier. Raises UnreadableMap for anything else."""
    if text is None:
        return EMPTY
    if not text.startswith(_VERSION):
        raise UnreadableMap(f"its format is not {_VERSION[:-1]}")
    if len(text) > MAX_TEXT:
        raise UnreadableMap(f"it has more than {MAX_TEXT} characters")
    try:
        unpacker = zlib.decompressobj()
        payload = unpacker.decompress(base64.urlsafe_b64decode(text[len(_VERSION) :]), MAX_BYTES)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise UnreadableMap("it is damaged") from error
    digest, runs = payload[:_DIGEST_BYTES], payload[_DIGEST_BYTES:]
    if not unpacker.eof or digest != _digest(_binding(hub, partition, frontier), runs):
        raise UnreadableMap("it is damaged, or belongs to another hub, partition or checkpoint")
    numbers = list(_varints(runs))
    starts, ends, at = [], [], frontier + 1
    for gap, run in zip(numbers[::2], numbers[1::2], strict=True):
        starts.append(at + gap)
        at += gap + run
        ends.append(at)
    return CompletionMap(tuple(starts), tuple(ends))


def _binding(hub: Hub, partition: PartitionId, frontier: int) -> bytes:
    return f"{hub.namespace}\n{hub.name}\n{hub.group}\n{hub.incarnation}\n{partition}\n{frontier}".encode()


def _digest(binding: bytes, runs: bytes) -> bytes:
    return hashlib.sha256(binding + b"\n" + runs).digest()[:_DIGEST_BYTES]


def _pack(binding: bytes, pairs: list[tuple[int, int]]) -> str:
    runs = b"".join(_varint(number) for pair in pairs for number in pair)
    return base64.urlsafe_b64encode(zlib.compress(_digest(binding, runs) + runs)).decode()


def _runs(frontier: int, sequences: list[int]) -> Iterator[tuple[int, int]]:
    """(gap, run) pairs from the frontier on."""
    at = frontier + 1
    start = end = None
    for sequence in sequences:
        if sequence < (at if end is None else end):
            continue  # at or before the frontier, or named twice
        if sequence == end:
            end += 1
            continue
        if start is not None and end is not None:
            yield start - at, end - start
            at = end
        start, end = sequence, sequence + 1
    if start is not None and end is not None:
        yield start - at, end - start


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varints(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield number
            number = shift = 0
