"""A hub of Azure Event Hubs: the `HubClient` that azure-eventhub gives."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from azure.eventhub.aio import EventHubConsumerClient

from service.source.events import PartitionId
from service.source.faults import of_hub
from service.source.hub import HubDescription, PartitionDescription, ReadFrom
from service.source.receiver import EventHubReceiver, ReceiverOptions

_CALL_SECONDS = 30.0
"""A description takes three round trips on a connection of its own; half a second where nothing is wrong."""


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
        self._asking = make_client()
        self._receivers: dict[PartitionId, EventHubReceiver] = {}
        """The latest of each partition, for what it learnt about the size of events."""
        self._guessed_bytes: dict[PartitionId, float] = {}
        self._close_credential = close_credential
        self.namespace = namespace
        self.name = name

    async def describe(self) -> HubDescription:
        """When it was created, and its partitions as of now."""
        async with self._edge():
            properties = await self._asking.get_eventhub_properties()
            return HubDescription(
                round(properties["created_at"].timestamp() * 1000),
                tuple(PartitionId(each) for each in properties["partition_ids"]),
            )

    async def describe_partition(self, partition: PartitionId) -> PartitionDescription:
        """Its oldest and newest event."""
        async with self._edge():
            properties = await self._asking.get_partition_properties(partition)
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
        with contextlib.suppress(Exception):
            async with asyncio.timeout(5):
                await self._asking.close()
        if self._close_credential is not None:
            await self._close_credential()

    @contextlib.asynccontextmanager
    async def _edge(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                yield
        except Exception as error:  # noqa: BLE001 - the SDK raises many kinds; each gets a sentence
            raise self._translate(error) from None
