"""The steps of a guarded write."""

from service.sink.guarded import Again, Guard
from service.sink.order import Entry, Pending
from service.sink.outcome import Outcome
from service.sink.outcomes import Step
from service.sink.record import Operation, Record
from service.sink.stamp import Stamp
from tests.simulation.sink.parts import MemoryItem, event, ownership


def entry(sequence: int, operation: Operation = Operation.UPSERT, document: str = "a") -> Entry:
    record = Record(operation, 0, document, b'"[1]"', 0, b"{}", Stamp(1, "0", sequence, 0, sequence))
    return Entry(record, Pending(MemoryItem(event(sequence, b""), ownership(), 0.0)), 0.0)


def stored(sequence: int, etag: str = "e") -> dict:
    stamp = {"incarnation": 1, "partition": "0", "sequence": sequence, "index": 0, "enqueued": sequence}
    return {"statusCode": 200, "eTag": etag, "resourceBody": {"_sluice": stamp}}


def test_a_new_document_is_created_and_its_etag_remembered():
    guard, first, second = Guard("_sluice"), entry(1), entry(2)
    assert guard.prepare(first) is None
    assert first.step is Step.CREATE
    assert guard.answered(first, {"eTag": "x"}) is Outcome.COMMITTED
    assert guard.prepare(second) is None
    assert (second.step, second.etag) == (Step.REPLACE, "x")


def test_what_is_remembered_decides_without_asking():
    guard, newer = Guard("_sluice"), entry(5)
    guard.prepare(newer)
    guard.answered(newer, {"eTag": "x"})
    assert guard.prepare(entry(4)) is Outcome.SUPERSEDED
    assert guard.prepare(entry(5)) is Outcome.COMMITTED


def test_a_conflict_is_read_compared_and_replaced_or_superseded():
    guard, record = Guard("_sluice"), entry(5)
    guard.prepare(record)
    assert guard.conflicted(record) is Again.SEND
    assert record.step is Step.READ
    assert guard.answered(record, stored(3, "old")) is Again.SEND
    assert (record.step, record.etag) == (Step.REPLACE, "old")
    assert guard.conflicted(record) is Again.SEND  # 412: someone was quicker
    assert guard.answered(record, stored(9)) is Outcome.SUPERSEDED


def test_an_ambiguous_create_finds_its_own_stamp():
    guard, record = Guard("_sluice"), entry(5)
    guard.prepare(record)
    guard.conflicted(record)
    assert guard.answered(record, stored(5)) is Outcome.COMMITTED


def test_a_unique_key_of_another_document_ends_as_a_dead_letter():
    guard, record = Guard("_sluice"), entry(5)
    guard.prepare(record)
    answers = [guard.conflicted(record) for _ in range(6)]
    assert answers[-1] is Again.DEAD
    assert answers[:-1] == [Again.SEND] * 5


def test_a_delete_reads_first_and_a_missing_document_is_its_success():
    guard, record = Guard("_sluice"), entry(5, Operation.DELETE)
    guard.prepare(record)
    assert record.step is Step.READ
    assert guard.conflicted(record) is Outcome.COMMITTED
    other = entry(5, Operation.DELETE)
    guard.prepare(other)
    assert guard.answered(other, stored(3, "x")) is Again.SEND
    assert (other.step, other.etag) == (Step.DELETE, "x")
    assert guard.answered(other, {"statusCode": 204}) is Outcome.COMMITTED


def test_it_remembers_a_limited_number():
    guard = Guard("_sluice", remembered=3)
    for number in range(10):
        one = entry(1, document=f"d{number}")
        guard.prepare(one)
        guard.answered(one, {"eTag": "x"})
    assert len(guard._known) == 3
