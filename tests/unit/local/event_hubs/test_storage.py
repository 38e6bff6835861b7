from service.local.event_hubs.events import new_event
from service.local.event_hubs.partition import PartitionLog, Retention
from service.local.event_hubs.server import EventHubsServer
from service.local.event_hubs.storage import PartitionJournal


def test_a_hub_comes_back_with_its_events_groups_and_time_of_creation(tmp_path):
    first = EventHubsServer(data_dir=tmp_path)
    hub = first.add_hub("Hub", 2)
    hub.add_consumer_group("Group")
    hub.add_partitions(1)
    hub.append("0", [b"a", b"b"], partition_key="k")
    hub.append("2", [b"c"])
    hub.close()
    back = EventHubsServer(data_dir=tmp_path).hub("hub")
    assert (back.name, back.created_ms, len(back.partitions)) == ("Hub", hub.created_ms, 3)
    assert back.consumer_groups == {"$default": "$Default", "group": "Group"}
    for before, after in zip(hub.partitions, back.partitions, strict=True):
        assert after.log.events == before.log.events
        assert (after.log.offsets, after.log.times) == (before.log.offsets, before.log.times)
    assert back.append("0", [b"d"]) == 2


def test_what_retention_took_stays_gone_and_the_sequence_goes_on(tmp_path):
    log = PartitionLog(PartitionJournal(tmp_path, segment_bytes=200))
    for _ in range(10):
        log.append([new_event(b"x" * 100)], 1)
    files = len(list(tmp_path.glob("*.log")))
    log.retain(Retention(seconds=0), now_ms=10_000)
    log.close()
    assert len(list(tmp_path.glob("*.log"))) == 1 < files
    back = PartitionLog(PartitionJournal(tmp_path))
    assert (back.first, back.end, back.events) == (10, 10, [])
    assert back.append([new_event(b"")], 2) == 10


def test_a_record_half_written_is_cut_off_and_the_rest_is_kept(tmp_path):
    log = PartitionLog(PartitionJournal(tmp_path))
    log.append([new_event(b"a")], 1)
    log.append([new_event(b"b")], 2)
    log.close()
    (path,) = tmp_path.glob("*.log")
    path.write_bytes(path.read_bytes()[:-3])
    back = PartitionLog(PartitionJournal(tmp_path))
    assert back.events == log.events[:1]
    back.append([new_event(b"c")], 3)
    back.close()
    assert PartitionLog(PartitionJournal(tmp_path)).end == 2


def test_a_hub_deleted_and_made_again_starts_from_nothing(tmp_path):
    clock = iter(range(1, 100)).__next__
    server = EventHubsServer(data_dir=tmp_path, clock=lambda: float(clock()))
    old = server.add_hub("hub", 1)
    old.append("0", [b"a"])
    server.delete_hub("HUB")
    assert not list(tmp_path.iterdir())
    new = server.add_hub("hub", 1)
    assert new.created_ms > old.created_ms
    assert new.append("0", [b"b"]) == 0
    new.close()
