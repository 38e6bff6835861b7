"""The JSON of lease blobs, ours and the old programs'."""

import json

from service.source.events import Hub, PartitionId
from service.source.lease_document import LeaseDocument, decode
from service.source.leases import Checkpoint
from service.source.store import Stored

P = PartitionId("3")


def test_it_comes_back_as_it_was():
    document = LeaseDocument(P, "host", "token", 7, Stored(Checkpoint(41, "8589", "map"), 99), "ns", "hub")
    assert decode(P, document.encode()) == document


def test_a_first_checkpoint_before_all_events_is_kept_as_one():
    stored = Stored(Checkpoint(-1, "-1"), 99)
    assert decode(P, LeaseDocument(P, stored=stored).encode()).stored == stored


def test_dotnets_spelling_is_read():
    body = {"Offset": "8589", "SequenceNumber": 41, "PartitionId": "3", "Owner": "old", "Token": "t", "Epoch": 12}
    document = decode(P, json.dumps(body).encode())
    assert (document.owner, document.token, document.epoch) == ("old", "t", 12)
    assert document.stored == Stored(Checkpoint(41, "8589"), None)


def test_javascripts_spelling_is_read():
    body = {"partitionId": "3", "owner": "old", "token": "t", "epoch": 5, "sequenceNumber": 41, "offset": "8589"}
    document = decode(P, json.dumps(body).encode())
    assert (document.epoch, document.stored.checkpoint) == (5, Checkpoint(41, "8589"))


def test_an_old_lease_that_never_had_a_checkpoint_has_none():
    for body in (
        {"PartitionId": "3", "Owner": "old", "Epoch": 1, "Offset": None, "SequenceNumber": 0},
        {"partitionId": "3", "epoch": -1, "sequenceNumber": 0, "offset": "-1"},
        {"partitionId": "3", "epoch": 0},
    ):
        assert decode(P, json.dumps(body).encode()).stored.checkpoint is None


def test_without_a_checkpoint_autoscalers_count_the_first_event_too():
    body = json.loads(LeaseDocument(P).encode())
    assert (body["SequenceNumber"], body["Offset"]) == (-1, None)
    assert decode(P, json.dumps(body).encode()).stored.checkpoint is None


def test_what_is_no_json_is_a_lease_nobody_held():
    assert decode(P, b"") == decode(P, b"{") == decode(P, b"[]") == LeaseDocument(P)


def test_old_programs_and_autoscalers_find_the_names_they_know():
    body = json.loads(LeaseDocument(P, "h", "t", 7, Stored(Checkpoint(41, "8589"), 99), "ns", "hub").encode())
    assert {key: body[key] for key in ("PartitionId", "Owner", "Token", "Epoch", "Offset", "SequenceNumber")} == {
        "PartitionId": "3",
        "Owner": "h",
        "Token": "t",
        "Epoch": 7,
        "Offset": "8589",
        "SequenceNumber": 41,
    }


def test_another_hubs_document_is_known_as_such():
    hub = Hub("ns", "Records", "$Default", 1)
    assert LeaseDocument(P, namespace="ns", hub="records").is_of(hub)
    assert LeaseDocument(P).is_of(hub)
    assert not LeaseDocument(P, namespace="ns", hub="other").is_of(hub)
