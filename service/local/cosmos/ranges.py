"""Physical partitions: which range of the key space each holds, and how they split.

Ids, parents and the incremental feed follow what the SDKs' routing maps expect (azure.cosmos._routing): a split makes
two children with new ids, whose parents are all their ancestors; the parent is gone from then on.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from service.local.cosmos.errors import BadRequest, Gone
from service.local.cosmos.partition_key import KeyDefinition, KeyValue
from service.local.cosmos.throughput import Budget

MAX_RANGES: Final = 1000
WHOLE: Final = ("", "FF")


@dataclass(slots=True, eq=False)
class Range:
    """A physical partition: its id, its part of the key space, and its share of the throughput."""

    id: str
    low: str
    high: str
    parents: tuple[str, ...]
    lsn: int
    """When it came to be, by the counter of the map: what the incremental feed goes by."""
    budget: Budget
    place: tuple[int, int, int] = field(default=(0, 1, 1))
    """First and last fraction of the key space, and their denominator: what a split halves."""
    plain_keys: dict[bytes, KeyValue] = field(default_factory=dict)
    """Keys of this range that are one plain text each, by how bulk operations write them: see `plain_upserts`."""

    def covers(self, low: str, high: str) -> bool:
        """Whether the two have keys in common."""
        return low < self.high and self.low < high


class RangeMap:
    """All the ranges of a container. Always covers the key space with no gap and no overlap."""

    def __init__(self, keys: KeyDefinition, count: int, budget: Callable[[], Budget]) -> None:
        if not 1 <= count <= MAX_RANGES:
            raise BadRequest(f"A container has 1 to {MAX_RANGES} ranges, not {count}.")
        self._keys = keys
        self._new_budget = budget
        self._next_id = 0
        self.lsn = 1
        self.ranges: list[Range] = [self._make((i, i + 1, count), ()) for i in range(count)]
        self._lows = [r.low for r in self.ranges]
        self._by_id = {r.id: r for r in self.ranges}

    def of(self, epk: str) -> Range:
        """The range that holds this effective partition key."""
        return self.ranges[bisect_right(self._lows, epk) - 1]

    def by_id(self, range_id: str) -> Range:
        """The range of that id, or 410/1002 if there is none, or no more."""
        found = self._by_id.get(range_id)
        if found is None:
            raise Gone(range_id)
        return found

    def split(self, range_id: str) -> tuple[Range, Range]:
        """Make two of one; the old id is gone at once."""
        if len(self.ranges) >= MAX_RANGES:
            raise BadRequest(f"A container has at most {MAX_RANGES} ranges.")
        parent = self.by_id(range_id)
        first, last, parts = parent.place
        self.lsn += 1
        ancestors = (*parent.parents, parent.id)
        middle = first + last
        halves = ((2 * first, middle, 2 * parts), (middle, 2 * last, 2 * parts))
        left, right = (self._make(half, ancestors) for half in halves)
        at = self.ranges.index(parent)
        self.ranges[at : at + 1] = [left, right]
        self._lows = [r.low for r in self.ranges]
        self._by_id = {r.id: r for r in self.ranges}
        return left, right

    def split_into(self, count: int) -> None:
        """Split the widest ranges, the first ones first, until there are so many."""
        while len(self.ranges) < count:
            self.split(max(self.ranges, key=lambda r: (r.place[1] - r.place[0]) / r.place[2]).id)

    @property
    def etag(self) -> str:
        """Where the incremental feed stands."""
        return f'"{self.lsn}"'

    def changes(self, since: str | None, rid: str) -> list[dict[str, Any]] | None:
        """The feed of ranges: all, or those that came after an etag; None if there are none (304)."""
        after = 0
        if since is not None:
            text = since.strip('"')
            after = int(text) if text.isdecimal() else 0
        fresh = [r for r in self.ranges if r.lsn > after]
        return [self._to_json(r, rid) for r in fresh] or None

    def _make(self, place: tuple[int, int, int], parents: tuple[str, ...]) -> Range:
        first, last, parts = place
        low = self._keys.bound(first, parts) if first else WHOLE[0]
        high = self._keys.bound(last, parts) if last < parts else WHOLE[1]
        made = Range(str(self._next_id), low, high, parents, self.lsn, self._new_budget(), place)
        self._next_id += 1
        return made

    def _to_json(self, item: Range, rid: str) -> dict[str, Any]:
        return {
            "_rid": rid,
            "id": item.id,
            "_etag": self.etag,
            "minInclusive": item.low,
            "maxExclusive": item.high,
            "ridPrefix": int(item.id),
            "_self": f"dbs/colls/{rid}/pkranges/{item.id}/",
            "throughputFraction": 1 / len(self.ranges),
            "status": "online",
            "parents": list(item.parents),
            "_ts": 0,
            "lsn": item.lsn,
            "_lsn": item.lsn,
        }

    def snapshot(self) -> dict[str, Any]:
        """What has to be kept to build the same map again."""
        return {
            "lsn": self.lsn,
            "next_id": self._next_id,
            "ranges": [{"id": r.id, "parents": r.parents, "lsn": r.lsn, "place": r.place} for r in self.ranges],
        }

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Take over a map that `snapshot` gave."""
        self.ranges = []
        for one in kept["ranges"]:
            self.lsn, self._next_id = one["lsn"], int(one["id"])
            first, last, parts = one["place"]
            self.ranges.append(self._make((first, last, parts), tuple(one["parents"])))
        self.lsn, self._next_id = kept["lsn"], kept["next_id"]
        self._lows = [r.low for r in self.ranges]
        self._by_id = {r.id: r for r in self.ranges}
