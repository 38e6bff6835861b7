"""Backfill beside a live consumer."""

import json
import random
import threading
import time

from service.jobs import commands, watch
from service.jobs.judge import State
from service.jobs.options import BudgetOptions
from service.sink.stamp import Stamp, compare
from tests.support.stack import Process, until


def checkpoint(world):
    """Sum of the checkpointed sequences, or -1 before the first."""
    from service.jobs import live

    found = live.look(world.settings()).checkpoints
    return sum(found.values()) if len(found) == len(world.hub.partitions) else -1


def test_history_below_the_checkpoint_is_loaded_while_the_consumer_runs(spark, world):
    """The consumer starts late, so that it never wrote the older half; deletes on both sides of its start."""
    world.fill(1200, documents=400, deletes=10)
    start = {partition.id: {"sequence": partition.log.end} for partition in world.hub.partitions}
    newest = sum(partition.log.end for partition in world.hub.partitions)
    env_file = world.env_file(EVENTHUB_START=json.dumps(start), CHECKPOINT_INTERVAL="200ms")
    with Process("run", "--env-file", str(env_file), folder=world.folder) as consumer:
        until(lambda: checkpoint(world) >= 0, 90, "first checkpoints", process=consumer, every=0.3)
        # Documents 0 to 299 are written again, and 300 to 349 are deleted, by events that only the consumer sees.
        world.fill(300, documents=400)
        world.send(
            *({"id": f"d{n}", "key": f"k{n % 97}", "n": 0, "gone": True} for n in range(300, 350, 2)), partition="0"
        )
        world.send(
            *({"id": f"d{n}", "key": f"k{n % 97}", "n": 0, "gone": True} for n in range(301, 350, 2)), partition="1"
        )
        everything = sum(partition.log.end for partition in world.hub.partitions)
        world.capture()
        bounded = world.backfill()
        assert commands.backfill(bounded, world.settings()) == 0
        until(
            lambda: checkpoint(world) == everything - len(world.hub.partitions), 90, "all", process=consumer, every=0.3
        )
        assert commands.backfill(world.backfill(run_id="rest"), world.settings()) == 0
        assert commands.reconcile(world.reconcile(), world.settings()) == 0
        assert consumer.stop() == 0
    assert newest < everything
    assert world.found() == world.expected()
    states = world.summary("reconcile")["states"]
    assert states[State.DELETED.value] > 50


def test_a_job_waits_while_the_consumer_falls_behind(spark, world, monkeypatch):
    """More comes in than the consumer may write: its lag rises, and nothing of the history is written until it does
    not any more.
    """
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.25)
    world.fill(3000)
    start = {partition.id: {"sequence": partition.log.end} for partition in world.hub.partitions}
    world.capture()
    env_file = world.env_file(EVENTHUB_START=json.dumps(start), CHECKPOINT_INTERVAL="200ms", EVENTHUB_RATELIMIT="1")
    settings = world.settings()
    with Process("run", "--env-file", str(env_file), folder=world.folder) as consumer:
        until(lambda: checkpoint(world) >= 0, 90, "first checkpoints", process=consumer, every=0.3)
        flood = Flood(world)
        with flood:
            options = world.backfill(budget=BudgetOptions(records_per_second=400), run_id="polite")
            assert commands.backfill(options, settings) == 0
        assert consumer.stop() == 0
    summary = world.summary("backfill")
    assert summary["complete"]
    assert summary["records"]["committed"] == 3000
    assert summary["held_seconds"] >= 1
    assert flood.held, "the job was not held back in time"
    early, late = flood.held
    # Both tasks may spend what they had leased (half a second's worth each) and send what was on its way; without the
    # hold it would be 2000.
    assert late - early <= 600, "history was written while the job was held back"
    assert late < 3000


class Flood(threading.Thread):
    """Sends 100 events a second, from when the job writes until it has been held back for a while."""

    def __init__(self, world):
        super().__init__()
        self._world = world
        self._stop_now = threading.Event()
        self.held: tuple[int, int] | None = None
        """How much of the history was written when the job was first held back, and five seconds later."""

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._stop_now.set()
        self.join()

    def run(self):
        number, since, early = 0, None, 0
        while not self._written() and not self._stop_now.wait(0.1):
            pass
        while not self._stop_now.wait(0.1):
            self._world.send(*({"id": f"live-{number + n}", "key": "k", "n": 0} for n in range(10)))
            number += 10
            if since is None:
                since, early = (time.monotonic(), self._written()) if self._is_held() else (None, 0)
            elif time.monotonic() > since + 5:
                self.held = early, self._written()
                return

    def _is_held(self):
        blob = self._world.blobs(f"{self._world.name}-jobs").get_blob_client("ledgers/polite.json")
        return blob.exists() and json.loads(blob.download_blob().readall())["held_until"] > time.time()

    def _written(self):
        return sum(name.startswith("d") for name in self._world.found())


def test_a_newer_document_is_never_overwritten(spark, world):
    """A writer with later stamps works on the same documents all the time; no document ever goes back. (Over many
    seeds and all kinds of trouble: unit/jobs/test_never_older.py.)
    """
    world.fill(2000, documents=100)
    world.capture()
    world.stack.call(lambda: setattr(world.container.write_log, "keep_bodies", True))
    stop = threading.Event()
    chance = random.Random(7)

    def live_writer():
        container, sequence = world.cosmos(), 100_000
        while not stop.is_set():
            number = chance.randrange(100)
            sequence += 1
            partition = world.hub.partitions[number % len(world.hub.partitions)].id
            stamp = {"incarnation": world.hub.created_ms, "partition": partition, "index": 0, "enqueued": 2_000_000_000}
            body = {
                "id": f"d{number}",
                "key": f"k{number % 97}",
                "n": -sequence,
                "_sluice": stamp | {"sequence": sequence},
            }
            container.upsert_item(body)

    writer = threading.Thread(target=live_writer)
    writer.start()
    try:
        for run in ("one", "two"):
            options = world.backfill(world.source(reader="jvm" if run == "one" else "python"), run_id=run, up_to="end")
            assert commands.backfill(options, world.settings()) == 0
    finally:
        stop.set()
        writer.join()
    last: dict[str, Stamp] = {}
    writes = world.stack.call(lambda: [entry for entry in world.container.write_log if entry.lsn])
    assert len(writes) > 100
    for entry in writes:
        stamp = Stamp.parse(json.loads(entry.body)["_sluice"])
        assert stamp is not None
        if entry.id in last:
            assert compare(stamp, last[entry.id]).value != "older", entry
        last[entry.id] = stamp
