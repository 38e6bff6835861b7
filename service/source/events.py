"""Events as they came from the hub, and where they stand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NewType

PartitionId = NewType("PartitionId", str)
BodyKind = Literal["data", "value", "sequence"]


@dataclass(frozen=True, slots=True)
class Hub:
    """Which hub, in which of its lives, read for whom."""

    namespace: str
    """Fully qualified name of the namespace, lower case."""
    name: str
    group: str
    incarnation: int
    """The hub's created_at in ms: a hub deleted and created again under its name is another hub."""


@dataclass(slots=True)
class Event:
    """One event of one partition. Not frozen only because a frozen one takes three times as long to make."""

    sequence: int
    offset: str
    enqueued_ms: int
    body: bytes
    properties: Mapping[Any, Any]
    """The sender's own properties; keys and values as AMQP gave them."""
    body_kind: BodyKind = "data"
    """Only `data` bodies carry documents. The others' `body` is empty."""
    content_type: str | None = None
    content_encoding: str | None = None
