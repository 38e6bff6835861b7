"""Everything goes wrong at once, with real processes: nothing is lost, and no checkpoint ever says more than is true.

CHAOS_SECONDS is how long, CHAOS_SEED which faults and when. The output names both, and every fault as it comes.
"""

import asyncio
import heapq
import itertools
import json
import os
import time
from random import Random

import pytest

from service import options
from service.config import load
from service.sink.letter_archive import LetterArchive
from tests.chaos import faults
from tests.chaos.stream import Stream
from tests.chaos.world import Watch, World
from tests.support.stack import until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]
SECONDS = float(os.environ.get("CHAOS_SECONDS", "90"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))
PARTITIONS = 6
EVENTS_PER_SECOND = 300
HOSTS = 3
LEASE_SECONDS = {"lease": 15.0, "ownership": 120.0}
SETTINGS = {
    "LEASE_DURATION": "15s",
    "LEASE_RENEW": "2s",
    "CHECKPOINT_INTERVAL": "1s",
    "COSMOS_BATCH_WAIT": "200ms",
    "COSMOS_RETRY_WAIT": "200ms",
    "DOCUMENT_BODY": "array",
    "DOCUMENT_DELETE": "/gone",
    "SHUTDOWN_DEADLINE": "20s",
}


@pytest.mark.parametrize(
    ("lease_mode", "write_mode"), [("lease", "upsert"), ("lease", "guarded"), ("ownership", "guarded")]
)
def test_chaos(make_stack, sluice, lease_mode, write_mode):
    random = Random(f"faults {SEED} {lease_mode} {write_mode}")
    print(f"\nCHAOS_SEED={SEED} CHAOS_SECONDS={SECONDS:g} {lease_mode} {write_mode}")
    stack = make_stack(partitions=PARTITIONS, physical_partitions=3, throughput=60_000)
    stack.container.write_log.keep_bodies = True
    stack.container.write_log.set_limit(2_000_000)
    settings = {**SETTINGS, "LEASE_MODE": lease_mode, "COSMOS_WRITE_MODE": write_mode}

    def start():
        workers = random.choice((1, 1, 2))
        return sluice("run", "--env-file", str(stack.env_file), **settings, WORKERS=workers)

    world = World(stack, start, random, LEASE_SECONDS[lease_mode])
    stream = Stream(Random(f"stream {SEED}"), PARTITIONS)
    watch = Watch(stack, stream, lease_mode)
    for _ in range(HOSTS):
        world.start()
    try:
        happened = _trouble(world, stream, watch, _possible(lease_mode, write_mode))
        _calm(world, watch)
        world.end_all()
        watch.look()
    finally:
        watch.close()
    assert watch.done()
    _check_outcome(stack, world, stream, write_mode)
    events = sum(map(len, stream.sent))
    print(f"{happened} faults, {len(world.started)} hosts, {events} events, {watch.looks} looks at the checkpoints")
    assert watch.covered == events


def _possible(lease_mode, write_mode):
    """The faults of this run.

    Who wakes after his lease with half a request sent will send the other half: without a guard no client can
    help that. And a killed owner's partitions lie idle for two minutes by the SDKs' rules.
    """
    left_out = set()
    if write_mode == "upsert":
        left_out.add(faults.freeze_a_host_beyond_its_lease)
    if lease_mode == "ownership":
        left_out |= {faults.freeze_a_host_beyond_its_lease, faults.kill_a_host}
    return [fault for fault in faults.ALL if fault not in left_out]


def _trouble(world, stream, watch, possible):
    """SECONDS of it; how many faults there were."""
    began = time.monotonic()
    undoing = []
    count = itertools.count()
    next_fault, next_look, sent = 5.0, 1.0, 0
    while (now := time.monotonic() - began) < SECONDS:
        due = int(now * EVENTS_PER_SECOND)
        world.stack.call(stream.append, world.stack.hub, due - sent)
        sent = due
        while undoing and undoing[0][0] <= now:
            next(heapq.heappop(undoing)[2], None)
        if now >= next_fault:
            chosen = world.random.choice(possible)
            print(f"{now:7.2f} {chosen.__name__}")
            fault = chosen(world)
            heapq.heappush(undoing, (now + next(fault), next(count), fault))
            next_fault = now + world.random.uniform(0.2, 2.5)
        if now >= next_look:
            watch.look()
            world.check_hosts()
            next_look = time.monotonic() - began + 1.0
        time.sleep(0.05)
    for _, _, fault in sorted(undoing):
        next(fault, None)
    return next(count)


def _calm(world, watch):
    """All is well again: everything that is left gets done."""
    world.stack.call(world.stack.container.faults.clear)

    def done():
        watch.look()
        world.check_hosts()
        return watch.done()

    until(done, 60 + 2 * world.lease_seconds, "all checkpointed", every=1.0, process=world.pick())


def _check_outcome(stack, world, stream, write_mode):
    stored = {each["id"]: each["number"] for each in stack.documents()}
    expected = stream.expected()
    differing = {name for name in stored.keys() | expected.keys() if stored.get(name) != expected.get(name)}
    assert not differing, {name: (stored.get(name), expected.get(name)) for name in sorted(differing)[:20]}
    assert asyncio.run(_letters(stack)) == stream.poison
    for host in world.started:
        assert "Traceback" not in host.output(), host.output()[-5000:]
    if write_mode == "guarded":
        _check_order(stack.call(stack.container.write_log.committed))


def _check_order(writes):
    """No write ever put a lower number over a higher one."""
    numbers = {}
    for write in writes:
        if write.operation == "Delete" or write.body is None:
            numbers.pop(write.id, None)
            continue
        number = json.loads(write.body)["number"]
        assert number >= numbers.get(write.id, -1), f"{write.id} went back from {numbers[write.id]} to {number}"
        numbers[write.id] = number


async def _letters(stack):
    settings = load(stack.env_file)
    async with options.dead_letters(settings, None) as container:
        return {(each.partition, each.event.sequence) async for each in LetterArchive(container).letters()}
