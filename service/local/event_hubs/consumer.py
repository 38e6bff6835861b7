"""The link of a receiver: it reads a partition's log from its own place, as far as credit and windows go."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from service.amqp.decode import skip
from service.amqp.messages import DELIVERY_ANNOTATIONS, section
from service.amqp.performatives import MAX_UINT
from service.amqp.types import Symbol, Timestamp
from service.local.event_hubs.delivery import LAST, TRANSFER_SIZE, pack_transfer, transfer_frames, transfer_head
from service.local.event_hubs.links import OutgoingLink

if TYPE_CHECKING:
    from service.local.event_hubs.hubs import Hub
    from service.local.event_hubs.partition import Partition, PartitionLog
    from service.local.event_hubs.session import Session

EVENTS_PER_TURN = 256
"""Most events that one link writes before the others, and the other connections, have their turn."""


class ConsumerLink(OutgoingLink):
    """Delivers a partition's events to one receiver."""

    def __init__(
        self,
        session: Session,
        handle: int,
        name: str,
        resource: str,
        *,
        hub: Hub,
        partition: Partition,
        group: str,
        epoch: int | None,
        receiver_name: str,
        runtime_metrics: bool,
    ) -> None:
        super().__init__(session, handle, name, resource)
        self.hub = hub
        self.partition = partition
        self.group = group
        self.epoch = epoch
        self.receiver_name = receiver_name
        self.next_sequence = 0
        """The sequence number that is delivered next."""
        self._runtime_metrics = runtime_metrics
        self._head = transfer_head(session.channel, handle)

    def wake(self) -> None:
        """There may be something to deliver."""
        if self.credit > 0:
            self.connection.schedule_delivery()

    def closed(self) -> None:
        """Frees the place among the partition's receivers."""
        self.partition.group(self.group).remove(self)

    def drain(self) -> None:
        """Delivers all that credit, windows and the log allow."""
        while self.deliver():
            pass

    def deliver(self) -> bool:
        """Writes a turn of events; True if there is more that could be written."""
        log, session = self.partition.log, self.session
        if self.partition.frozen:
            return False
        # What retention took while this receiver was behind is gone: a gap, as in the service.
        start = max(self.next_sequence, log.first) - log.first
        count = min(self.credit, session.remote_incoming_window, len(log.events) - start, EVENTS_PER_TURN)
        if count <= 0:
            return False
        events, prefix = log.events[start : start + count], b""
        if self._runtime_metrics:
            prefix = section(DELIVERY_ANNOTATIONS, self._metrics(log))
            events = [_without_front(event) for event in events]
        sent = self._write(events, prefix)
        self.next_sequence = log.first + start + sent
        self.credit -= sent
        self.delivery_count = (self.delivery_count + sent) & MAX_UINT
        return self.credit > 0 and session.remote_incoming_window > 0 and self.next_sequence < log.end

    def _write(self, events: list[bytes], prefix: bytes) -> int:
        """The hot loop. Returns how many events went out: events of several frames can use the window up sooner."""
        session, connection = self.session, self.connection
        head, delivery_id = self._head, session.next_delivery_id
        room = connection.peer_max_frame_size - TRANSFER_SIZE - len(prefix)
        overhead = TRANSFER_SIZE + len(prefix)
        out: list[bytes] = []
        add = out.append
        if max(map(len, events)) <= room:
            for event in events:
                add(pack_transfer(overhead + len(event), head, delivery_id, LAST))
                if prefix:
                    add(prefix)
                add(event)
                delivery_id = (delivery_id + 1) & MAX_UINT
            session.next_delivery_id = delivery_id
            session.sent_transfers(len(events))
            connection.write(b"".join(out))
            return len(events)
        for number, event in enumerate(events):
            if session.remote_incoming_window <= 0:
                return number
            session.send_transfers(self.handle, transfer_frames(session, self.handle, prefix + event))
        return len(events)

    def _metrics(self, log: PartitionLog) -> dict[object, object]:
        """What a receiver asks for by com.microsoft:enable-receiver-runtime-metric (SDK: `_common.EventData`)."""
        return {
            Symbol("last_enqueued_sequence_number"): log.last,
            Symbol("last_enqueued_offset"): str(log.last_offset),
            Symbol("last_enqueued_time_utc"): Timestamp(log.last_enqueued_ms),
            Symbol("runtime_info_retrieval_time_utc"): Timestamp(int(time.time() * 1000)),
        }


def _without_front(event: bytes) -> bytes:
    """The event without its sender's delivery annotations: a message has room for one such section, the metrics'."""
    return event if event[2] != DELIVERY_ANNOTATIONS else event[skip(event, 0) :]
