"""Reconcile and repair: what is found, what it is called, and what is mended."""

import json
import random
import re

import pyarrow.parquet as pq

from service.jobs import commands


def damage(world, *, delete, age, change, add, seed=1):
    """What nobody should do by hand; gives the ids by the state they must be found in."""
    container = world.cosmos()
    documents = sorted(world.documents(), key=lambda document: document["id"])
    random.Random(seed).shuffle(documents)
    picked = iter(documents)
    marked = {"missing": [], "stale": [], "different": [], "unexpected": []}
    for _ in range(delete):
        document = next(picked)
        container.delete_item(document["id"], document["key"])
        marked["missing"].append(document["id"])
    for _ in range(age):
        document = next(picked)
        document["n"] = -1
        document["_sluice"] |= {"sequence": 0, "enqueued": 1}
        container.replace_item(document["id"], document)
        marked["stale"].append(document["id"])
    for _ in range(change):
        document = next(picked)
        document["n"] = -2
        container.replace_item(document["id"], document)
        marked["different"].append(document["id"])
    for number in range(add):
        container.create_item({"id": f"added-{number}", "key": "k", "n": number})
        marked["unexpected"].append(f"added-{number}")
    return marked


def differences(world):
    found = {}
    for file in sorted((world.folder / "reconcile" / "differences").glob("*.parquet")):
        for row in pq.read_table(file).to_pylist():
            found.setdefault(row["state"], []).append(row["id"])
    return {state: sorted(names) for state, names in found.items()}


def report_is_one_file_that_fetches_nothing(text):
    assert "14 documents are not as the stream says" in text
    assert text.count("<svg") == 2
    assert "<script" not in text
    assert not re.search(r"(?:src|href)\s*=|url\(|@import|https?://", text)


def test_damage_is_found_exactly_and_mended_as_far_as_it_may(spark, world):
    world.send({"id": "first", "key": "k", "n": 0}, partition="0")
    world.send({"id": "other", "key": "k", "n": 0}, partition="1")
    world.fill(2400, documents=800, deletes=8)
    world.send(b"poison", partition="1")
    world.capture()
    settings = world.settings()
    assert commands.backfill(world.backfill(), settings) == 0
    assert commands.reconcile(world.reconcile(), settings) == 0
    clean = world.summary("reconcile")
    assert clean["clean"]
    assert clean["balance_closes"]
    assert clean["states"]["ok"] == 702
    assert clean["states"]["deleted"] == 100
    assert sum(row["came_in"] for row in clean["balance"]) == 2403
    assert sum(row["dead_lettered"] for row in clean["balance"]) == 1
    assert sum(row["committed"] for row in clean["balance"]) == 802
    assert all(each["gaps"] == 0 for each in clean["covered"].values())

    marked = damage(world, delete=5, age=4, change=3, add=2)
    assert commands.reconcile(world.reconcile(), settings) == 4
    assert differences(world) == {state: sorted(names) for state, names in marked.items()}
    found = world.summary("reconcile")
    assert found["differences"] == 14
    assert found["balance_closes"]
    assert sum(row["missing"] for row in found["balance"]) == 12
    assert found["suspects"] == 14
    report_is_one_file_that_fetches_nothing((world.folder / "reconcile" / "report.html").read_text())

    assert commands.repair(world.repair(), settings) == 0
    assert json.loads((world.folder / "reconcile" / "repair.json").read_text())["dry_run"]
    assert commands.repair(world.repair(write=True), settings) == 0
    assert commands.reconcile(world.reconcile(threshold=2), settings) == 0
    assert differences(world) == {"unexpected": sorted(marked["unexpected"])}
    assert {name: n for name, n in world.found().items() if not name.startswith("added")} == world.expected()


def test_repair_leaves_a_document_that_changed_after_it_was_seen(spark, world):
    world.fill(50)
    world.capture()
    settings = world.settings()
    commands.backfill(world.backfill(), settings)
    marked = damage(world, delete=0, age=0, change=2, add=0)
    assert commands.reconcile(world.reconcile(), settings) == 4
    container = world.cosmos()
    name = marked["different"][0]
    document = next(each for each in world.documents() if each["id"] == name)
    container.replace_item(name, document | {"n": -3})
    assert commands.repair(world.repair(write=True), settings) == 3
    assert world.found()[name] == -3
    assert world.found()[marked["different"][1]] == world.expected()[marked["different"][1]]


def test_poison_without_a_dead_letter_is_missed(spark, world):
    world.send({"id": "a", "key": "k", "n": 1}, b"poison")
    world.capture()
    settings = world.settings()
    commands.backfill(world.backfill(), settings)
    letters = world.blobs(f"{world.name}-deadletters")
    for name in list(letters.list_blob_names()):
        letters.delete_blob(name)
    assert commands.reconcile(world.reconcile(), settings) == 4
    found = world.summary("reconcile")
    assert found["differences"] == 0
    assert found["unaccounted"] == 1


def test_only_what_changed_since_a_time_can_be_looked_at(spark, world):
    import time
    from datetime import UTC, datetime

    hour_ago = int((time.time() - 7200) * 1000)
    world.send({"id": "old", "key": "k", "n": 1}, enqueued_ms=hour_ago)
    world.send({"id": "new", "key": "k", "n": 2})
    world.capture()
    settings = world.settings()
    commands.backfill(world.backfill(), settings)
    world.cosmos().delete_item("old", "k")
    since = datetime.fromtimestamp(time.time() - 3600, UTC).isoformat()
    assert commands.reconcile(world.reconcile(changed_since=since), settings) == 0
    assert world.summary("reconcile")["states"]["ok"] == 1
    world.cosmos().delete_item("new", "k")
    assert commands.reconcile(world.reconcile(changed_since=since), settings) == 4
    assert world.summary("reconcile")["states"]["missing"] == 1
    assert commands.reconcile(world.reconcile(), settings) == 4
    assert world.summary("reconcile")["states"]["missing"] == 2
