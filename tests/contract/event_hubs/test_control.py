"""The control port, a restart on the same data, and Capture into Azurite."""

import asyncio
import io

import aiohttp
import fastavro
import pytest
from azure.storage.blob.aio import ContainerClient

from service.amqp.performatives import Detach, Disposition, Transfer
from service.local.event_hubs.capture import CaptureSettings
from service.local.event_hubs.server import EventHubsServer
from tests.contract.event_hubs.conftest import until
from tests.contract.event_hubs.raw import RawClient
from tests.contract.event_hubs.test_wire import EARLIEST, PARTITION, condition, sequence


@pytest.fixture
async def control(server):
    port = await server.start_control()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        yield session


async def post(control, path, **body):
    async with control.post(path, json=body) as response:
        return response.status, await response.json()


async def test_hubs_partitions_and_groups_are_made_and_removed(server, control):
    assert await post(control, "/hubs", name="new", partitions=2) == (200, {})
    assert (await post(control, "/hubs", name="NEW"))[0] == 400
    assert (await post(control, "/hubs", name="../escape"))[0] == 400
    await post(control, "/hubs/new/partitions", count=1)
    await post(control, "/hubs/new/consumer-groups", name="group")
    server.hub("new").append("0", [b"x"] * 5)
    await post(control, "/hubs/new/trim", partition="0", first=2)
    async with control.get("/state") as response:
        state = await response.json()
    (new,) = [hub for hub in state["hubs"] if hub["name"] == "new"]
    assert new["consumer_groups"] == ["$Default", "group"]
    assert [partition["first"] for partition in new["partitions"]] == [2, 0, 0]
    await post(control, "/hubs/new/retention", size_bytes=0)
    assert server.hub("new").partition("0").log.first == 5
    async with control.delete("/hubs/new") as response:
        assert response.status == 200
    async with control.delete("/hubs/new") as response:
        assert response.status == 404


async def test_faults_are_switched_on_and_off(server, control):
    server.hub("hub").append("0", [b"x"] * 3)
    async with RawClient(server.port) as client:
        await client.open()
        await client.attach_receiver(PARTITION, 0, selector=EARLIEST)
        await client.attach_sender("hub/Partitions/0", 1)
        await post(control, "/freeze", hub="hub", partition="0")
        client.credit(1)
        client.send(Transfer(1, 0, b"t", 0), payload=b"\x00\x53\x75\xa0\x00")
        client.next_id = 1
        await until(lambda: server.hub("hub").partition("0").held)
        await post(control, "/thaw", hub="hub", partition="0")
        await client.expect(Disposition)
        await client.expect(Transfer)
        await post(control, "/busy", hub="hub")
        assert (await client.publish(b"", 1)).state.value[0].value[0] == "com.microsoft:server-busy"
        await post(control, "/busy", hub="hub", on=False)
        assert (await client.publish(b"", 1)).state.descriptor == 0x24
        assert (await post(control, "/delay", seconds=0.01))[0] == 200
        await post(control, "/delay", seconds=0)
        body = {"role": "receiver", "condition": "amqp:link:detach-forced"}
        assert await post(control, "/detach", **body) == (200, {"count": 1})
        assert condition((await client.expect(Detach)).body) == "amqp:link:detach-forced"
        assert await post(control, "/drop", partition="3") == (200, {"count": 0})
        assert await post(control, "/drop", hub="hub") == (200, {"count": 1})
        assert await client.item() is None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/delay", b"{}"),
        ("/delay", b'{"seconds": "x"}'),
        ("/drop", b"[]"),
        ("/drop", b"\xff{"),
        ("/busy", b'{"on": 1}'),
        ("/freeze", b'{"hub": "hub", "partition": "99"}'),
        ("/freeze", b'{"hub": 5}'),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused_with_words(control, path, body):
    async with control.post(path, data=body) as response:
        assert response.status == 400
        assert (await response.json())["error"]


async def test_the_control_port_is_for_loopback_only(server):
    with pytest.raises(ValueError, match="loopback"):
        await server.start_control("0.0.0.0")


async def test_a_restart_on_the_same_data_goes_on_where_it_was(tmp_path):
    first = EventHubsServer(data_dir=tmp_path)
    first.add_hub("hub", 2)
    await first.start()
    async with RawClient(first.port) as client:
        await client.open()
        await client.attach_sender("hub/Partitions/0")
        for _ in range(3):
            await client.publish(b"before")
    created = first.hub("hub").created_ms
    await first.stop()
    second = EventHubsServer(data_dir=tmp_path)
    hub = second.add_hub("hub", 2, exist_ok=True)
    assert hub.created_ms == created
    await second.start()
    try:
        async with RawClient(second.port) as client:
            await client.open()
            await client.attach_sender("hub/Partitions/0", 1)
            await client.publish(b"after", 1)
            await client.attach_receiver(PARTITION, 0, selector=EARLIEST)
            client.credit(10)
            assert [sequence(await client.expect(Transfer)) for _ in range(4)] == [0, 1, 2, 3]
    finally:
        await second.stop()


async def files(azurite, container):
    async with ContainerClient.from_connection_string(azurite, container) as client:
        names = sorted([name async for name in client.list_blob_names()])
        return {name: await (await client.download_blob(name)).readall() for name in names}


async def at_least(count, azurite, container):
    async with asyncio.timeout(10):
        while len(written := await files(azurite, container)) < count:  # noqa: ASYNC110 - storage does not call
            await asyncio.sleep(0.05)
    return written


async def test_capture_writes_files_by_interval_with_empty_ones(server, azurite, blob_container_name):
    hub = server.hub("hub")
    hub.append("0", [b"a", b"b"])
    settings = CaptureSettings(azurite, blob_container_name, interval_seconds=0.5, namespace="ns")
    capture = await server.start_capture(settings)
    written = await at_least(4, azurite, blob_container_name)
    await capture.stop()
    by_partition = {name.split("/")[2]: raw for name, raw in sorted(written.items(), reverse=True)}
    for name in written:
        parts = name.removesuffix(".avro").split("/")
        assert parts[:2] == ["ns", "hub"]
        assert [len(part) for part in parts[3:]] == [4, 2, 2, 2, 2, 2]
    records = list(fastavro.reader(io.BytesIO(by_partition["0"])))
    assert [record["Body"] for record in records] == [b"a", b"b"]
    assert list(fastavro.reader(io.BytesIO(by_partition["1"]))) == []


async def test_capture_can_be_flushed_over_the_control_port(server, control, azurite, blob_container_name):
    assert (await post(control, "/capture/flush"))[0] == 404
    settings = CaptureSettings(azurite, blob_container_name, skip_empty_archives=True)
    await server.start_capture(settings)
    server.hub("hub").append("2", [b"x"])
    status, answer = await post(control, "/capture/flush")
    assert status == 200
    assert [name.split("/")[2] for name in answer["files"]] == ["2"]
    assert list(await files(azurite, blob_container_name)) == answer["files"]


async def test_capture_writes_by_size_and_skips_empty_files_when_told_so(server, azurite, blob_container_name):
    hub = server.hub("hub")
    settings = CaptureSettings(
        azurite, blob_container_name, interval_seconds=600, size_limit_bytes=5000, skip_empty_archives=True
    )
    capture = await server.start_capture(settings)
    hub.append("1", [b"x" * 1000] * 6)
    written = await at_least(1, azurite, blob_container_name)
    assert [name.split("/")[2] for name in written] == ["1"]
    hub.append("1", [b"tail"])
    await capture.stop()
    all_files = await files(azurite, blob_container_name)
    events = [record for raw in all_files.values() for record in fastavro.reader(io.BytesIO(raw))]
    assert [event["SequenceNumber"] for event in events] == list(range(7))
