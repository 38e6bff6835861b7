import pytest

from service.amqp.errors import AmqpError
from service.local.event_hubs.events import new_event
from service.local.event_hubs.hubs import Hub
from service.local.event_hubs.partition import PartitionLog, Retention
from service.local.event_hubs.positions import EARLIEST, LATEST, By, StartPosition


def log_of(count, *, start_ms=1000, step_ms=10):
    log = PartitionLog()
    for number in range(count):
        log.append([new_event(b"x" * number)], start_ms + number * step_ms)
    return log


def at(by, value, *, inclusive):
    return StartPosition(by, value, inclusive)


def test_sequence_numbers_count_and_offsets_are_the_bytes_before():
    log = log_of(5)
    assert (log.first, log.last, log.end) == (0, 4, 5)
    assert log.offsets == [sum(map(len, log.events[:n])) for n in range(5)]
    assert log.last_offset == log.offsets[-1]


def test_enqueued_time_never_goes_back():
    log = PartitionLog()
    log.append([new_event(b"")], 2000)
    log.append([new_event(b"")], 1000)
    assert log.times == [2000, 2000]


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (EARLIEST, 0),
        (LATEST, 5),
        (at(By.OFFSET, -1, inclusive=True), 0),
        (at(By.SEQUENCE, -1, inclusive=False), 0),
        (at(By.SEQUENCE, 2, inclusive=False), 3),
        (at(By.SEQUENCE, 2, inclusive=True), 2),
        (at(By.SEQUENCE, 4, inclusive=False), 5),
        (at(By.SEQUENCE, 5, inclusive=True), 5),
        (at(By.TIME, 1020, inclusive=False), 3),
        (at(By.TIME, 1020, inclusive=True), 2),
        (at(By.TIME, 0, inclusive=False), 0),
        (at(By.TIME, 10**13, inclusive=False), 5),
    ],
)
def test_every_start_position_finds_its_event(position, expected):
    assert log_of(5).seek(position) == expected


def test_offsets_find_their_event_and_the_one_behind():
    log = log_of(5)
    assert log.seek(at(By.OFFSET, log.offsets[2], inclusive=True)) == 2
    assert log.seek(at(By.OFFSET, log.offsets[2], inclusive=False)) == 3


@pytest.mark.parametrize("position", [at(By.SEQUENCE, 5, inclusive=False), at(By.SEQUENCE, 9, inclusive=True)])
def test_a_sequence_number_never_given_out_is_refused(position):
    with pytest.raises(AmqpError, match="The supplied sequence number") as caught:
        log_of(5).seek(position)
    assert caught.value.condition == "com.microsoft:argument-error"


def test_an_offset_never_given_out_is_refused():
    with pytest.raises(AmqpError, match=r"The supplied offset '9999' is invalid\. The last offset in the system is"):
        log_of(5).seek(at(By.OFFSET, 9999, inclusive=False))


def test_retention_by_age_moves_the_beginning_and_keeps_the_end():
    log = log_of(5)
    log.retain(Retention(seconds=0.02), now_ms=1045)
    assert (log.first, log.last) == (3, 4)
    assert log.seek(EARLIEST) == 3
    assert log.seek(at(By.SEQUENCE, 0, inclusive=False)) == 3
    assert log.seek(at(By.OFFSET, 0, inclusive=False)) == 3
    log.retain(Retention(seconds=0.0), now_ms=10_000)
    assert (log.first, log.last, log.events) == (5, 4, [])
    assert log.last_offset > 0
    assert log.append([new_event(b"")], 10_000) == 5


def test_retention_by_bytes_keeps_the_newest():
    log = log_of(10)
    keep = sum(map(len, log.events[-3:]))
    log.retain(Retention(size_bytes=keep), now_ms=0)
    assert log.first == 7
    assert log.size_bytes == keep


def test_a_hub_routes_by_key_or_in_turn():
    hub = Hub("hub", 3)
    assert [hub.route(None).id for _ in range(6)] == ["1", "2", "0", "1", "2", "0"]
    assert len({hub.route("key").id for _ in range(5)}) == 1


def test_partitions_are_added_while_the_others_stay():
    hub = Hub("hub", 1)
    hub.append("0", [b"a"])
    hub.add_partitions(2)
    assert [partition.id for partition in hub.partitions] == ["0", "1", "2"]
    assert hub.partition("0").log.last == 0


@pytest.mark.parametrize("partition_id", ["3", "-1", "x", "", "9" * 30])
def test_a_partition_that_is_not_there_is_refused(partition_id):
    with pytest.raises(AmqpError) as caught:
        Hub("hub", 3).partition(partition_id)
    assert caught.value.condition == "com.microsoft:argument-out-of-range"


def test_a_frozen_partition_holds_publications_until_the_thaw():
    hub = Hub("hub", 1)
    partition = hub.partition("0")
    partition.freeze()
    partition.held.append(lambda: hub.append("0", [b"late"]))
    assert partition.log.end == 0
    partition.thaw()
    assert partition.log.end == 1
