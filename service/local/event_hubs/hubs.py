"""Hubs: a name, a time of creation, partitions and consumer groups."""

import time
from collections.abc import Callable, Iterable

from service.amqp.errors import NOT_FOUND, AmqpError
from service.local.event_hubs.events import NewEvent, new_events
from service.local.event_hubs.partition import Partition, Retention
from service.local.event_hubs.routing import partition_index
from service.local.event_hubs.storage import HubStore, StoredHub

DEFAULT_GROUP = "$Default"


class Hub:
    """An event hub. Names of hubs and groups are found whatever their case, as in the service."""

    def __init__(
        self,
        name: str,
        partitions: int,
        *,
        created_ms: int | None = None,
        consumer_groups: Iterable[str] = (),
        retention: Retention | None = None,
        store: HubStore | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if partitions < 1:
            raise ValueError("A hub has at least one partition.")
        self.name = name
        self.retention = retention or Retention()
        self._clock = clock
        self._store = store
        self.created_ms = self.now_ms() if created_ms is None else created_ms
        self.partitions: list[Partition] = []
        self.consumer_groups: dict[str, str] = {}
        self._next_round_robin = 0
        for group in (DEFAULT_GROUP, *consumer_groups):
            self.consumer_groups.setdefault(group.lower(), group)
        self.add_partitions(partitions)

    @classmethod
    def restored(cls, store: HubStore, retention: Retention, clock: Callable[[], float]) -> "Hub":
        """A hub as its store has it, with its events."""
        kept = store.load()
        hub = cls(
            kept.name,
            kept.partitions,
            created_ms=kept.created_ms,
            consumer_groups=kept.consumer_groups,
            retention=retention,
            store=store,
            clock=clock,
        )
        hub.retain()
        return hub

    def now_ms(self) -> int:
        """The time in milliseconds, as enqueued times have it."""
        return int(self._clock() * 1000)

    def add_partitions(self, count: int) -> None:
        """More partitions; those that exist stay as they are."""
        for number in range(len(self.partitions), len(self.partitions) + count):
            journal = self._store.journal(str(number)) if self._store is not None else None
            self.partitions.append(Partition(str(number), journal))
        self._save()

    def add_consumer_group(self, name: str) -> None:
        """Makes a consumer group known; links to unknown ones are refused."""
        self.consumer_groups.setdefault(name.lower(), name)
        self._save()

    def partition(self, partition_id: str) -> Partition:
        """The partition of this id, or the service's error."""
        if partition_id.isdecimal() and len(partition_id) < 6 and int(partition_id) < len(self.partitions):
            return self.partitions[int(partition_id)]
        raise AmqpError(
            f"The specified partition is invalid for an EventHub partition sender or receiver. It should be between 0 "
            f"and {len(self.partitions) - 1}. Parameter name: PartitionId",
            "com.microsoft:argument-out-of-range",
        )

    def check_consumer_group(self, name: str) -> None:
        """AmqpError if there is no such consumer group."""
        if name.lower() not in self.consumer_groups:
            raise AmqpError(
                f"The messaging entity '{self.name}/ConsumerGroups/{name[:100]}' could not be found.", NOT_FOUND
            )

    def route(self, partition_key: str | None) -> Partition:
        """The partition for a key, or the next one in turn."""
        if partition_key is not None:
            return self.partitions[partition_index(partition_key, len(self.partitions))]
        self._next_round_robin = (self._next_round_robin + 1) % len(self.partitions)
        return self.partitions[self._next_round_robin]

    def publish(self, partition: Partition, events: list[NewEvent], enqueued_ms: int | None = None) -> int:
        """Appends events, applies retention, and wakes the receivers; the first sequence number."""
        now_ms = self.now_ms()
        sequence = partition.log.append(events, now_ms if enqueued_ms is None else enqueued_ms)
        if self.retention.size_bytes is not None or self.retention.seconds is not None:
            partition.log.retain(self.retention, now_ms)
        partition.wake()
        return sequence

    def append(
        self,
        partition_id: str,
        bodies: Iterable[bytes],
        *,
        partition_key: str | None = None,
        properties: dict[str, object] | None = None,
        enqueued_ms: int | None = None,
    ) -> int:
        """Puts events straight into a partition, without a client; the first one's sequence number."""
        events = new_events(bodies, partition_key, properties)
        return self.publish(self.partition(partition_id), events, enqueued_ms)

    def close(self, *, delete: bool = False) -> None:
        """Lets go of the files, or deletes them."""
        for partition in self.partitions:
            partition.log.close()
        if delete and self._store is not None:
            self._store.delete()

    def _save(self) -> None:
        if self._store is not None:
            groups = list(self.consumer_groups.values())
            self._store.save(StoredHub(self.name, self.created_ms, len(self.partitions), groups))

    def retain(self) -> None:
        """Applies retention to every partition now."""
        for partition in self.partitions:
            partition.log.retain(self.retention, self.now_ms())
