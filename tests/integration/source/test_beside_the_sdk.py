"""In one consumer group with the official processor: EventHubConsumerClient with BlobCheckpointStore."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from azure.eventhub.aio import EventHubConsumerClient
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore

from service.source.blob_ownership import BlobOwnership
from service.source.processor import ProcessorOptions
from tests.integration.source.kit import HUB, Recorder, host, hub_server, publish, until

INTERVAL_SECONDS = 1.0
OPTIONS = ProcessorOptions(
    lease_seconds=6 * INTERVAL_SECONDS,
    renew_seconds=INTERVAL_SECONDS,
    as_the_sdks=True,
    dwell_seconds=0,
    handover_seconds=5,
)


class SdkHost:
    def __init__(self):
        self.received = {}
        self.checkpointed = 0
        """Events that its durable checkpoints have passed."""
        self.owned = set()
        self.moves = 0

    async def on_batch(self, context, events):
        if events:
            self.received.setdefault(context.partition_id, []).extend(event.sequence_number for event in events)
            await context.update_checkpoint(events[-1])
            self.checkpointed += len(events)

    async def on_open(self, context):
        self.owned.add(context.partition_id)
        self.moves += 1

    async def on_close(self, context, reason):
        self.owned.discard(context.partition_id)


@asynccontextmanager
async def sdk_host(server, azurite, container):
    store = BlobCheckpointStore.from_connection_string(azurite, container)
    client = EventHubConsumerClient.from_connection_string(
        server.connection_string(),
        "$Default",
        eventhub_name=HUB,
        checkpoint_store=store,
        load_balancing_interval=INTERVAL_SECONDS,
    )
    sdk = SdkHost()
    task = asyncio.create_task(
        client.receive_batch(
            sdk.on_batch,
            max_wait_time=1,
            starting_position="-1",
            on_partition_initialize=sdk.on_open,
            on_partition_close=sdk.on_close,
        )
    )
    try:
        yield sdk
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=5)  # on Python 3.11 it may miss it: `asyncio.wait_for` forgets
        await client.close()
        await asyncio.wait([task])
        await store.close() if hasattr(store, "close") else await store._container_client.close()


def ours(server, azurite, container, name="ours"):
    return host(
        server,
        azurite,
        container,
        name,
        options=OPTIONS,
        recorder=Recorder(),
        make_store=lambda blobs: BlobOwnership(blobs, OPTIONS.lease_seconds),
    )


# The SDK's processor, closed while a partition moves to it, now and then leaves the socket of a connection open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_the_partitions_are_split_evenly_and_each_resumes_at_the_others_checkpoint(azurite, blob_container_name):
    async with hub_server(partitions=4) as server:
        for partition in range(4):
            publish(server, partition, 50)
        async with ours(server, azurite, blob_container_name) as us:
            await until(lambda: us.recorder.total == 200)
            async with sdk_host(server, azurite, blob_container_name) as sdk:
                await until(lambda: us.held == 2 and len(sdk.owned) == 2, 60)
                for partition in range(4):
                    publish(server, partition, 50)
                await until(lambda: us.recorder.total + sdk.checkpointed >= 400)
        for partition in map(str, range(4)):
            mine, theirs = us.recorder.received[partition], sdk.received.get(partition, [])
            assert set(mine + theirs) == set(range(100))
            assert theirs == sorted(theirs)
            assert not theirs or theirs[0] >= 50  # it began at our checkpoint
        await _we_go_on_behind_the_sdk(server, azurite, blob_container_name)


async def _we_go_on_behind_the_sdk(server, azurite, container):
    for partition in range(4):
        publish(server, partition, 10)
    async with ours(server, azurite, container, "ours-again") as us:
        await until(lambda: us.recorder.total >= 40, 60)
    assert us.recorder.received == {str(partition): list(range(100, 110)) for partition in range(4)}


@pytest.mark.proof
@pytest.mark.timeout(400)
async def test_there_is_no_fight_for_three_minutes(azurite, blob_container_name):
    async with (
        hub_server(partitions=5) as server,
        sdk_host(server, azurite, blob_container_name) as sdk,
        ours(server, azurite, blob_container_name) as us,
    ):
        await until(lambda: us.held + len(sdk.owned) == 5 and min(us.held, len(sdk.owned)) == 2, 60)
        await asyncio.sleep(5)
        moves = (sdk.moves, us.processor.statistics().taken)
        for _ in range(180):
            publish(server, 0, 10)
            await asyncio.sleep(1)
        assert (sdk.moves, us.processor.statistics().taken) == moves
        assert set(us.recorder.received.get("0", []) + sdk.received.get("0", [])) == set(range(1800))
