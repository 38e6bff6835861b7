"""The processor on Azurite and the local Event Hubs server, with the real SDKs."""

from service.source.leases import CloseReason
from service.source.receiver import ReceiverOptions
from tests.integration.source.kit import host, hub_server, publish, until


async def test_one_host_delivers_every_event_once_and_in_order(azurite, blob_container_name):
    async with hub_server() as server:
        for partition in range(4):
            publish(server, partition, 500)
        async with host(server, azurite, blob_container_name) as one:
            await until(lambda: one.recorder.total >= 2000)
        assert one.recorder.received == {str(p): list(range(500)) for p in range(4)}
        assert sorted(one.recorder.closed) == [(str(p), CloseReason.SHUTDOWN) for p in range(4)]


async def test_a_second_start_goes_on_behind_the_checkpoint_with_a_higher_epoch(azurite, blob_container_name):
    async with hub_server(partitions=1) as server:
        publish(server, 0, 100)
        async with host(server, azurite, blob_container_name) as first:
            await until(lambda: first.recorder.total == 100)
        publish(server, 0, 50)
        async with host(server, azurite, blob_container_name, "host-b") as second:
            await until(lambda: second.recorder.total == 50)
        assert second.recorder.received == {"0": list(range(100, 150))}
        assert second.recorder.opened[0][1] > first.recorder.opened[0][1]


async def test_a_second_host_gets_half_by_hand_over_and_each_partition_has_one_reader(azurite, blob_container_name):
    async with hub_server(partitions=8) as server:
        for partition in range(8):
            publish(server, partition, 100)
        async with host(server, azurite, blob_container_name) as one:
            await until(lambda: one.recorder.total == 800)
            async with host(server, azurite, blob_container_name, "host-b") as two:
                await until(lambda: (one.held, two.held) == (4, 4))
                for partition in range(8):
                    publish(server, partition, 100)
                await until(lambda: one.recorder.total + two.recorder.total == 1600)
                assert [reason for _, reason in one.recorder.closed] == [CloseReason.HANDED_OVER] * 4
        for partition in map(str, range(8)):
            both = one.recorder.received.get(partition, []) + two.recorder.received.get(partition, [])
            assert both == list(range(200))


async def test_large_events_are_fetched_fewer_at_a_time_and_all_arrive(azurite, blob_container_name):
    async with hub_server(partitions=1) as server:
        publish(server, 0, 200)
        publish(server, 0, 60, b"x" * 500_000)
        async with host(server, azurite, blob_container_name, receiver=ReceiverOptions(max_batch=20)) as one:
            await until(lambda: one.recorder.total == 260)
            await until(lambda: [each.credit for each in server.control.receivers()])
            assert max(each.credit for each in server.control.receivers()) < 100
        assert one.recorder.received == {"0": list(range(260))}
