"""azure-eventhub (aio) against the server."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient
from azure.eventhub.exceptions import ConnectError, ConnectionLostError, EventHubError

from service.amqp.messages import APPLICATION_PROPERTIES, DATA, section
from service.amqp.performatives import Disposition, Transfer
from service.amqp.types import Char
from service.local.event_hubs.control import Scope
from service.source.connect import HubAddress, connect_hub
from service.source.events import Event, PartitionId
from service.source.receiver import ReceiverOptions
from service.source.start import AtEdge
from tests.contract.event_hubs.conftest import SECONDS, until
from tests.contract.event_hubs.raw import RawClient


async def test_properties_of_hub_and_partitions(server, producer):
    server.hub("hub").append("1", [b"a", b"b"], enqueued_ms=1_700_000_000_000)
    hub = await producer.get_eventhub_properties()
    assert hub["partition_ids"] == ["0", "1", "2", "3"]
    assert hub["created_at"].timestamp() == server.hub("hub").created_ms / 1000
    empty = await producer.get_partition_properties("0")
    assert (empty["is_empty"], empty["last_enqueued_sequence_number"], empty["last_enqueued_offset"]) == (
        True,
        -1,
        "-1",
    )
    full = await producer.get_partition_properties("1")
    assert (full["beginning_sequence_number"], full["last_enqueued_sequence_number"]) == (0, 1)
    assert full["last_enqueued_offset"] == str(server.hub("hub").partition("1").log.last_offset)
    assert full["last_enqueued_time_utc"].timestamp() == 1_700_000_000


async def test_events_arrive_in_turn_by_key_and_by_partition_with_all_they_carry(server, producer, reading):
    event = EventData(b"body")
    event.properties = {"text": "x", "number": 5, "flag": True}
    event.content_type, event.message_id = "text/plain", "m1"
    await producer.send_batch([event], partition_id="3")
    for _ in range(4):
        await producer.send_batch([EventData("in turn")])
    await producer.send_batch([EventData("keyed")] * 3, partition_key="a key")
    async with reading(track_last_enqueued_event_properties=True) as reader:
        await reader.take(8)
        by_partition = {partition: reader.partitions.count(partition) for partition in "0123"}
        first = next(event for event in reader.events if event.body_as_str() == "body")
    assert sorted(by_partition.values()) in ([1, 1, 2, 4], [1, 1, 1, 5])
    assert first.properties == {b"text": b"x", b"number": 5, b"flag": True}
    assert (first.content_type, first.message_id, first.sequence_number, first.offset) == ("text/plain", "m1", 0, "0")
    keyed = [event for event in reader.events if event.partition_key == b"a key"]
    assert len(keyed) == 3
    context = reader.contexts["3"]
    assert context.last_enqueued_event_properties["sequence_number"] == server.hub("hub").partition("3").log.last


async def test_a_large_event_and_a_large_batch_cross_in_many_frames(server, producer, reading):
    await producer.send_batch([EventData(b"x" * 900_000)], partition_id="0")
    batch = await producer.create_batch(partition_id="0")
    while True:
        try:
            batch.add(EventData(b"y" * 3000))
        except ValueError:
            break
    assert len(batch) > 300
    await producer.send_batch(batch)
    async with reading(partition_id="0") as reader:
        events = await reader.take(1 + len(batch))
    assert len(events[0].body_as_str()) == 900_000
    assert [event.sequence_number for event in events] == list(range(1 + len(batch)))


async def test_every_start_position_inclusive_or_not(server, reading):
    hub = server.hub("hub")
    hub.add_consumer_group("other")
    for number in range(8):
        hub.append("2", [str(number).encode()], enqueued_ms=1_700_000_000_000 + number * 1000)
    offset, time = str(hub.partition("2").log.offsets[4]), datetime.fromtimestamp(1_700_000_004, UTC)
    async with AsyncExitStack() as stack:

        async def starting_at(position, *, inclusive, group):
            return await stack.enter_async_context(
                reading(
                    partition_id="2", starting_position=position, starting_position_inclusive=inclusive, group=group
                )
            )

        expected = {}
        for position, first in (("-1", 0), (4, 5), (offset, 5), (time, 5)):
            expected[await starting_at(position, inclusive=False, group="$Default")] = first
        for position in (4, offset, time):
            expected[await starting_at(position, inclusive=True, group="other")] = 4
        for reader, first in expected.items():
            await reader.take(8 - first)
            assert reader.bodies() == [str(number) for number in range(first, 8)]


async def test_a_higher_epoch_steals_and_the_old_reader_is_told(server, reading):
    server.hub("hub").append("0", [b"a"])
    async with reading(partition_id="0", owner_level=1) as old:
        await old.take(1)
        async with reading(partition_id="0", owner_level=2) as new:
            await new.take(1)
            error = await old.failure()
            assert isinstance(error, ConnectionLostError)
            assert error.error == "link:stolen"
            assert [receiver.epoch for receiver in server.control.receivers()] == [2]
            async with reading(partition_id="0", owner_level=1) as late, reading(partition_id="0") as without:
                assert (await late.failure()).error == (await without.failure()).error == "link:stolen"
            assert new.error is None


async def test_an_unknown_hub_is_not_found(server):
    async with EventHubProducerClient.from_connection_string(
        server.connection_string(), eventhub_name="nothing", retry_total=0
    ) as producer:
        with pytest.raises(ConnectError):
            await producer.get_eventhub_properties()
        with pytest.raises(EventHubError):
            await producer.send_batch([EventData("x")])


async def test_a_frozen_partition_delivers_nothing_until_the_thaw(server, producer, reading):
    server.hub("hub").append("0", [b"a"])
    async with reading(partition_id="0") as reader:
        await reader.take(1)
        server.control.freeze("hub", "0")
        sending = asyncio.create_task(producer.send_batch([EventData("b")], partition_id="0"))
        await until(lambda: server.hub("hub").partition("0").held)
        assert not sending.done()
        server.control.thaw("hub", "0")
        await sending
        await reader.take(2)
    assert reader.bodies() == ["a", "b"]


async def test_a_dropped_connection_and_a_forced_detach_reach_the_reader(server, reading):
    server.hub("hub").append("0", [b"a"])
    async with reading(partition_id="0") as reader:
        await reader.take(1)
        assert server.control.detach(Scope(hub="hub", partition="0", role="receiver")) == 1
        assert isinstance(await reader.failure(), EventHubError)
    async with reading(partition_id="0") as reader:
        await reader.take(1)
        assert server.control.drop(Scope(partition="0")) == 1
        assert isinstance(await reader.failure(), EventHubError)


async def test_a_busy_hub_refuses_sends_until_it_is_not(server, producer):
    await producer.send_batch([EventData("a")], partition_id="0")
    server.control.busy("hub")
    with pytest.raises(EventHubError, match="throttled"):
        await producer.send_batch([EventData("b")], partition_id="0")
    server.control.busy("hub", on=False)
    await producer.send_batch([EventData("c")], partition_id="0")
    assert server.hub("hub").partition("0").log.end == 2


async def test_an_event_whose_properties_the_sdk_cannot_read_passes_through_our_receiver(server):
    """Java's char, for one: the SDK's receiver would fail on it again and again."""
    odd = section(APPLICATION_PROPERTIES, {"letter": Char(0x41)}) + section(DATA, b"odd")
    async with RawClient(server.port) as raw:
        await raw.open()
        await raw.attach_sender("hub/Partitions/0")
        for payload in (section(DATA, b"before"), odd, section(DATA, b"after")):
            raw.send(Transfer(0, raw.next_id, b"t", 0), payload=payload)
            raw.next_id += 1
            await raw.expect(Disposition)
    address = HubAddress("hub", "$Default", connection_string=server.connection_string())
    hub = connect_hub(address, ReceiverOptions(max_wait_seconds=0.2))
    receiver = hub.receiver(PartitionId("0"), 0, AtEdge("earliest"))
    events: list[Event] = []
    async with asyncio.timeout(SECONDS):
        while len(events) < 3:
            events += await receiver.receive()
    await receiver.close()
    await hub.close()
    assert [(event.body, event.properties) for event in events] == [
        (b"before", {}),
        (b"odd", {b"letter": 0x41}),
        (b"after", {}),
    ]
