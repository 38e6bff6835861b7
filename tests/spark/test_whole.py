"""The whole story at full size: 200,000 events, a consumer that starts late, damage by hand, repair."""

import json
import random

import pytest

from service.jobs import commands, live
from tests.spark.test_reconcile import damage, differences
from tests.support.stack import Process, until

EVENTS = 200_000
DOCUMENTS = 60_000


@pytest.mark.proof
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")  # Capture's files, by the local stack
@pytest.mark.timeout(1800)
def test_two_hundred_thousand_events_are_loaded_proved_damaged_and_mended(spark, make_world):
    world = make_world(partitions=4)
    chance = random.Random(2026)
    half = EVENTS // 2
    world.fill(half, documents=DOCUMENTS, deletes=50)
    start = {partition.id: {"sequence": partition.log.end} for partition in world.hub.partitions}
    env_file = world.env_file(EVENTHUB_START=json.dumps(start), CHECKPOINT_INTERVAL="1s")
    settings = world.settings()
    with Process("run", "--env-file", str(env_file), folder=world.folder) as consumer:
        until(lambda: len(live.look(settings).checkpoints) == 4, 120, "first checkpoints", process=consumer, every=1)
        world.capture()
        # The rest comes while the backfill runs, on documents of both halves.
        world.fill(half, documents=DOCUMENTS // 3, first=EVENTS, deletes=70)
        assert commands.backfill(world.backfill(window_bytes=8_000_000), settings) == 0
        until(lambda: live.look(settings).lag == 0, 300, "the consumer is through", process=consumer, every=1)
        world.capture()
        # Once more up to its present checkpoint: closes over deletes that were not in Capture's files yet.
        assert commands.backfill(world.backfill(run_id="rest", window_bytes=8_000_000), settings) == 0
        assert commands.reconcile(world.reconcile(), settings) == 0
        assert world.found() == world.expected()
        clean = world.summary("reconcile")
        assert clean["balance_closes"]
        assert sum(row["came_in"] for row in clean["balance"]) == EVENTS

        marked = damage(world, delete=50, age=40, change=30, add=20, seed=chance.randrange(1000))
        assert commands.reconcile(world.reconcile(), settings) == 4
        assert differences(world) == {state: sorted(names) for state, names in marked.items()}
        assert commands.repair(world.repair(write=True), settings) == 0
        assert commands.reconcile(world.reconcile(), settings) == 4
        assert differences(world) == {"unexpected": sorted(marked["unexpected"])}
        assert consumer.stop() == 0
    kept = {name: n for name, n in world.found().items() if not name.startswith("added")}
    assert kept == world.expected()
    summary = world.summary("reconcile")
    print(f"\n{EVENTS} events, {len(kept)} documents; reconcile took {summary['seconds']} s")
