import asyncio
import contextlib
import gc
import warnings

import pytest
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient

from service.local.event_hubs.server import EventHubsServer

SECONDS = 15.0

CLOSING: list[asyncio.Task[None]] = []
"""An SDK consumer takes a second to close: those of a test close together, at its end."""


@pytest.fixture(autouse=True)
async def sdk_leftovers(request):
    """The SDK forgets sockets when a connection breaks under it: they are collected here, not in another's test."""
    yield
    await asyncio.gather(*CLOSING)
    CLOSING.clear()
    if request.module.__name__.endswith(("python_aio", "transports")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture
async def server():
    """A server with the hub `hub` of four partitions."""
    server = EventHubsServer()
    server.add_hub("hub", partitions=4)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def producer(server):
    async with EventHubProducerClient.from_connection_string(
        server.connection_string(), eventhub_name="hub", retry_total=0
    ) as producer:
        yield producer


class Reader:
    """An SDK consumer in the background: its events as they come, and its first error."""

    def __init__(self, connection_string, *, hub="hub", group="$Default", options=None, **receive):
        self._client = EventHubConsumerClient.from_connection_string(
            connection_string, group, eventhub_name=hub, **({"retry_total": 0} | (options or {}))
        )
        self._receive = {"starting_position": "-1", "max_wait_time": 0.2} | receive
        self.events = []
        self.partitions = []
        self.contexts = {}
        self.error = None
        self._changed = asyncio.Event()

    async def __aenter__(self):
        self._task = asyncio.create_task(
            self._client.receive_batch(self._on_batch, on_error=self._on_error, **self._receive)
        )
        self._task.add_done_callback(lambda _: self._changed.set())
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        CLOSING.append(asyncio.create_task(self._close()))

    async def _close(self):
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._task
        await self._client.close()

    async def _on_batch(self, context, events):
        self.contexts[context.partition_id] = context
        self.events += events
        self.partitions += [context.partition_id] * len(events)
        self._changed.set()

    async def _on_error(self, _, error):
        self.error = self.error or error
        self._changed.set()

    async def until(self, condition):
        async with asyncio.timeout(SECONDS):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def take(self, count):
        """The first `count` events; the reader's error is raised."""
        await self.until(lambda: len(self.events) >= count or self.error)
        if self.error:
            raise self.error
        return self.events[:count]

    async def failure(self):
        """The error that the reader ends with."""
        await self.until(lambda: self.error)
        return self.error

    def bodies(self):
        return [event.body_as_str() for event in self.events]


@pytest.fixture
def reading(server):
    """Makes a Reader on the server."""
    return lambda **options: Reader(server.connection_string(), **options)


async def until(condition, seconds=SECONDS):
    """Waits for something that the server shows and does not announce."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - there is nothing to wait on
            await asyncio.sleep(0.01)
