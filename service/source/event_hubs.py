"""A hub of Azure Event Hubs: the `HubClient` that azure-eventhub gives."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from azure.eventhub.aio import EventHubConsumerClient

from service.source.events import PartitionId
from service.source.faults import of_hub
from service.source.hub import HubDescription, PartitionDescription, ReadFrom
from service.source.receiver import EventHubReceiver, ReceiverOptions

_CALL_SECONDS = 30.0
"""A description takes three round trips on a connection of its own; half a second where nothing is wrong."""
_LEFT_SECONDS = 2.0
"""For descriptions that nobody waits for any more, when all is closed."""


class EventHubs:
    """One hub. `make_client` gives a new SDK client each time: receivers share nothing, so none can hold up another."""

    def __init__(
        self,
        make_client: Callable[[], EventHubConsumerClient],
        namespace: str,
        name: str,
        options: ReceiverOptions,
        close_credential: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._make_client = make_client
        self._translate = partial(of_hub, namespace=namespace, name=name)
        self._options = options
        self._client = make_client()
        self._asking: set[asyncio.Task[dict[str, Any]]] = set()
        self._receivers: dict[PartitionId, EventHubReceiver] = {}
        """The latest of each partition, for what it learnt about the size of events."""
        self._guessed_bytes: dict[PartitionId, float] = {}
        self._close_credential = close_credential
        self.namespace = namespace
        self.name = name

    async def describe(self) -> HubDescription:
        """When it was created, and its partitions as of now."""
        properties = await self._ask(self._client.get_eventhub_properties())
        return HubDescription(
            round(properties["created_at"].timestamp() * 1000),
            tuple(PartitionId(each) for each in properties["partition_ids"]),
        )

    async def describe_partition(self, partition: PartitionId) -> PartitionDescription:
        """Its oldest and newest event."""
        properties = await self._ask(self._client.get_partition_properties(partition))
        description = PartitionDescription(
            properties["beginning_sequence_number"],
            properties["last_enqueued_sequence_number"],
            properties["last_enqueued_offset"],
            round(properties["last_enqueued_time_utc"].timestamp() * 1000),
            bool(properties["is_empty"]),
        )
        # Offsets are opaque, but mostly they count bytes: good enough for the first guess at the size of events.
        if description.last_offset.isdecimal() and description.last > 0:
            self._guessed_bytes[partition] = int(description.last_offset) / description.last
        return description

    def receiver(self, partition: PartitionId, epoch: int | None, read_from: ReadFrom) -> EventHubReceiver:
        """A receiver on a connection of its own, which fetches as far ahead as the size of the events allows.

        Without an epoch it displaces nobody: the hub refuses it where a receiver with one is.
        """
        former = self._receivers.get(partition)
        event_bytes = (former.event_bytes if former else 0.0) or self._guessed_bytes.get(partition, 0.0)
        receiver = EventHubReceiver(
            self._make_client(),
            partition,
            epoch,
            read_from,
            options=self._options,
            translate=self._translate,
            event_bytes=event_bytes,
        )
        self._receivers[partition] = receiver
        return receiver

    async def close(self) -> None:
        """Give back the connection for descriptions, and the credential."""
        if self._asking:
            await asyncio.wait(self._asking, timeout=_LEFT_SECONDS)
        for asking in self._asking:
            asking.cancel()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(5):
                await self._client.close()
        if self._close_credential is not None:
            await self._close_credential()

    async def _ask(self, call: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """What the SDK answers, or what its fault means.

        The call is a task of its own, for it may miss that it is cancelled: it reads through `asyncio.wait_for`, which
        on Python 3.11 gives an answer that has just come, and forgets the rest. Who waits here never misses it; the
        call is left to end by itself, which also closes its connection better.
        """
        asking = asyncio.create_task(call)
        self._asking.add(asking)
        asking.add_done_callback(self._asked)
        try:
            await asyncio.wait({asking}, timeout=_CALL_SECONDS)
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(_CALL_SECONDS, asking.cancel)
            raise
        if not asking.done() or asking.cancelled():
            asking.cancel()
            raise self._translate(TimeoutError())
        fault = asking.exception()
        if fault is not None:
            raise self._translate(fault) from None
        return asking.result()

    def _asked(self, asking: asyncio.Task[dict[str, Any]]) -> None:
        self._asking.discard(asking)
        if not asking.cancelled():
            asking.exception()  # nobody may be left who would look at it
