"""What a worker is connected to: the hub, the leases, and the sink on its container. Made from the settings."""

from contextlib import AsyncExitStack
from typing import Protocol

from azure.identity.aio import DefaultAzureCredential

from service import options
from service.clock import uptime
from service.config import Settings
from service.errors import SetupFault
from service.sink.container import Refused
from service.sink.cosmos import CosmosContainer
from service.sink.dead_letters import BlobDeadLetters
from service.sink.dry_run import DryRunSink
from service.sink.sink import Sink
from service.source.connect import connect_blobs, connect_hub
from service.source.hub import HubClient
from service.source.memory_leases import MemoryLeases, MemoryStorage
from service.source.store import LeaseStore

AnySink = Sink | DryRunSink


class Endpoints(Protocol):
    """Azure, or whatever stands for it: a simulation keeps this protocol in memory."""

    @property
    def hub_name(self) -> tuple[str, str]:
        """Namespace and name of the hub."""

    def hub(self) -> HubClient:
        """The hub, not yet asked for anything."""

    def leases(self) -> LeaseStore:
        """The leases of the consumer group."""

    async def open_sink(self) -> AnySink:
        """The sink on its container. Raises SetupFault, saying what to mend; then call again."""

    async def close(self) -> None:
        """Close what was opened."""


class AzureEndpoints:
    """Event Hubs, blob storage and Cosmos, by connection strings or by the identity of this process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._address = options.hub(settings)
        self._identity = DefaultAzureCredential()
        """Asked for tokens only where no connection string is given."""
        self._opened = AsyncExitStack()
        self._opened.push_async_callback(self._identity.close)
        self._hub = connect_hub(self._address, options.receiver(settings))
        self._opened.push_async_callback(self._hub.close)

    @property
    def hub_name(self) -> tuple[str, str]:
        """As the connection string or the settings have it."""
        return self._hub.namespace, self._hub.name

    def hub(self) -> HubClient:
        """The one hub."""
        return self._hub

    def leases(self) -> LeaseStore:
        """In blobs; a dry run keeps them in memory."""
        settings = self._settings
        if not settings.cosmos_write:
            return MemoryLeases(MemoryStorage(uptime, settings.lease_duration))
        blobs = connect_blobs(settings.blob_container or "", **options.blob_account(settings))
        store = options.lease_store(settings, blobs)
        self._opened.push_async_callback(store.close)
        return store

    async def open_sink(self) -> AnySink:
        """Connect, and ask the container for its key and its ranges."""
        settings = self._settings
        container = CosmosContainer(options.cosmos(settings, self._identity))
        try:
            definition = await container.describe()
            ranges = await container.read_ranges()
        except Refused as refused:
            await container.close()
            raise SetupFault(f"Cosmos did not tell the ranges of the container ({refused}); tried again.") from None
        self._opened.push_async_callback(container.close)
        if not settings.cosmos_write:
            return DryRunSink(definition)
        letters = options.dead_letters(settings, self._identity)
        self._opened.push_async_callback(letters.close)
        return Sink(container, definition, ranges, BlobDeadLetters(letters), options.sink(settings))

    async def close(self) -> None:
        """In the opposite order."""
        await self._opened.aclose()
