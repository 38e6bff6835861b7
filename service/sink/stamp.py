"""The stamp: where a document came from, and which of two is the newer.

One order for the service and the jobs: (incarnation, enqueued, partition, sequence, index). Within a partition the
sequence alone decides; there `enqueued` never falls, so this is the same order, and a replay that has seen less
of the partition still recognises its own stamp.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Precedence(Enum):
    """How a record stands to the document that is there."""

    NEWER = "newer"
    SAME = "same"
    """The same record of the same event: written before, by whomever."""
    OLDER = "older"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The place of one record in the history of one hub."""

    incarnation: int
    partition: str
    sequence: int
    index: int
    enqueued: int
    """Whole seconds since 1970, never falling within a partition."""

    @classmethod
    def parse(cls, value: object) -> "Stamp | None":
        """From a document's stamp property; None where there is none of ours, which counts as older than any."""
        if not isinstance(value, Mapping):
            return None
        numbers: list[Any] = [value.get(name) for name in ("incarnation", "sequence", "index", "enqueued")]
        partition = value.get("partition")
        if not isinstance(partition, str) or any(type(number) is not int for number in numbers):
            return None
        incarnation, sequence, index, enqueued = numbers
        return cls(incarnation, partition, sequence, index, enqueued)


def compare(record: Stamp, stored: Stamp | None) -> Precedence:
    """How `record` stands to the document whose stamp is `stored`."""
    if stored is None:
        return Precedence.NEWER
    mine: tuple[object, ...]
    theirs: tuple[object, ...]
    if (record.incarnation, record.partition) == (stored.incarnation, stored.partition):
        mine, theirs = (record.sequence, record.index), (stored.sequence, stored.index)
    else:
        mine = (record.incarnation, record.enqueued, record.partition)
        theirs = (stored.incarnation, stored.enqueued, stored.partition)
    if mine == theirs:
        return Precedence.SAME
    return Precedence.NEWER if mine > theirs else Precedence.OLDER
