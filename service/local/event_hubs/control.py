"""Faults on demand, and a look inside: what tests do to a running server, in its process.

`control_http` offers the same over a loopback port.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from service.amqp.errors import DETACH_FORCED, AmqpError
from service.local.event_hubs.consumer import ConsumerLink
from service.local.event_hubs.links import Link
from service.local.event_hubs.namespace import Namespace
from service.local.event_hubs.partition import Partition
from service.local.event_hubs.publisher import PublisherLink


@dataclass(frozen=True, slots=True)
class ReceiverState:
    """A live receiver as the server sees it."""

    hub: str
    partition: str
    group: str
    epoch: int | None
    name: str
    container: str
    next_sequence: int
    credit: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Which links are meant; None means any."""

    hub: str | None = None
    partition: str | None = None
    group: str | None = None
    role: str | None = None
    """`sender` or `receiver`, as seen by the client."""

    def takes(self, link: Link) -> bool:
        """Whether the link is meant. Links of `$cbs` and `$management` never are."""
        if not isinstance(link, ConsumerLink | PublisherLink):
            return False
        role = "receiver" if isinstance(link, ConsumerLink) else "sender"
        return (
            (self.hub is None or link.hub.name.lower() == self.hub.lower())
            and (self.partition is None or (link.partition is not None and link.partition.id == self.partition))
            and (self.group is None or (isinstance(link, ConsumerLink) and link.group == self.group.lower()))
            and (self.role is None or self.role == role)
        )


class Control:
    """Switches faults of a namespace on and off. Everything takes effect before the call returns."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def drop(self, scope: Scope | None = None) -> int:
        """Breaks the sockets that carry such links (all sockets without a scope); how many."""
        dropped = 0
        for connection in list(self._namespace.connections):
            if scope is None or any(scope.takes(link) for link in connection.links()):
                connection.abort()
                dropped += 1
        return dropped

    def detach(
        self,
        scope: Scope | None = None,
        condition: str = DETACH_FORCED,
        description: str = "The link is force detached by the broker.",
    ) -> int:
        """Detaches such links (all senders and receivers without a scope) with a condition; how many."""
        links = [link for link in self._links() if (scope or Scope()).takes(link)]
        for link in links:
            link.detach(AmqpError(description, condition))
        return len(links)

    def busy(self, hub: str | None = None, *, on: bool = True) -> None:
        """A hub (all without a name) answers com.microsoft:server-busy to sends, attaches and requests."""
        name = "*" if hub is None else hub.lower()
        if on:
            self._namespace.faults.busy.add(name)
        elif hub is None:
            self._namespace.faults.busy.clear()
        else:
            self._namespace.faults.busy.discard(name)

    def delay(self, seconds: float) -> None:
        """Everything that the server writes waits so long; 0 ends it."""
        self._namespace.faults.delay_seconds = max(0.0, seconds)

    def freeze(self, hub: str, partition: str | None = None) -> None:
        """A partition (all without an id) neither delivers nor accepts; its links stay."""
        for one in self._partitions(hub, partition):
            one.freeze()

    def thaw(self, hub: str, partition: str | None = None) -> None:
        """A frozen partition (all without an id) goes on."""
        for one in self._partitions(hub, partition):
            one.thaw()

    def receivers(self, scope: Scope | None = None) -> list[ReceiverState]:
        """The live receivers."""
        return [
            ReceiverState(
                link.hub.name,
                link.partition.id,
                link.group,
                link.epoch,
                link.receiver_name,
                link.connection.container_id,
                link.next_sequence,
                link.credit,
            )
            for link in self._links()
            if isinstance(link, ConsumerLink) and (scope or Scope()).takes(link)
        ]

    def state(self) -> dict[str, object]:
        """All there is to see, as plain data."""
        return {
            "connections": len(self._namespace.connections),
            "delay_seconds": self._namespace.faults.delay_seconds,
            "busy": sorted(self._namespace.faults.busy),
            "hubs": [
                {
                    "name": hub.name,
                    "created_ms": hub.created_ms,
                    "consumer_groups": sorted(hub.consumer_groups.values()),
                    "partitions": [_partition_state(partition) for partition in hub.partitions],
                }
                for hub in self._namespace.hubs.values()
            ],
            "receivers": [asdict(receiver) for receiver in self.receivers()],
        }

    def _links(self) -> list[Link]:
        return [link for connection in list(self._namespace.connections) for link in connection.links()]

    def _partitions(self, hub: str, partition: str | None) -> Iterator[Partition]:
        found = self._namespace.hub(hub)
        yield from found.partitions if partition is None else [found.partition(partition)]


def _partition_state(partition: Partition) -> dict[str, object]:
    return {
        "id": partition.id,
        "first": partition.log.first,
        "last": partition.log.last,
        "last_offset": str(partition.log.last_offset),
        "size_bytes": partition.log.size_bytes,
        "frozen": partition.frozen,
    }
