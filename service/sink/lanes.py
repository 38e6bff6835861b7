"""All lanes of a container, and what waits outside of them. Pure: time is an argument."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Final

from service.sink.lane import NEVER, BatchOptions, Lane
from service.sink.order import Entry
from service.sink.routing import PartitionKeyDefinition, RangeMap

# How often a record whose lease is past its deadline is looked at again: leases are renewed every ten seconds.
_HELD_SECONDS: Final = 1.0


class Lanes:
    """Queues by range. Every entry is in exactly one place: a lane, delayed, held, or on its way."""

    def __init__(
        self,
        definition: PartitionKeyDefinition,
        ranges: Sequence[tuple[str, str, str]],
        options: BatchOptions,
        now: float,
    ) -> None:
        self._definition = definition
        self._options = options
        self._map = RangeMap(definition, ranges)
        self.by_range: dict[str, Lane] = {name: Lane(name, options, now) for name in self._map.ids}
        self._delayed: list[tuple[float, int, Sequence[Entry]]] = []
        self._number = count()
        self._held: list[Entry] = []
        self._held_until = NEVER

    def add(self, entry: Entry) -> bool:
        """Queue a record for the range of its key. Says whether the sender should look."""
        return self.by_range[self._map.find(entry.record.effective_key)].add(entry)

    def delay(self, entries: Sequence[Entry], until: float) -> None:
        """Records that are tried again later, wherever they belong then."""
        if entries:
            heapq.heappush(self._delayed, (until, next(self._number), entries))

    def hold(self, entry: Entry, now: float) -> None:
        """A record whose lease is past its deadline but not known to be lost: it waits for the renewal."""
        self._held.append(entry)
        self._held_until = min(self._held_until, now + _HELD_SECONDS)

    def wake(self, now: float) -> float:
        """Queue what has waited long enough. Gives when to come again."""
        while self._delayed and self._delayed[0][0] <= now:
            for entry in heapq.heappop(self._delayed)[2]:
                self.add(entry)
        if self._held_until <= now:
            held, self._held, self._held_until = self._held, [], NEVER
            for entry in held:
                self.add(entry)
        return min(self._held_until, self._delayed[0][0] if self._delayed else NEVER)

    def reroute(self, ranges: Sequence[tuple[str, str, str]], now: float) -> None:
        """The ranges are others now: sort everything that waits anew. Ranges that stayed keep what they learnt."""
        self._map = RangeMap(self._definition, ranges)
        waiting = [entry for lane in self.by_range.values() for entry in lane.clear()]
        known = self.by_range
        self.by_range = {name: known.get(name) or Lane(name, self._options, now) for name in self._map.ids}
        for entry in waiting:
            self.add(entry)

    def remove(self, unwanted: Callable[[Entry], bool]) -> list[Entry]:
        """Take out what is not wanted any more."""
        removed = [entry for entry in self if unwanted(entry)]
        if not removed:
            return []
        for lane in self.by_range.values():
            wholes = [[entry for entry in batch if not unwanted(entry)] for batch in lane.whole]
            ready = [entry for entry in lane.ready if not unwanted(entry)]
            lane.clear()
            lane.whole.extend(batch for batch in wholes if batch)
            lane.put_back(ready)
        self._held = [entry for entry in self._held if not unwanted(entry)]
        self._delayed = [
            (until, number, kept)
            for until, number, entries in self._delayed
            if (kept := [entry for entry in entries if not unwanted(entry)])
        ]
        heapq.heapify(self._delayed)
        return removed

    def __iter__(self) -> Iterator[Entry]:
        for lane in self.by_range.values():
            for batch in lane.whole:
                yield from batch
            yield from lane.ready
        for _, _, entries in self._delayed:
            yield from entries
        yield from self._held

    def __len__(self) -> int:
        delayed: Iterable[Sequence[Entry]] = (entries for _, _, entries in self._delayed)
        return sum(map(len, self.by_range.values())) + sum(map(len, delayed)) + len(self._held)

    @property
    def in_flight(self) -> int:
        """Requests on their way to ranges that are there now."""
        return sum(lane.in_flight for lane in self.by_range.values())
