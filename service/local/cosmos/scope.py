"""Which documents a query or feed is about: by partition key, by range, by part of the key space, or all."""

from dataclasses import dataclass

from service.local.cosmos.container import Container
from service.local.cosmos.documents import Document
from service.local.cosmos.errors import Gone
from service.local.cosmos.partition_key import KeyValue
from service.local.cosmos.ranges import WHOLE, Range
from service.local.cosmos.wire import Request


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of a container."""

    key: str | None
    """Only documents of this partition key."""
    low: str
    high: str
    places: tuple[Range, ...]
    """The ranges it lies in."""
    everywhere: bool = False
    """Whether the request names no part at all."""

    @classmethod
    def of_request(cls, container: Container, request: Request) -> "Scope":
        """What the headers of a request name."""
        text = request.header("x-ms-documentdb-partitionkey")
        low, high = _epk_range(request)
        if text is not None:
            keys = container.rules.keys
            components = keys.components(text)
            if components and len(components) < len(keys.paths):
                first, last = keys.prefix_range(components)
                low, high = max(low, first), min(high, last)
                return cls(None, low, high, _places(container, low, high))
            key = keys.parse(text)
            return cls(key.text, low, high, (container.route(key),))
        range_id = request.range_id
        if range_id is not None:
            place = container.ranges.by_id(range_id)
            if low < place.low or high > place.high:
                if (low, high) != WHOLE:
                    raise Gone(range_id)
                low, high = place.low, place.high
            return cls(None, low, high, (place,))
        named = (low, high) != WHOLE
        return cls(None, low, high, _places(container, low, high), not named)

    @classmethod
    def of_key(cls, container: Container, key: KeyValue) -> "Scope":
        """One logical partition."""
        return cls(key.text, *WHOLE, (container.route(key),))

    def has(self, document: Document) -> bool:
        """Whether the document belongs to it."""
        if self.key is not None and document.key.text != self.key:
            return False
        return self.low <= document.key.epk < self.high


def _epk_range(request: Request) -> tuple[str, str]:
    low, high = request.header("x-ms-start-epk"), request.header("x-ms-end-epk")
    return (low or "").upper(), (high or WHOLE[1]).upper()


def _places(container: Container, low: str, high: str) -> tuple[Range, ...]:
    return tuple(place for place in container.ranges.ranges if place.covers(low, high))
