"""Checkpoints under contention and outage, on Azurite: what is stored never goes back."""

import asyncio
import signal
import time
from random import Random

import pytest

from service.errors import LeaseLost, Retry
from service.local.azurite import Azurite
from service.source.blob_leases import BlobLeases
from service.source.blob_ownership import BlobOwnership
from service.source.connect import connect_blobs
from service.source.events import Hub, PartitionId
from service.source.leases import Checkpoint
from service.source.processor import ProcessorOptions
from tests.integration.source.kit import Recorder, host, memory_hub, publish, until

HUB = Hub("ns.test", "records", "$Default", 1)
P0 = PartitionId("0")


@pytest.mark.parametrize("make_store", [BlobLeases, BlobOwnership])
async def test_no_checkpoint_goes_back_while_three_hosts_take_a_partition_from_each_other(
    azurite, blob_container_name, make_store, record_property
):
    """Each takes it, raises the checkpoint from what it found, and tries on after it was robbed."""
    random = Random(11)
    end = time.monotonic() + 4
    landed, refused = [], 0

    async def rob(name):
        nonlocal refused
        store = make_store(connect_blobs(blob_container_name, connection_string=azurite))
        await store.prepare(HUB)
        while time.monotonic() < end:
            try:
                (row,) = await store.list([P0])
                holding = await store.acquire(row, name)
                at = holding.stored.checkpoint.sequence if holding.stored.checkpoint else -1
                for _ in range(random.randint(1, 8)):
                    at += random.randint(0, 3)
                    await holding.write(Checkpoint(at, str(at)))
                    landed.append(at)
            except LeaseLost:
                refused += 1
            except Retry:
                await asyncio.sleep(0.01)
        await store.close()

    seen = []

    async def watch():
        store = make_store(connect_blobs(blob_container_name, connection_string=azurite), adopt=True)
        await store.prepare(HUB)
        while time.monotonic() < end:
            stored = await store.read(P0)
            if stored and stored.checkpoint:
                seen.append(stored.checkpoint.sequence)
        await store.close()

    async with asyncio.TaskGroup() as tasks:
        for name in ("a", "b", "c"):
            tasks.create_task(rob(name))
        tasks.create_task(watch())
    assert seen == sorted(seen)
    assert landed == sorted(landed)
    assert refused > 5
    record_property("checkpoints landed, refused", (len(landed), refused))


@pytest.mark.proof
@pytest.mark.timeout(180)
async def test_storage_frozen_for_60_s_pauses_intake_and_nothing_is_done_twice(blob_container_name):
    hub = memory_hub(2)
    async with Azurite() as azurite:
        options = ProcessorOptions(lease_seconds=15, renew_seconds=5)
        recorder = Recorder(checkpoint_each_batch=False)
        async with host(hub, azurite.connection_string, blob_container_name, recorder=recorder, options=options) as one:
            await until(lambda: len(recorder.opened) == 2)
            process = azurite._process
            process.send_signal(signal.SIGSTOP)
            frozen = time.monotonic()
            arrived = []
            try:
                while time.monotonic() < frozen + 60:
                    before = recorder.total
                    publish(hub, 0, 1)
                    await asyncio.sleep(0.25)
                    if recorder.total > before:
                        arrived.append(time.monotonic() - frozen)
            finally:
                process.send_signal(signal.SIGCONT)
            assert max(arrived) < 16
            assert one.processor.statistics().partitions[0].paused
            await until(lambda: recorder.total == len(hub.partitions[P0].events), 30)
            assert recorder.received == {"0": list(range(recorder.total))}
            assert sorted(recorder.opened) == [("0", 1), ("1", 1)]
            assert one.processor.statistics().lost == 0
