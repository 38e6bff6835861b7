"""Order by document, held against a model: what may go, and when."""

import gc
import weakref

from hypothesis import given
from hypothesis import strategies as st

from service.sink.order import DocumentOrder, Entry, Pending, everything_behind
from service.sink.record import Operation, Record
from tests.simulation.sink.parts import MemoryItem, event, ownership


def pending_of(sequence: int, documents: list[str]) -> tuple[Pending, list[Entry]]:
    pending = Pending(MemoryItem(event(sequence, b""), ownership(), 0.0, len(documents)))
    records = [Record(Operation.UPSERT, index, document, b"k") for index, document in enumerate(documents)]
    return pending, [Entry(record, pending, 0.0) for record in records]


def admit(order: DocumentOrder, sequence: int, *documents: str) -> tuple[list[Entry], list[Entry]]:
    pending, entries = pending_of(sequence, list(documents))
    return entries, list(order.admit(pending, entries))


def test_other_documents_do_not_wait():
    order = DocumentOrder()
    _, first = admit(order, 0, "a")
    _, second = admit(order, 1, "b")
    assert len(first) == len(second) == 1


def test_the_next_of_a_document_waits_for_the_one_before():
    order = DocumentOrder()
    (one,), _ = admit(order, 0, "a")
    (two,), ready = admit(order, 1, "a")
    (three,), _ = admit(order, 2, "a")
    assert ready == []
    assert list(order.complete(one)) == [two]
    assert list(order.complete(two)) == [three]
    assert list(order.complete(three)) == []
    assert len(order) == 0


def test_an_event_waits_until_the_one_it_shares_a_document_with_has_wholly_completed():
    order = DocumentOrder()
    (a, b), ready = admit(order, 0, "a", "b")
    assert ready == [a, b]
    (b_again, c), ready = admit(order, 1, "b", "c")
    assert ready == []
    assert list(order.complete(b)) == []
    assert list(order.complete(a)) == [b_again, c]


def test_records_of_one_event_on_one_document_follow_each_other():
    order = DocumentOrder()
    (one, two, other), ready = admit(order, 0, "a", "a", "b")
    assert ready == [one, other]
    assert list(order.complete(one)) == [two]


def test_everything_behind_finds_those_that_wait_for_those_that_wait():
    order = DocumentOrder()
    (one,), _ = admit(order, 0, "a")
    (two, _), _ = admit(order, 1, "a", "b")
    (three,), _ = admit(order, 2, "b")
    (stranger,), _ = admit(order, 3, "z")
    assert {id(p) for p in everything_behind([one.pending])} == {id(e.pending) for e in (one, two, three)}
    assert stranger.pending not in everything_behind([one.pending])


@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3), max_size=25), st.randoms(use_true_random=False)
)
def test_against_a_model(events, random):
    """At every step: what is free is exactly what the rules allow; in the end everything has gone, in order."""
    order = DocumentOrder()
    groups: list[list[Entry]] = []
    free: list[Entry] = []
    done: list[Entry] = []
    waiting = list(enumerate(events))

    def allowed(entry: Entry) -> bool:
        mine = next(number for number, group in enumerate(groups) if entry in group)
        shared = {e.document for e in groups[mine]}
        earlier = [g for g in groups[:mine] if any(e.document in shared for e in g)]
        before = [e for e in groups[mine] if e.document == entry.document and e.record.index < entry.record.index]
        return all(e in done for g in earlier for e in g) and all(e in done for e in before)

    while waiting or free:
        if waiting and (not free or random.random() < 0.5):
            number, documents = waiting.pop(0)
            pending, entries = pending_of(number, documents)
            groups.append(entries)
            free += order.admit(pending, entries)
        else:
            entry = free.pop(random.randrange(len(free)))
            done.append(entry)
            free += order.complete(entry)
        everything = [e for group in groups for e in group]
        assert {id(e) for e in free} == {id(e) for e in everything if e not in done and allowed(e)}
    assert len(done) == sum(map(len, events))
    assert len(order) == 0


def test_what_is_completed_is_freed_without_the_garbage_collector():
    gc.disable()
    try:
        order = DocumentOrder()
        entries, _ = admit(order, 0, "a")
        waiting, _ = admit(order, 1, "a", "b")
        seen = [weakref.ref(entry.pending.item) for entry in (*entries, *waiting)]
        for entry in (*entries, *waiting):
            list(order.complete(entry))
        del entry, entries, waiting
        assert [ref() for ref in seen] == [None, None, None]
    finally:
        gc.enable()
