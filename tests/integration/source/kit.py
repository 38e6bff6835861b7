"""What the tests of the source share: a hub full of events, recording handlers, and hosts on Azurite."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from service.clock import uptime
from service.local.event_hubs.server import EventHubsServer
from service.source.blob_leases import BlobLeases
from service.source.connect import HubAddress, connect_blobs, connect_hub
from service.source.leases import Checkpoint, CloseReason, Ownership
from service.source.processor import Processor, ProcessorOptions
from service.source.receiver import ReceiverOptions
from tests.simulation.source.hub import SimulatedClient, SimulatedHub

HUB = "records"


@asynccontextmanager
async def hub_server(partitions: int = 4, **options) -> AsyncIterator[EventHubsServer]:
    server = EventHubsServer(**options)
    server.add_hub(HUB, partitions)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def publish(server: EventHubsServer, partition: int | str, count: int, body: bytes = b"{}", at_ms: int | None = None):
    """Put events into a partition."""
    if isinstance(server, SimulatedHub):
        server.publish(partition, count, at_ms)
        return
    server.hub(HUB).append(str(partition), [body] * count, enqueued_ms=at_ms)


async def until(condition: Callable[[], object], seconds: float = 30.0) -> float:
    """Wait until it is true and return how long that took; fail after so many seconds."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, f"not within {seconds} s"
        await asyncio.sleep(0.01)
    return time.monotonic() - start


@dataclass
class Recorder:
    """A handler factory that writes down everything."""

    checkpoint_each_batch: bool = True
    received: dict[str, list[int]] = field(default_factory=dict)
    opened: list[tuple[str, int]] = field(default_factory=list)
    closed: list[tuple[str, CloseReason]] = field(default_factory=list)
    ownerships: dict[str, Ownership] = field(default_factory=dict)
    errors: list[Exception] = field(default_factory=list)
    checkpoints: dict[str, int] = field(default_factory=dict)
    gate: asyncio.Event | None = None
    fail: Exception | None = None

    def __call__(self, ownership: Ownership) -> "RecordingHandler":
        self.ownerships[ownership.partition] = ownership
        return RecordingHandler(self, ownership)

    @property
    def total(self) -> int:
        return sum(map(len, self.received.values()))


class RecordingHandler:
    def __init__(self, recorder: Recorder, ownership: Ownership) -> None:
        self.recorder = recorder
        self.ownership = ownership
        self.last: Checkpoint | None = None

    async def open(self):
        self.recorder.opened.append((self.ownership.partition, self.ownership.epoch))

    async def events(self, events):
        if self.recorder.gate:
            await self.recorder.gate.wait()
        if self.recorder.fail:
            raise self.recorder.fail
        assert self.ownership.holds()
        self.recorder.received.setdefault(self.ownership.partition, []).extend(event.sequence for event in events)
        if events:
            self.last = Checkpoint(events[-1].sequence, events[-1].offset)
            if self.recorder.checkpoint_each_batch:
                await self.checkpoint()

    async def checkpoint(self):
        await self.ownership.write_checkpoint(self.last)
        self.recorder.checkpoints[self.ownership.partition] = self.last.sequence

    async def close(self, reason, deadline):
        assert asyncio.get_running_loop().time() < deadline
        if reason in (CloseReason.SHUTDOWN, CloseReason.HANDED_OVER) and self.last:
            await self.checkpoint()
        self.recorder.closed.append((self.ownership.partition, reason))

    async def error(self, error):
        self.recorder.errors.append(error)


@dataclass
class Host:
    processor: Processor
    recorder: Recorder
    task: asyncio.Task
    blobs: object

    @property
    def held(self) -> int:
        return len(self.processor.statistics().partitions)


def memory_hub(partitions: int = 4) -> SimulatedHub:
    """A hub that answers at once, for tests that are about the blobs."""
    hub = SimulatedHub(partitions, Random(1))
    hub.delay_seconds = 0.0
    return hub


def connect(server: EventHubsServer | SimulatedHub, receiver: ReceiverOptions | None = None):
    if isinstance(server, SimulatedHub):
        return SimulatedClient(server)
    return connect_hub(HubAddress(HUB, connection_string=server.connection_string()), receiver or ReceiverOptions())


@asynccontextmanager
async def host(
    server: EventHubsServer | SimulatedHub,
    azurite: str,
    container: str,
    name: str = "host-a",
    *,
    recorder: Recorder | None = None,
    options: ProcessorOptions | None = None,
    make_store=None,
    receiver: ReceiverOptions | None = None,
    clock=uptime,
) -> AsyncIterator[Host]:
    """A running host; stopped at the end."""
    options = options or ProcessorOptions(lease_seconds=15, renew_seconds=2)
    recorder = recorder or Recorder()
    client = connect(server, receiver)
    blobs = connect_blobs(container, connection_string=azurite)
    store = make_store(blobs) if make_store else BlobLeases(blobs, options.lease_seconds)
    processor = Processor(
        client,
        store,
        recorder,
        options,
        host=name,
        namespace=client.namespace,
        hub_name=HUB,
        group="$Default",
        clock=clock,
        random=Random(7),
    )
    task = asyncio.create_task(processor.run())
    try:
        yield Host(processor, recorder, task, blobs)
    finally:
        if not task.done():
            await processor.stop(asyncio.get_running_loop().time() + 10)
        await asyncio.wait([task])
        await client.close()
        await store.close()
    task.result()
