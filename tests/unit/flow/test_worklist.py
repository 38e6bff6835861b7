"""The WorkList against the rule of the consumer document, and against a model that is too simple to be wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.flow.worklist import Frontier, WorkItem, WorkList
from service.sink.outcome import Outcome
from service.source.events import Event, Hub, PartitionId
from service.source.leases import Ownership

DONE = Outcome.COMMITTED


@pytest.fixture
def worklist(ownership):
    return WorkList(ownership, Frontier(-1, None))


def add(worklist, event, count, records=1):
    return [WorkItem(worklist, event(), records, 0.0) for _ in range(count)]


def test_the_example_of_the_consumer_document(worklist, event):
    items = add(worklist, event, 8)
    for index in (0, 1, 2, 5, 6, 7):
        items[index].settle(DONE)
    assert worklist.frontier == Frontier(2, "200")
    items[3].settle(DONE)
    items[4].settle(DONE)
    assert worklist.frontier == Frontier(7, "700")


def test_nothing_completed_leaves_the_frontier_where_it_was(worklist, event):
    add(worklist, event, 3)
    assert worklist.frontier == Frontier(-1, None)


def test_sequences_with_gaps_are_taken_as_they_come(worklist, event):
    items = [WorkItem(worklist, event(sequence), 1, 0.0) for sequence in (5, 9, 1000)]
    items[0].settle(DONE)
    items[1].settle(DONE)
    assert worklist.frontier.sequence == 9


def test_an_event_of_several_records_is_completed_by_the_last_of_them(worklist, event):
    (item,) = add(worklist, event, 1, records=3)
    item.settle(DONE)
    item.settle(Outcome.DEAD_LETTERED)
    assert worklist.frontier.sequence == -1
    item.settle(Outcome.DROPPED)
    assert worklist.frontier.sequence == 0


def test_completed_items_ahead_are_told_and_counted(worklist, event):
    items = add(worklist, event, 4)
    items[1].settle(DONE)
    items[3].settle(DONE)
    assert list(worklist.done_ahead_sequences()) == [1, 3]
    assert worklist.statistics().done_ahead == 2
    assert worklist.statistics().items == 2


def test_bodies_are_dropped_on_completion(worklist, event):
    items = [WorkItem(worklist, event(body=b"x" * 5000), 1, 0.0) for _ in range(2)]
    before = worklist.bytes
    items[1].settle(DONE)
    assert not hasattr(items[1], "event")
    assert worklist.bytes < before - 5000


def test_after_close_completions_fall_into_nothing(worklist, event):
    items = add(worklist, event, 2)
    worklist.close()
    items[0].settle(DONE)
    assert worklist.frontier == Frontier(-1, None)
    assert worklist.statistics().items == 0


def test_what_was_done_before_is_skipped_in_its_place(worklist, event):
    worklist.skip(event(0))
    assert worklist.frontier.sequence == 0
    item = WorkItem(worklist, event(1), 1, 0.0)
    worklist.skip(event(2))
    assert worklist.frontier.sequence == 0
    item.settle(DONE)
    assert worklist.frontier == Frontier(2, "200")


def test_a_completion_during_a_checkpoint_write_survives_it(worklist, event):
    items = add(worklist, event, 2)
    items[0].settle(DONE)
    snapshot = worklist.frontier
    items[1].settle(DONE)
    assert snapshot.sequence == 0
    assert worklist.frontier.sequence == 1


@given(st.data())
def test_it_agrees_with_a_model(data):
    async def write(checkpoint):
        raise AssertionError(checkpoint)

    held = Ownership(Hub("n", "h", "g", 1), PartitionId("0"), 1, None, 0.0, lambda: 0.0, write)
    worklist = WorkList(held, Frontier(-1, None))
    items, model, sequence = [], [], 0
    for _ in range(data.draw(st.integers(1, 40))):
        if items and data.draw(st.booleans()):
            index = data.draw(st.integers(0, len(items) - 1))
            item = items[index]
            if item.pending:
                item.settle(DONE)
                model[index][1] -= 1
        else:
            sequence += data.draw(st.integers(1, 3))
            records = data.draw(st.integers(1, 2))
            items.append(WorkItem(worklist, Event(sequence, str(sequence), 0, b"abc", {}), records, 0.0))
            model.append([sequence, records])
        prefix = -1
        for number, left in model:
            if left:
                break
            prefix = number
        assert worklist.frontier.sequence == prefix
        assert list(worklist.done_ahead_sequences()) == [n for n, left in model if not left and n > prefix]
        assert worklist.items == sum(1 for _, left in model if left)
    for item in items:
        while item.pending:
            item.settle(DONE)
    assert (worklist.items, worklist.records, worklist.bytes, worklist.done_ahead) == (0, 0, 0, 0)
