"""The plan of a run: units in order, made once and stored. Pure.

A unit is a window of the source: files, or ranges of sequences. Units are in the order of time, and are done one after
another, so that of two records of a document the later one is seen later, or in the same unit.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from service.jobs.faults import BadInput


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file of the source."""

    name: str
    size: int
    version: str
    partition: str = ""
    at: float = 0.0
    """For the order among files: what its name says, or when it was written."""


@dataclass(frozen=True, slots=True)
class RangePart:
    """Sequences of one partition of a hub, both ends included."""

    partition: str
    first: int
    last: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """What is done, and marked as done, at a time."""

    number: int
    files: tuple[FilePart, ...] = ()
    ranges: tuple[RangePart, ...] = ()

    @property
    def name(self) -> str:
        """Sorts as the units do."""
        return f"{self.number:06d}"

    @property
    def size(self) -> int:
        """Bytes, as far as is known."""
        return sum(part.size for part in self.files) + sum(part.size for part in self.ranges)


@dataclass(frozen=True, slots=True)
class Plan:
    """All units of a run, and what they were made for."""

    digest: str
    """Of the settings and options that decide what is written."""
    units: tuple[Unit, ...]
    bounds: Mapping[str, int] = field(default_factory=dict)
    """By partition: the last sequence that is taken. Empty: no bound."""
    incarnation: int = 0
    empty: tuple[str, ...] = ()
    """Files without a byte."""

    def encode(self) -> bytes:
        """As it is stored."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, body: bytes) -> "Plan":
        """Raises BadInput where it is none."""
        try:
            found = orjson.loads(body)
            units = tuple(_unit(unit) for unit in found["units"])
            return cls(found["digest"], units, found["bounds"], found["incarnation"], tuple(found["empty"]))
        except (ValueError, KeyError, TypeError) as fault:
            raise BadInput(f"the stored plan cannot be read ({fault}); begin a new run with another --run-id") from None


def pack_files(files: Iterable[FilePart], window_bytes: int) -> tuple[Unit, ...]:
    """Files into units of about so many bytes, oldest first. Files of one time stay together."""
    units: list[list[FilePart]] = []
    size = 0
    for file in sorted(files, key=lambda file: (file.at, file.partition, file.name)):
        if not units or (size + file.size > window_bytes and file.at != units[-1][-1].at):
            units.append([])
            size = 0
        units[-1].append(file)
        size += file.size
    return tuple(Unit(number, files=tuple(unit)) for number, unit in enumerate(units))


def pack_ranges(ranges: Sequence[RangePart], window_bytes: int) -> tuple[Unit, ...]:
    """Ranges into units: each unit has the same share of every partition, so that they go forward together."""
    total = sum(part.size for part in ranges)
    count = max(1, -(-total // max(1, window_bytes)))
    units = [tuple(_slices(ranges, number, count)) for number in range(count)]
    return tuple(Unit(number, ranges=unit) for number, unit in enumerate(unit for unit in units if unit))


def _slices(ranges: Sequence[RangePart], number: int, count: int) -> Iterable[RangePart]:
    for part in ranges:
        length = part.last - part.first + 1
        first, beyond = part.first + length * number // count, part.first + length * (number + 1) // count
        if first < beyond:
            yield RangePart(part.partition, first, beyond - 1, part.size // count)


def digest(parts: Mapping[str, Any]) -> str:
    """Of what decides the outcome of a run; equal digests mean that one may go on with the other."""
    text = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=str)
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def _unit(found: Mapping[str, Any]) -> Unit:
    files = tuple(FilePart(**part) for part in found["files"])
    return Unit(found["number"], files, tuple(RangePart(**part) for part in found["ranges"]))
