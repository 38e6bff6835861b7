"""One partition's way: slots before records, order kept, checkpoints that follow completion and nothing else."""

import asyncio
from dataclasses import replace

import pytest

from service.errors import LeaseLost, Retry
from service.flow import completion_map
from service.flow.backlog import Backlog, BacklogLimits
from service.flow.partition import Intake, PartitionFlow
from service.flow.slots import Slots
from service.sink.outcome import Outcome
from service.sink.record import Operation, Record
from service.source.leases import Checkpoint, CloseReason


class KeptSink:
    """Keeps what is submitted until the test settles it."""

    def __init__(self):
        self.items = []
        self.purged = []
        self.flushed = False

    def submit(self, item, records):
        self.items.append((item, records))

    def purge(self, ownership):
        self.purged.append(ownership)

    def flush(self):
        self.flushed = True

    def settle(self, *indexes):
        for index in indexes:
            item, records = self.items[index]
            for _ in records:
                item.settle(Outcome.COMMITTED)


@pytest.fixture
def sink():
    return KeptSink()


@pytest.fixture
def make_flow(ownership, sink):
    def make(*, start=None, rate=None, records=1, limits=None):
        ownership.start = start
        slots = Slots(rate)
        flows = []
        backlog = Backlog(limits or BacklogLimits(), lambda: [flow.worklist for flow in flows])
        made = lambda event, hub, partition: [Record(Operation.UPSERT, n, body=event.body) for n in range(records)]  # noqa: E731
        flow = PartitionFlow(ownership, made, sink, slots, backlog, Intake())
        flows.append(flow)
        flow.slots_for_test = slots
        return flow

    return make


def later():
    return asyncio.get_running_loop().time() + 5


async def test_checkpoint_stays_behind_a_slow_record(make_flow, sink, event, written):
    flow = make_flow()
    await flow.events([event() for _ in range(5)])
    sink.settle(0, 1, 3, 4)
    await flow.checkpoint()
    assert (written[-1].sequence, written[-1].offset) == (1, "100")
    sink.settle(2)
    await flow.checkpoint()
    assert (written[-1].sequence, written[-1].done_ahead) == (4, None)


async def test_a_slow_checkpoint_is_in_nobodys_way(make_flow, sink, event, ownership):
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def write(_):
        arrived.set()
        await go_on.wait()

    ownership.write_checkpoint = write
    flow = make_flow()
    await flow.events([event()])
    sink.settle(0)
    writing = asyncio.create_task(flow.checkpoint())
    async with asyncio.timeout(5):
        await arrived.wait()
        await flow.events([event(), event()])
        sink.settle(2, 1)
    assert flow.worklist.frontier.sequence == 2
    assert not writing.done()
    go_on.set()
    await writing


async def test_offsets_are_carried_and_never_read(make_flow, sink, event, written):
    flow = make_flow()
    events = [event() for _ in range(3)]
    for number, opaque in enumerate(("zz:9", "", "aa:10")):
        events[number].offset = opaque
    await flow.events(events)
    sink.settle(2, 0, 1)
    await flow.checkpoint()
    assert (written[-1].sequence, written[-1].offset) == (2, "aa:10")


async def test_an_unchanged_frontier_is_not_written_again(make_flow, sink, event, written):
    flow = make_flow()
    await flow.events([event()])
    sink.settle(0)
    await flow.checkpoint()
    await flow.checkpoint()
    assert len(written) == 1


async def test_what_is_done_ahead_is_written_even_while_the_frontier_is_stuck(make_flow, sink, event, written):
    flow = make_flow()
    await flow.events([event() for _ in range(3)])
    sink.settle(2)
    await flow.checkpoint()
    assert written[-1].sequence == -1
    hub, partition = flow.ownership.hub, flow.ownership.partition
    assert 2 in completion_map.decode(hub, partition, -1, written[-1].done_ahead)


async def test_a_restart_redoes_only_what_was_not_completed(make_flow, sink, event, ownership):
    ahead = completion_map.encode(ownership.hub, ownership.partition, 0, [2, 3])
    flow = make_flow(start=Checkpoint(0, "0", ahead), rate=10)
    await flow.events([event(sequence) for sequence in (1, 2, 3)])
    assert [item.sequence for item, _ in sink.items] == [1]
    assert flow.slots_for_test.statistics().used == 1
    sink.settle(0)
    assert flow.worklist.frontier.sequence == 3


async def test_what_was_done_ahead_is_not_forgotten_before_it_is_read_again(make_flow, sink, event, ownership, written):
    """A partition may move on after a moment, long before all that its last owner had completed has come by."""
    ahead = completion_map.encode(ownership.hub, ownership.partition, 0, [2, 3, 7, 8])
    flow = make_flow(start=Checkpoint(0, "0", ahead))
    await flow.events([event(sequence) for sequence in (1, 2, 3, 4)])
    sink.settle(1)
    await flow.checkpoint()
    known = completion_map.decode(ownership.hub, ownership.partition, 0, written[-1].done_ahead)
    assert [sequence for sequence in range(10) if sequence in known] == [2, 3, 4, 7, 8]
    await flow.checkpoint()
    assert len(written) == 1
    await flow.events([event(sequence) for sequence in (5, 6, 7, 8, 9)])
    sink.settle(0, 2)
    await flow.checkpoint()
    known = completion_map.decode(ownership.hub, ownership.partition, 5, written[-1].done_ahead)
    assert [sequence for sequence in range(10) if sequence in known] == [7, 8]
    sink.settle(3, 4)
    await flow.checkpoint()
    assert (written[-1].sequence, written[-1].done_ahead) == (9, None)


async def test_an_unreadable_map_costs_a_redo_and_nothing_else(make_flow, sink, event):
    flow = make_flow(start=Checkpoint(0, "0", "1.rubbish"))
    await flow.events([event(1), event(2)])
    assert [item.sequence for item, _ in sink.items] == [1, 2]


async def test_every_record_pays_one_slot(make_flow, sink, event):
    flow = make_flow(rate=100, records=3)
    async with asyncio.timeout(5):
        await flow.events([event() for _ in range(4)])
    assert flow.slots_for_test.statistics().used == 12


async def test_events_wait_for_slots_in_order(make_flow, sink, event):
    flow = make_flow(rate=10)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(flow.events([event() for _ in range(3)]))
        await asyncio.sleep(0)
        assert [item.sequence for item, _ in sink.items] == [0]
    assert [item.sequence for item, _ in sink.items] == [0, 1, 2]


async def test_a_refused_checkpoint_ends_the_partition(make_flow, sink, event):
    flow = make_flow()

    async def refuse(checkpoint):
        raise LeaseLost("0", "epoch 2 is there")

    flow.ownership.write_checkpoint = refuse
    await flow.events([event()])
    sink.settle(0)
    with pytest.raises(LeaseLost):
        await flow.checkpoint()
    assert not flow.ownership.holds()
    assert sink.purged == [flow.ownership]


async def test_a_failed_checkpoint_is_written_the_next_time(make_flow, sink, event, written):
    flow = make_flow()
    write = flow.ownership.write_checkpoint

    async def fail(checkpoint):
        raise Retry("storage is away")

    flow.ownership.write_checkpoint = fail
    await flow.events([event()])
    sink.settle(0)
    with pytest.raises(Retry):
        await flow.checkpoint()
    flow.ownership.write_checkpoint = write
    await flow.checkpoint()
    assert written[-1].sequence == 0


async def test_shutdown_drains_before_the_last_checkpoint(make_flow, sink, event, written):
    flow = make_flow()
    await flow.events([event(), event()])
    closing = asyncio.create_task(flow.close(CloseReason.SHUTDOWN, later()))
    await asyncio.sleep(0)
    assert sink.flushed
    assert not closing.done()
    sink.settle(0, 1)
    await closing
    assert written[-1].sequence == 1


async def test_a_lost_partition_is_forgotten_at_once(make_flow, sink, event, written):
    flow = make_flow()
    await flow.events([event(), event()])
    flow.ownership.lost = True
    await flow.close(CloseReason.LOST, later())
    sink.settle(0, 1)
    await flow.checkpoint()
    assert written == []
    assert sink.purged == [flow.ownership]


async def test_what_does_not_drain_in_time_is_left_for_the_next_owner(make_flow, sink, event, written):
    flow = make_flow()
    await flow.events([event(), event()])
    sink.settle(0)
    await flow.close(CloseReason.SHUTDOWN, asyncio.get_running_loop().time() + 0.05)
    assert written[-1].sequence == 0


async def test_bytes_pause_intake_and_completions_resume_it(make_flow, sink, event):
    # An event and the document made of it are both in memory: two of 9,000 bytes take 38,000.
    flow = make_flow(limits=replace(BacklogLimits(), bytes=40_000))
    await flow.events([event(body=b"x" * 9000)])
    await flow.events([event(body=b"x" * 9000)])
    waiting = asyncio.create_task(flow.events([event(body=b"x" * 9000)]))
    await asyncio.sleep(0)
    assert len(sink.items) == 2
    sink.settle(0, 1)
    flow._backlog.look()
    async with asyncio.timeout(5):
        await waiting
    assert len(sink.items) == 3
