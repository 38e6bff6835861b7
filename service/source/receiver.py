"""One epoch receiver of one partition, through azure-eventhub's public API.

The SDK's client is used for the wire only. Its retries are off, because with them it silently delivers events twice;
at the first error the receiver is closed for good, and whoever reads opens another from its own last sequence. Events
are handed over a batch at a time and the SDK waits meanwhile, so nothing piles up beyond its prefetch.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, PartitionContext
from azure.eventhub.amqp import AmqpMessageBodyType

from service.errors import SluiceError
from service.source.events import BodyKind, Event, PartitionId
from service.source.hub import After, ReadFrom
from service.source.payloads import install
from service.source.start import AtEdge, AtOffset, AtSequence, AtTime

install()


@dataclass(frozen=True, slots=True)
class ReceiverOptions:
    """How events are fetched."""

    prefetch: int = 3000
    """Events on their way to us. The SDK asks for more only when all have come, so few means slow."""
    max_batch: int = 500
    max_wait_seconds: float = 1.0
    """`receive` returns nothing after this long without events."""
    open_seconds: float = 30.0
    """Without even that for so long, the receiver counts as dead."""
    prefetch_bytes: int = 8 << 20
    """About as many bytes fetched ahead at most: with large events, `prefetch` shrinks."""

    def prefetch_for(self, event_bytes: float) -> int:
        """How many events of this size to fetch ahead; never none. 0: the size is not known yet."""
        return max(1, min(self.prefetch, int(self.prefetch_bytes / (event_bytes or UNKNOWN_BYTES))))


UNKNOWN_BYTES = 16 * 1024
"""Taken for the size of events that nothing is known of: few are as large, and a receiver that turns out to fetch far
too little is replaced as well."""


class EventHubReceiver:
    """A `Receiver` on a client of its own, which it closes."""

    def __init__(
        self,
        client: EventHubConsumerClient,
        partition: PartitionId,
        epoch: int | None,
        read_from: ReadFrom,
        *,
        options: ReceiverOptions,
        translate: Callable[[BaseException], SluiceError],
        event_bytes: float = 0.0,
    ) -> None:
        self._client = client
        self._partition = partition
        self._epoch = epoch
        self._read_from = read_from
        self._options = options
        self._prefetch = options.prefetch_for(event_bytes)
        self._guessing = not event_bytes
        self._translate = translate
        self._task: asyncio.Task[None] | None = None
        self._batch: Sequence[EventData] | None = None
        self._error: SluiceError | None = None
        self._event_bytes = 0.0
        self._filled = asyncio.Event()
        """There is a batch or an error to be picked up."""
        self._emptied = asyncio.Event()
        """The batch before is dealt with: the SDK may bring the next."""

    async def receive(self) -> Sequence[Event]:
        """The next batch, converted; the one before counts as dealt with."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"receiver-{self._partition}")
        self._emptied.set()
        if not self._filled.is_set():
            try:
                async with asyncio.timeout(self._options.open_seconds):
                    await self._filled.wait()
            except TimeoutError as error:
                self._error = self._translate(error)
        if self._error is not None:
            raise self._error
        batch, self._batch = self._batch or (), None
        self._filled.clear()
        events = convert(batch)
        if events:
            size = sum([len(event.body) for event in events]) / len(events)
            self._event_bytes = size if not self._event_bytes else 0.8 * self._event_bytes + 0.2 * size
        return events

    @property
    def event_bytes(self) -> float:
        """About how large the latest events were; 0 before the first."""
        return self._event_bytes

    @property
    def misfetches(self) -> bool:
        """Whether far fewer events should be fetched ahead (or far more, if their size was not known): open another."""
        right = self._options.prefetch_for(self._event_bytes)
        return self._prefetch > 2 * right or (self._guessing and right > 2 * self._prefetch)

    async def close(self) -> None:
        """Stop the SDK, which takes it up to a second."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=5)
        with contextlib.suppress(Exception):  # it is given up in any case
            async with asyncio.timeout(5):
                await self._client.close()

    async def _run(self) -> None:
        position, inclusive = _starting(self._read_from)
        try:
            await self._client.receive_batch(
                self._on_batch,
                partition_id=self._partition,
                owner_level=self._epoch,
                prefetch=self._prefetch,
                # The SDK fetches on while it holds no more than a batch: a larger one would undo the prefetch.
                max_batch_size=min(self._options.max_batch, self._prefetch),
                max_wait_time=self._options.max_wait_seconds,
                starting_position=position,
                starting_position_inclusive=inclusive,
                on_error=self._on_error,
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the reader must hear of it
            await self._on_error(None, error)

    async def _on_batch(self, _context: PartitionContext, batch: Sequence[EventData]) -> None:
        if self._error is not None:
            return
        self._emptied.clear()
        self._batch = batch
        self._filled.set()
        await self._emptied.wait()

    async def _on_error(self, _context: PartitionContext | None, error: Exception) -> None:
        # Only the first counts: afterwards the SDK goes round and attaches again where it once started.
        if self._error is None:
            self._error = self._translate(error)
            self._filled.set()


def convert(batch: Sequence[EventData]) -> list[Event]:
    """Our events from the SDK's. This is run for each event there is, so every look-up counts."""
    events = []
    data = AmqpMessageBodyType.DATA
    for item in batch:
        message = item.raw_amqp_message
        annotations: Any = message.annotations
        properties = message.properties
        is_data = message.body_type is data
        event = Event(
            annotations[b"x-opt-sequence-number"],
            annotations[b"x-opt-offset"].decode(),
            annotations[b"x-opt-enqueued-time"],
            b"".join(message.body) if is_data else b"",
            message.application_properties or _NO_PROPERTIES,
        )
        if not is_data:
            event.body_kind = _KINDS[message.body_type]
        if properties is not None:
            event.content_type = _text(properties.content_type)
            event.content_encoding = _text(properties.content_encoding)
        events.append(event)
    return events


_NO_PROPERTIES: dict[Any, Any] = {}
_KINDS: dict[Any, BodyKind] = {AmqpMessageBodyType.VALUE: "value", AmqpMessageBodyType.SEQUENCE: "sequence"}


def _text(value: object) -> str | None:
    """A sender may have put anything there: what is no text says nothing."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value if isinstance(value, str) else None


def _starting(read_from: ReadFrom) -> tuple[str | int | datetime, bool]:
    """The SDK's starting position, and whether the event there is wanted itself."""
    match read_from:
        case After(offset=str(offset)):
            return offset, False
        case After(sequence=sequence):
            return (sequence, False) if sequence >= 0 else ("-1", False)
        case AtEdge(edge):
            return ("-1" if edge == "earliest" else "@latest"), False
        case AtSequence(sequence):
            return sequence, True
        case AtOffset(offset):
            return offset, True
        case AtTime(enqueued_ms):
            return datetime.fromtimestamp(enqueued_ms / 1000, UTC), True
