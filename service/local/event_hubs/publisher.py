"""The link of a sender: it takes events for a hub or for one of its partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from service.amqp.errors import AmqpError
from service.amqp.types import Described, ULong
from service.local.event_hubs.events import publication
from service.local.event_hubs.links import ACCEPTED, IncomingLink
from service.local.event_hubs.namespace import SERVER_BUSY

if TYPE_CHECKING:
    from service.local.event_hubs.hubs import Hub
    from service.local.event_hubs.partition import Partition
    from service.local.event_hubs.session import Session

MAX_HELD = 10_000
"""Messages that may wait for a frozen partition."""

_REJECTED = ULong(0x25)


class PublisherLink(IncomingLink):
    """Appends what a client sends. A message is accepted once it is in the log, and in the journal if there is one.

    On a link to a partition an event's key is kept but does not route it, as the SDK's live tests show.
    """

    def __init__(
        self, session: Session, handle: int, name: str, resource: str, *, hub: Hub, partition: Partition | None
    ) -> None:
        super().__init__(session, handle, name, resource)
        self.hub = hub
        self.partition = partition

    def on_message(self, message: bytes, message_format: int, settle: Callable[[object], None]) -> None:
        """Appends the events, or rejects the message whole."""
        try:
            self.connection.namespace.faults.check_busy(self.hub.name)
            published = publication(message, message_format)
        except AmqpError as error:
            settle(Described(_REJECTED, [error.to_wire()]))
            return
        partition = self.partition or self.hub.route(published.partition_key)

        def publish() -> None:
            self.hub.publish(partition, published.events)
            settle(ACCEPTED)

        if partition.frozen and len(partition.held) >= MAX_HELD:
            overflow = AmqpError("The partition does not answer, and too much waits for it.", SERVER_BUSY)
            settle(Described(_REJECTED, [overflow.to_wire()]))
        elif partition.frozen:
            partition.held.append(publish)
        else:
            publish()
