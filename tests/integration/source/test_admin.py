"""What an operator does to leases and checkpoints, on Azurite and the local hub."""

import json
import time
from contextlib import asynccontextmanager

import pytest

from service.errors import BadSettings
from service.ops.admin import Admin, Refused, parse_export
from service.source.blob_leases import BlobLeases
from service.source.blob_ownership import BlobOwnership
from service.source.connect import connect_blobs
from service.source.events import Hub, PartitionId
from service.source.foreign import stored_by
from service.source.leases import Checkpoint
from service.source.start import LATEST, AtOffset, AtSequence, AtTime
from tests.integration.source.kit import HUB, Recorder, connect, host, hub_server, memory_hub, publish, until

LEASE, OWNERSHIP = BlobLeases, BlobOwnership


@asynccontextmanager
async def admin(server, azurite, container, make_store=LEASE):
    client = connect(server)
    store = make_store(connect_blobs(container, connection_string=azurite), adopt=True)
    try:
        yield Admin(client, store, client.namespace, HUB, "$Default")
    finally:
        await store.close()
        await client.close()


async def _read_all(server, azurite, container, make_store=None, total=None):
    async with host(server, azurite, container, f"reader-{time.monotonic()}", make_store=make_store) as one:
        if total is not None:
            await until(lambda: one.recorder.total >= total)
        else:
            await until(lambda: one.held == 2 and len(one.recorder.opened) == 2)
    return one.recorder


async def test_set_to_an_earlier_time_replays_exactly_from_there(azurite, blob_container_name):
    async with hub_server(partitions=2) as server:
        now = int(time.time() * 1000)
        for partition in range(2):
            publish(server, partition, 30, at_ms=now - 60_000)
            publish(server, partition, 20, at_ms=now - 30_000)
        await _read_all(server, azurite, blob_container_name, total=100)
        async with admin(server, azurite, blob_container_name) as ops:
            changes = await ops.set(["0"], AtTime(now - 45_000), force=False, dry_run=False)
            assert [(c.old.sequence, c.new.sequence, c.done) for c in changes] == [(49, 29, True)]
        again = await _read_all(server, azurite, blob_container_name, total=20)
        assert again.received == {"0": list(range(30, 50))}


async def test_set_takes_a_sequence_an_offset_or_an_edge(azurite, blob_container_name):
    server = memory_hub(1)
    publish(server, 0, 50)
    offset = "1200"
    async with admin(server, azurite, blob_container_name) as ops:
        for position, expected in [(AtSequence(20), 19), (AtOffset(offset), 11), (LATEST, 49), (AtSequence(0), -1)]:
            (change,) = await ops.set(["0"], position, force=False, dry_run=False)
            assert change.new.sequence == expected
        (view,) = await ops.leases()
        assert (view.checkpoint.sequence, view.owner, view.live, view.lag) == (-1, "", False, 50)


async def test_a_change_is_refused_while_a_host_holds_the_partition_unless_forced(azurite, blob_container_name):
    server = memory_hub(1)
    publish(server, 0, 50)
    async with host(server, azurite, blob_container_name) as one:
        await until(lambda: one.recorder.total == 50)
        async with admin(server, azurite, blob_container_name) as ops:
            with pytest.raises(Refused, match="host-a"):
                await ops.set(["0"], AtSequence(40), force=False, dry_run=False)
            with pytest.raises(Refused, match="host-a"):
                await ops.release(["0"], force=False, dry_run=False)
            await ops.set(["0"], AtSequence(40), force=True, dry_run=False)
        await until(lambda: one.recorder.total == 60)
        assert one.recorder.received["0"][50:] == list(range(40, 50))


async def test_a_dry_run_changes_nothing(azurite, blob_container_name):
    server = memory_hub(1)
    publish(server, 0, 50)
    await _read_all(server, azurite, blob_container_name, total=50)
    async with admin(server, azurite, blob_container_name) as ops:
        before = await ops.leases()
        (change,) = await ops.set(["0"], AtSequence(10), force=False, dry_run=True)
        assert (change.new.sequence, change.done) == (9, False)
        assert await ops.leases() == before
        with pytest.raises(Refused, match="no partition 7"):
            await ops.set(["7"], LATEST, force=False, dry_run=True)


@pytest.mark.parametrize(("old", "new", "names"), [(LEASE, OWNERSHIP, "lease"), (OWNERSHIP, LEASE, "ownership")])
async def test_a_start_beside_the_other_layout_refuses_and_after_the_import_goes_on_without_redo(
    azurite, blob_container_name, old, new, names
):
    server = memory_hub(2)
    for partition in range(2):
        publish(server, partition, 40)
    await _read_all(server, azurite, blob_container_name, old, 80)
    with pytest.raises(BadSettings, match=rf"sluice checkpoints import --from {names}"):
        async with host(server, azurite, blob_container_name, "host-b", make_store=new) as refused:
            await until(refused.task.done)
    async with admin(server, azurite, blob_container_name, new) as ops:
        export = await ops.export()
        hub = Hub(export["namespace"], HUB, "$Default", export["incarnation"])
        blobs = connect_blobs(blob_container_name, connection_string=azurite)
        found = await stored_by(blobs, hub, names)
        await blobs.close()
        assert {key: value.checkpoint.sequence for key, value in found.items()} == {"0": 39, "1": 39}
        await ops.import_(found, force=False, dry_run=False)
    for partition in range(2):
        publish(server, partition, 10)
    after = await _read_all(server, azurite, blob_container_name, new, 20)
    assert after.received == {"0": list(range(40, 50)), "1": list(range(40, 50))}


async def test_export_and_import_keep_every_position(azurite, blob_container_name):
    server = memory_hub(2)
    for partition in range(2):
        publish(server, partition, 40 + partition)
    await _read_all(server, azurite, blob_container_name, total=81)
    async with admin(server, azurite, blob_container_name) as ops:
        document = json.loads(json.dumps(await ops.export()))
        await ops.set([], AtSequence(0), force=False, dry_run=False)
        await ops.import_(parse_export(document), force=False, dry_run=False)
        assert await ops.export() == document
    with pytest.raises(ValueError, match="no export"):
        parse_export({"partitions": {"0": 5}})


async def test_an_import_of_another_life_of_the_hub_is_refused_unless_forced(azurite, blob_container_name):
    server = memory_hub(1)
    publish(server, 0, 5)
    async with admin(server, azurite, blob_container_name) as ops:
        found = parse_export({"partitions": {"0": {"sequence": 700, "offset": "9"}}})
        with pytest.raises(Refused, match="not of this hub"):
            await ops.import_(found, force=False, dry_run=False)
        await ops.import_(found, force=True, dry_run=False)
        assert (await ops.leases())[0].checkpoint == Checkpoint(700, "9")


async def test_another_hubs_lease_blobs_are_refused(azurite, blob_container_name):
    server = memory_hub(1)
    await _read_all_of_one(server, azurite, blob_container_name)
    other = memory_hub(1)
    other.namespace = "other.test"
    with pytest.raises(BadSettings, match="belongs to the hub"):
        async with host(other, azurite, blob_container_name, "host-b") as refused:
            await until(refused.task.done)


async def _read_all_of_one(server, azurite, container):
    publish(server, 0, 1)
    async with host(server, azurite, container) as one:
        await until(lambda: one.recorder.total == 1)


@pytest.mark.parametrize(
    "body",
    [
        {"Offset": "{offset}", "SequenceNumber": 19, "PartitionId": "0", "Owner": "old", "Token": "", "Epoch": 12},
        {"partitionId": "0", "owner": "", "token": "", "epoch": 12, "sequenceNumber": 19, "offset": "{offset}"},
    ],
    ids=["dotnet", "javascript"],
)
async def test_lease_blobs_of_the_old_programs_are_taken_over(azurite, blob_container_name, body):
    server = memory_hub(1)
    publish(server, 0, 30)
    key = "Offset" if "Offset" in body else "offset"
    body = body | {key: "1900"}
    blobs = connect_blobs(blob_container_name, connection_string=azurite)
    await blobs.make()
    await blobs.put("$Default/0", json.dumps(body).encode(), {"OWNINGHOST": "old"}, etag=None)
    await blobs.close()
    async with host(server, azurite, blob_container_name, recorder=Recorder()) as one:
        await until(lambda: one.recorder.total == 10)
    assert one.recorder.received == {"0": list(range(20, 30))}
    assert one.recorder.opened == [(PartitionId("0"), 13)]
