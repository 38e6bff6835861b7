"""Hosts as processes that are killed, stopped and continued. Leases take 15 s or more to run out: these are long."""

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager

import pytest

from service.clock import uptime
from service.source.blob_leases import BlobLeases
from service.source.blob_ownership import BlobOwnership
from service.source.connect import HubAddress, connect_blobs, connect_hub
from service.source.events import Hub
from service.source.receiver import ReceiverOptions
from tests.integration.source.kit import HUB, hub_server, publish, until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(180)]
LEASE_SECONDS = 15


class Process:
    def __init__(self, child):
        self.child = child
        self.said = []

    async def listen(self):
        while line := await self.child.stdout.readline():
            if line.startswith(b"{"):
                self.said.append(json.loads(line))

    def of(self, kind, after=0.0):
        return [each for each in self.said if each["kind"] == kind and each["at"] > after]

    def held(self):
        held = set()
        for each in self.said:
            if each["kind"] == "open":
                held.add(each["partition"])
            elif each["kind"] == "close":
                held.discard(each["partition"])
        return held

    def read(self):
        read = {}
        for each in self.of("events"):
            read.setdefault(each["partition"], []).extend(range(each["first"], each["last"] + 1))
        return read


@asynccontextmanager
async def process(server, azurite, container, name, mode="lease"):
    settings = {
        "hub": HUB,
        "hub_string": server.connection_string(),
        "blob_string": azurite,
        "container": container,
        "host": name,
        "mode": mode,
        "lease_seconds": LEASE_SECONDS,
        "renew_seconds": 5,
    }
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.integration.source.worker", json.dumps(settings), stdout=asyncio.subprocess.PIPE
    )
    running = Process(child)
    listening = asyncio.create_task(running.listen())
    try:
        yield running
    finally:
        if child.returncode is None:
            child.send_signal(signal.SIGCONT)
            child.send_signal(signal.SIGTERM)
            async with asyncio.timeout(20):
                await child.wait()
        await listening


async def _load(server, stop):
    while not stop.is_set():
        for partition in range(4):
            publish(server, partition, 10)
        await asyncio.sleep(0.1)


@asynccontextmanager
async def load(server):
    stop = asyncio.Event()
    task = asyncio.create_task(_load(server, stop))
    try:
        yield
    finally:
        stop.set()
        await task


@asynccontextmanager
async def no_checkpoint_goes_back(server, azurite, container, mode):
    """Reads all checkpoints in storage all the time."""
    client = connect_hub(HubAddress(HUB, connection_string=server.connection_string()), ReceiverOptions())
    hub = Hub(client.namespace, HUB, "$Default", (await client.describe()).created_ms)
    await client.close()
    blobs = connect_blobs(container, connection_string=azurite)
    store = BlobLeases(blobs, LEASE_SECONDS) if mode == "lease" else BlobOwnership(blobs, LEASE_SECONDS)
    await store.prepare(hub)
    seen = {str(partition): [-1] for partition in range(4)}

    async def look():
        while True:
            for partition, sequences in seen.items():
                stored = await store.read(partition)
                if stored is not None and stored.checkpoint is not None:
                    sequences.append(stored.checkpoint.sequence)
            await asyncio.sleep(0.1)

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.wait([looking])
        await store.close()
    assert all(sequences == sorted(sequences) and sequences[-1] > 0 for sequences in seen.values()), seen


def _ends(server):
    return {str(p): server.hub(HUB).partition(str(p)).log.last for p in range(4)}


async def test_a_killed_process_is_replaced_within_lease_duration_plus_10_s_and_nothing_is_skipped(
    azurite, blob_container_name, record_property
):
    async with (
        hub_server() as server,
        process(server, azurite, blob_container_name, "a") as a,
        process(server, azurite, blob_container_name, "b") as b,
    ):
        async with load(server):
            await until(lambda: len(a.held()) == len(b.held()) == 2, 60)
            await asyncio.sleep(2)
            theirs = a.held()
            killed = uptime()
            a.child.kill()
            took = await until(lambda: theirs <= {each["partition"] for each in b.of("events", killed)}, 60)
            record_property("seconds from SIGKILL until all its partitions were delivered by another", took)
            assert took < LEASE_SECONDS + 10
        ends = _ends(server)
        await until(lambda: all(seen and max(seen) == ends[p] for p, seen in b.read().items()) and len(b.held()) == 4)
        for partition, end in ends.items():
            seen = set(a.read().get(partition, [])) | set(b.read().get(partition, []))
            assert seen == set(range(end + 1))


@pytest.mark.parametrize("mode", ["lease", "ownership"])
async def test_a_process_stopped_beyond_its_lease_delivers_and_checkpoints_nothing_afterwards(
    azurite, blob_container_name, mode
):
    async with (
        hub_server() as server,
        no_checkpoint_goes_back(server, azurite, blob_container_name, mode),
        process(server, azurite, blob_container_name, "a", mode) as a,
        process(server, azurite, blob_container_name, "b", mode) as b,
        load(server),
    ):
        await until(lambda: len(a.held()) == len(b.held()) == 2, 90)
        await asyncio.sleep(2)
        theirs = a.held()
        a.child.send_signal(signal.SIGSTOP)
        await until(lambda: theirs <= b.held(), 60)
        await asyncio.sleep(2)
        stopped_until = max(each["at"] for each in b.said)
        before = len(a.said)
        a.child.send_signal(signal.SIGCONT)
        await until(lambda: theirs <= {each["partition"] for each in a.of("close", stopped_until)}, 30)
        late = [
            each
            for each in a.said[before:]
            if each["partition"] in theirs and each["at"] > stopped_until and each["kind"] in ("events", "checkpoint")
        ]
        closed = {each["partition"]: each["at"] for each in a.of("close", stopped_until)}
        # It may take the partition back later, with a new epoch; what it held before must not move again.
        assert [each for each in late if each["at"] <= closed[each["partition"]]] == []


async def test_sigterm_checkpoints_releases_and_exits_0(azurite, blob_container_name):
    async with hub_server() as server:
        async with process(server, azurite, blob_container_name, "a") as a:
            for partition in range(4):
                publish(server, partition, 100)
            await until(lambda: {p: len(s) for p, s in a.read().items()} == dict.fromkeys("0123", 100), 60)
            a.child.send_signal(signal.SIGTERM)
            await asyncio.wait_for(a.child.wait(), 12)
            assert a.child.returncode == 0
        async with process(server, azurite, blob_container_name, "b") as b:
            took = await until(lambda: len(b.held()) == 4, 30)
            assert took < 10  # no lease had to run out
            publish(server, 0, 1)
            await until(lambda: b.read() == {"0": [100]})
