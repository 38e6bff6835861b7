"""What can go wrong: each fault does it, yields for how long, and then undoes it."""

import signal
from collections.abc import Iterator

from service.local.event_hubs.control import Scope
from tests.chaos.world import World

Fault = Iterator[float]
RETRIED = ((408, 0), (410, 1002), (429, 3200), (449, 0), (500, 0), (503, 0))
CONDITIONS = ("amqp:link:detach-forced", "amqp:internal-error", "com.microsoft:server-busy", "com.microsoft:timeout")


def kill_a_host(world: World) -> Fault:
    host = world.pick()
    host.signal(signal.SIGKILL)
    world.forget(host)
    yield world.random.uniform(0, 3)
    world.start()


def end_a_host(world: World) -> Fault:
    host = world.pick()
    world.end(host)
    yield world.random.uniform(0, 3)
    world.start()


def one_host_more(world: World) -> Fault:
    host = world.start()
    yield world.random.uniform(5, 20)
    if host in world.hosts and host not in world.frozen:
        world.end(host)


def freeze_a_host(world: World) -> Fault:
    host = world.pick()
    yield from world.frozen_for(host, world.random.uniform(0.5, 8))


def freeze_a_host_beyond_its_lease(world: World) -> Fault:
    host = world.pick()
    yield from world.frozen_for(host, world.lease_seconds + world.random.uniform(1, 8))


def freeze_the_blobs(world: World) -> Fault:
    world.freeze_blobs(True)
    yield world.random.choice((1, 3, 6, world.lease_seconds + 5))
    world.freeze_blobs(False)


def drop_connections(world: World) -> Fault:
    scope = world.random.choice((None, Scope(partition=world.partition())))
    world.stack.call(world.control.drop, scope)
    yield 0


def detach_links(world: World) -> Fault:
    scope = world.random.choice((None, Scope(partition=world.partition())))
    world.stack.call(world.control.detach, scope, world.random.choice(CONDITIONS))
    yield 0


def busy_hub(world: World) -> Fault:
    world.stack.call(world.control.busy)
    yield world.random.uniform(0.5, 4)
    world.stack.call(lambda: world.control.busy(on=False))


def slow_hub(world: World) -> Fault:
    world.stack.call(world.control.delay, world.random.uniform(0.05, 0.5))
    yield world.random.uniform(1, 5)
    world.stack.call(world.control.delay, 0)


def frozen_partition(world: World) -> Fault:
    partition = world.partition()
    world.stack.call(world.control.freeze, world.stack.hub.name, partition)
    yield world.random.uniform(0.5, 6)
    world.stack.call(world.control.thaw, world.stack.hub.name, partition)


def failing_requests(world: World) -> Fault:
    status, sub_status = world.random.choice(RETRIED)
    scope, count = world.random.choice((("request", 20), ("operation", 400)))
    count = world.random.randint(1, count)
    wait = world.random.choice((None, 0, 50, 1000)) if status == 429 else None
    faults = world.stack.container.faults
    world.stack.call(lambda: faults.fail_next(count, status, sub_status, scope=scope, retry_after_ms=wait))
    yield 0


def dropped_answers(world: World) -> Fault:
    when, count = world.random.choice(("before", "after")), world.random.randint(1, 10)
    world.stack.call(lambda: world.stack.container.faults.drop_next(count, when=when))
    yield 0


def late_answers(world: World) -> Fault:
    count, seconds = world.random.randint(1, 10), world.random.uniform(0.2, 4)
    world.stack.call(lambda: world.stack.container.faults.delay_next(count, seconds=seconds))
    yield 0


def throttled_range(world: World) -> Fault:
    chosen = world.random.choice(world.ranges())
    world.stack.call(world.stack.container.throttle_range, chosen)
    yield world.random.uniform(0.5, 5)
    if chosen in world.ranges():  # not split meanwhile
        world.stack.call(lambda: world.stack.container.throttle_range(chosen, on=False))


def split(world: World) -> Fault:
    ranges = world.ranges()
    if len(ranges) < 12:
        chosen = world.random.choice(ranges)
        world.stack.call(lambda: world.stack.container.split(range_id=chosen))
    yield 0


ALL = (
    kill_a_host,
    end_a_host,
    one_host_more,
    freeze_a_host,
    freeze_a_host_beyond_its_lease,
    freeze_the_blobs,
    drop_connections,
    detach_links,
    busy_hub,
    slow_hub,
    frozen_partition,
    failing_requests,
    dropped_answers,
    late_answers,
    throttled_range,
    split,
)
