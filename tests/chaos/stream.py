"""Events whose outcome is known: each document's last state, and the least that a checkpoint promises of it."""

import json
from dataclasses import dataclass, field
from random import Random

DOCUMENTS = 400
"""Per partition."""
KEYS = 50
POISON = ('{"no": "array"', '"text"', '[{"key": "k", "number": 1}]', '[{"id": "a/b", "key": "k"}]', "[17]", "\udc80")


@dataclass(frozen=True, slots=True)
class Change:
    """What one record does to its document."""

    number: int
    """Higher comes later; all records of a document go through one partition, in this order."""
    id: str
    gone: bool


@dataclass(slots=True)
class Stream:
    """Makes events, and remembers them. An event is an array of up to three records, or cannot be read at all."""

    random: Random
    partitions: int
    number: int = 0
    sent: list[list[tuple[Change, ...]]] = field(init=False)
    """By partition and sequence: the changes of that event."""
    poison: set[tuple[str, int]] = field(default_factory=set)
    last: dict[str, Change] = field(default_factory=dict)
    last_gone: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sent = [[] for _ in range(self.partitions)]

    def append(self, hub, count: int) -> None:
        """Put so many more events into the hub; called where the hub lives."""
        bodies: list[list[bytes]] = [[] for _ in range(self.partitions)]
        for _ in range(count):
            partition, changes, body = self._event()
            if not changes:
                self.poison.add((str(partition), len(self.sent[partition])))
            self.sent[partition].append(changes)
            bodies[partition].append(body)
        for partition, its in enumerate(bodies):
            if its:
                hub.append(str(partition), its)

    def _event(self) -> tuple[int, tuple[Change, ...], bytes]:
        random = self.random
        if random.random() < 0.005:
            body = random.choice(POISON).encode(errors="surrogateescape")
            return random.randrange(self.partitions), (), body
        # The records of an event share a partition; now and then also a document.
        partition = random.randrange(self.partitions)
        changes = tuple(self._change(partition) for _ in range(random.choice((1, 1, 1, 2, 3))))
        rows = [
            {"id": each.id, "key": _key(each.id), "gone": True}
            if each.gone
            else {"id": each.id, "key": _key(each.id), "number": each.number, "padding": "x" * random.randrange(900)}
            for each in changes
        ]
        return partition, changes, json.dumps(rows).encode()

    def _change(self, partition: int) -> Change:
        document = int(DOCUMENTS * self.random.random() ** 3)  # a few get most of the changes
        self.number += 1
        change = Change(self.number, f"doc-{partition}-{document:05d}", self.random.random() < 0.06)
        self.last[change.id] = change
        if change.gone:
            self.last_gone[change.id] = change.number
        return change

    def expected(self) -> dict[str, int]:
        """The documents that must be there at the end, with the number of their last change."""
        return {name: change.number for name, change in self.last.items() if not change.gone}

    def broken_promise(self, change: Change, stored: int | None) -> str | None:
        """A checkpoint covers the change: what is wrong with what is stored (its number; None: nothing is)."""
        if stored is None:
            kept = change.gone or self.last_gone.get(change.id, -1) > change.number
            return None if kept else f"{change} is checkpointed, and the document is not there"
        kept = stored > change.number if change.gone else stored >= change.number
        return None if kept else f"{change} is checkpointed, and the document is still at {stored}"


def _key(document_id: str) -> str:
    _, partition, document = document_id.split("-")
    return f"key-{partition}-{int(document) % KEYS}"
