"""The whole consumer through seeded trouble: kills, losses, throttling, storage faults. Promises 1 to 5 must hold."""

import asyncio

import pytest
import structlog

from tests.simulation.consumer.world import Host, World
from tests.simulation.loop import simulate


@pytest.fixture(autouse=True)
def _quiet():
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.reset_defaults()


async def schedule():
    loop = asyncio.get_running_loop()
    random = loop.random
    world = World(
        partitions=random.choice((1, 2, 4)),
        document_body="array",
        cosmos_write_mode=random.choice(("upsert", "guarded")),
        eventhub_ratelimit=random.choice((0, 0, 37, 300)),
        checkpoint_interval=random.choice((0.5, 2.0, 5.0)),
        cosmos_batch_wait=random.choice((0.05, 1.0)),
        lease_duration=15.0,
        lease_renew=5.0,
        deadletter_max_ratio=1.0,
        shutdown_deadline=30.0,
    )
    documents = random.choice((3, 50, 1000))
    names = iter(range(1000))
    Host(world, f"host-{next(names)}", skew=random.uniform(-60, 60))
    for _ in range(random.randrange(4, 9)):
        for partition in world.hub.partitions:
            for _ in range(random.randrange(0, 40)):
                world.publish(partition, documents)
        await incident(world, random, names)
        await asyncio.sleep(random.uniform(0, 12))
    calm(world)
    if not world.hosts:
        Host(world, f"host-{next(names)}")
    for _ in range(4000):
        if world.settled():
            break
        await asyncio.sleep(0.25)
    assert world.settled(), f"stuck: {dict(world.durable)} of {[len(p.events) for p in world.hub.partitions.values()]}"
    world.check_end()
    for host in list(world.hosts.values()):
        await host.end()


async def incident(world, random, names):
    """One thing that happens."""
    hosts = list(world.hosts.values())
    trouble = world.container.trouble
    match random.choice(("join", "kill", "leave", "storage", "cosmos", "throttle", "split", "hub", "calm", "suspend")):
        case "join" if len(hosts) < 3:
            Host(world, f"host-{next(names)}", skew=random.uniform(-60, 60))
        case "kill" if hosts:
            await random.choice(hosts).kill()
        case "leave" if hosts:
            await random.choice(hosts).end()
        case "storage" if hosts:
            weather = random.choice(hosts).weather
            weather.fault_before = random.choice((0.1, 0.5))
            weather.fault_after = random.choice((0.0, 0.2))
        case "cosmos":
            trouble.lost_before = trouble.lost_after = 0.1
            trouble.server_error = trouble.retry_with = 0.1
            trouble.short_answer = 0.05
        case "throttle":
            trouble.throttle_operation = trouble.throttle_request = 0.3
        case "split":
            world.container.split(random.choice((2, 4, 6)))
        case "hub":
            world.hub.fault_rate = 0.2
            world.hub.drop()
        case "suspend" if hosts:
            await suspend(random.choice(hosts), random.uniform(1, 40))
        case _:
            calm(world)


async def suspend(host, seconds):
    """As SIGSTOP and SIGCONT, as far as others can see."""
    host.weather.gate.clear()
    await asyncio.sleep(seconds)
    host.weather.gate.set()


def calm(world):
    world.hub.fault_rate = 0.0
    world.container.trouble = type(world.container.trouble)()
    for host in world.hosts.values():
        host.weather.fault_before = host.weather.fault_after = 0.0
        host.weather.gate.set()


def run(seeds):
    for seed in seeds:
        simulate(schedule, seed=seed, seconds=5000)


@pytest.mark.parametrize("start", range(0, 500, 100))
def test_the_promises_hold_in_500_schedules(start):
    run(range(start, start + 100))


@pytest.mark.proof
def test_the_promises_hold_in_5000_schedules():
    run(range(500, 5500))
