"""Backfill beside a live consumer."""

import json
import random
import threading

from service.jobs import commands
from service.jobs.judge import State
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


def test_a_newer_document_is_never_overwritten(spark, world):
    """A writer with later stamps works on the same documents all the time; no document ever goes back."""
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
