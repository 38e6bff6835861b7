"""Backfill: what it writes, what it leaves alone, and what it says about it."""

import time

import pytest

from service.jobs import commands
from service.jobs.options import BudgetOptions


def test_capture_becomes_documents_each_in_its_last_state(spark, world):
    world.fill(3000, documents=1000, deletes=10)
    world.send(b"this is no JSON", partition="1")
    world.capture()
    assert commands.backfill(world.backfill(), world.settings()) == 0
    assert world.found() == world.expected()
    assert len(world.found()) == 900
    found = world.summary("backfill")
    assert found["records"]["read"] == 3001
    assert found["records"]["committed"] == 1000
    assert found["records"]["superseded"] == 2000
    assert found["records"]["dead-lettered"] == 1
    assert found["complete"]
    assert found["ru"] > 1000
    assert "<svg" in (world.folder / "backfill" / "report.html").read_text()
    letters = list(world.blobs(f"{world.name}-deadletters").list_blob_names())
    assert len(letters) == 1


@pytest.mark.parametrize("reader", ["jvm", "python"])
def test_both_readers_give_the_same_stamps(spark, world, reader):
    world.send({"id": "a", "key": "k", "n": 1}, {"id": "b", "key": "k", "n": 2}, colour="red", size=3, none=None)
    world.capture()
    source = world.source(reader=reader)
    assert commands.backfill(world.backfill(source), world.settings()) == 0
    stamps = {document["id"]: document["_sluice"] for document in world.documents()}
    assert stamps["b"]["sequence"] == 1
    assert stamps["b"]["incarnation"] == world.hub.created_ms
    assert abs(stamps["b"]["enqueued"] - time.time()) < 120


def test_newer_documents_are_superseded_and_those_without_a_stamp_left_alone(spark, world):
    world.send(*({"id": name, "key": "k", "n": 1} for name in ("newer", "unstamped", "older", "absent")))
    world.capture()
    stamp = {"incarnation": world.hub.created_ms, "partition": "0", "index": 0, "enqueued": 1}
    container = world.cosmos()
    container.create_item({"id": "newer", "key": "k", "n": 9, "_sluice": stamp | {"sequence": 99}})
    container.create_item({"id": "unstamped", "key": "k", "n": 8})
    container.create_item({"id": "older", "key": "k", "n": 0, "_sluice": stamp | {"sequence": 1}})
    assert commands.backfill(world.backfill(), world.settings()) == 0
    assert world.found() == {"newer": 9, "unstamped": 8, "older": 1, "absent": 1}
    records = world.summary("backfill")["records"]
    assert (records["committed"], records["superseded"], records["left alone"]) == (2, 1, 1)


def test_records_that_have_outlived_their_ttl_are_not_written(spark, make_world):
    world = make_world(default_ttl=-1)
    hour_ago = int((time.time() - 3600) * 1000)
    world.send({"id": "gone", "key": "k", "n": 1, "ttl": 60}, {"id": "stays", "key": "k", "n": 2}, enqueued_ms=hour_ago)
    world.capture()
    assert commands.backfill(world.backfill(), world.settings()) == 0
    assert world.found() == {"stays": 2}
    assert world.summary("backfill")["records"]["expired"] == 1


def test_a_dry_run_and_an_explanation_write_nothing(spark, world):
    world.fill(500, documents=250)
    world.capture()
    budget = BudgetOptions(records_per_second=100)
    assert commands.backfill(world.backfill(explain=True, budget=budget), world.settings()) == 0
    explained = world.summary("backfill")
    assert explained["units"] == 1
    assert explained["records"] == 500
    assert explained["seconds"] == 5
    assert explained["ru"] > 1000
    assert commands.backfill(world.backfill(dry_run=True), world.settings()) == 0
    assert world.summary("backfill")["records"]["would upsert"] == 250
    assert world.documents() == []


def test_finished_units_are_not_done_again_and_other_settings_are_refused(spark, world):
    world.fill(400)
    world.capture()
    options = world.backfill(run_id="one")
    assert commands.backfill(options, world.settings()) == 0
    world.stack.call(world.container.write_log.clear)
    assert commands.backfill(options, world.settings()) == 0
    assert world.summary("backfill")["units_before"] == 1
    assert world.summary("backfill")["records"]["committed"] == 400
    assert world.stack.call(lambda: world.container.write_log.total) == 0
    with pytest.raises(commands.BadInput, match="other settings"):
        commands.backfill(options, world.settings(document_delete="/other"))


def test_the_retained_range_of_a_hub_is_read_in_its_own_group(spark, world):
    world.fill(1000, documents=500)
    with pytest.raises(commands.BadInput, match="of the live consumer"):
        commands.backfill(world.backfill(world.source("hub", consumer_group="$default")), world.settings())
    some = world.source("hub", consumer_group="jobs", first_sequence=100, last_sequence=119)
    assert commands.backfill(world.backfill(some), world.settings()) == 0
    assert {document["_sluice"]["sequence"] for document in world.documents()} == set(range(100, 120))
    assert commands.backfill(world.backfill(world.source("hub", consumer_group="jobs")), world.settings()) == 0
    assert world.found() == world.expected()


def test_files_of_json_lines_parquet_and_dead_letters_are_sources(spark, world):
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = world.folder / "in"
    folder.mkdir()
    documents = [{"id": f"l{n}", "key": "k", "n": n} for n in range(3)]
    (folder / "a.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents) + "no json\n")
    events = [
        {"partition": "7", "sequence": 40 + n, "enqueued": 1e12, "body": f'{{"id":"p{n}","key":"k","n":{n}}}'}
        for n in range(2)
    ]
    pq.write_table(pa.Table.from_pylist(events), folder / "b.parquet")
    pq.write_table(pa.Table.from_pylist([{"id": "q", "key": "k", "n": 5}]), folder / "c.parquet")
    source = world.source("files", path=str(folder))
    assert commands.backfill(world.backfill(source), world.settings()) == 0
    assert world.found() == {"l0": 0, "l1": 1, "l2": 2, "p0": 0, "p1": 1, "q": 5}
    stamps = {document["id"]: document["_sluice"] for document in world.documents()}
    assert (stamps["p1"]["partition"], stamps["p1"]["sequence"], stamps["p1"]["enqueued"]) == ("7", 41, 10**9)
    # What was poison is one again when it is tried again: nothing changes but the letters.
    assert commands.backfill(world.backfill(world.source("deadletters")), world.settings()) == 0
    assert world.summary("backfill")["records"]["dead-lettered"] == 1
