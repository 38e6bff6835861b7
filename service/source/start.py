"""Where a partition without a checkpoint starts: the setting EVENTHUB_START.

`parse_start` turns its text into a frozen `StartPosition`. What it names is resolved to a sequence and stored
as the partition's first checkpoint before anything is read, so a restart never resolves it a second time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

from service.source.events import PartitionId

_FORMS = (
    "`earliest`, `latest`, an ISO time such as 2026-01-31T12:00:00Z, or a JSON object by partition, "
    'such as {"0": "latest", "1": {"sequence": 42}, "2": {"offset": "8589"}, "*": "earliest"}'
)


@dataclass(frozen=True, slots=True)
class AtEdge:
    """The oldest event still kept, or the first one to come."""

    edge: Literal["earliest", "latest"]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first event enqueued at this time or later. A time to come means the same as `latest`."""

    enqueued_ms: int


@dataclass(frozen=True, slots=True)
class AtSequence:
    """The event of this sequence is the first to be read."""

    sequence: int


@dataclass(frozen=True, slots=True)
class AtOffset:
    """The event of this offset is the first to be read."""

    offset: str


Position = AtEdge | AtTime | AtSequence | AtOffset
EARLIEST = AtEdge("earliest")
LATEST = AtEdge("latest")


@dataclass(frozen=True, slots=True)
class StartPosition:
    """A start for every partition: its own where one is named, else the common one."""

    common: Position = EARLIEST
    by_partition: Mapping[PartitionId, Position] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, partition: PartitionId) -> Position:
        """Where this partition starts."""
        return self.by_partition.get(partition, self.common)


def parse_start(text: str) -> StartPosition:
    """The value of EVENTHUB_START; ValueError says in a sentence what is wrong with it."""
    text = text.strip()
    if not text.startswith("{"):
        return StartPosition(parse_position(text))
    try:
        table = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the start position is not valid JSON ({error}); use {_FORMS}") from None
    by_partition = {key.strip(): _of_json(key, value) for key, value in table.items()}
    common = by_partition.pop("*", EARLIEST)
    for key in by_partition:
        if not key.isdecimal():
            raise ValueError(f"{key!r} is no partition id in the start position; ids are numbers, `*` means all others")
    return StartPosition(common, MappingProxyType({PartitionId(key): value for key, value in by_partition.items()}))


def parse_position(text: str) -> Position:
    """`earliest`, `latest` or an ISO time; a time without a zone is UTC."""
    word = text.strip().lower()
    if word == "earliest":
        return EARLIEST
    if word == "latest":
        return LATEST
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no start position; use {_FORMS}") from None
    return AtTime(round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000))


def _of_json(key: str, value: object) -> Position:
    """The position under one key of the JSON object."""
    match value:
        case str():
            return parse_position(value)
        case int() if not isinstance(value, bool) and value >= 0:
            return AtSequence(value)
        case {"sequence": int(sequence), **more} if not (more or isinstance(sequence, bool)) and sequence >= 0:
            return AtSequence(sequence)
        case {"offset": str(offset), **more} if offset and not more:
            return AtOffset(offset)
        case {"time": str(time), **more} if not more:
            return parse_position(time)
        case _:
            raise ValueError(f"the start position of partition {key!r} cannot be understood; use {_FORMS}")
