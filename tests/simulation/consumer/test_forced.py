"""A partition taken by force from a host that drains: the two must not write at the same time."""

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


@pytest.mark.parametrize("seed", range(10))
def test_the_new_owner_waits_until_the_old_one_must_have_stopped(seed):
    async def main():
        world = World(2, lease_duration=15.0, lease_renew=5.0, shutdown_deadline=50.0, document_body="array")
        for partition in world.hub.partitions:
            for _ in range(50):
                world.publish(partition, 20, poison=0.0)
        world.container.trouble.lost_before = 1.0  # nothing gets through: the old owner cannot drain
        old = Host(world, "old")
        await asyncio.sleep(10)
        ending = asyncio.create_task(old.end())
        new = Host(world, "new")
        taken_at = None
        for _ in range(1200):
            await asyncio.sleep(0.1)
            if taken_at is None and any(row.owner == "new" for row in world.storage.rows.values()):
                taken_at = world.loop.time()
            if new.worker._intake.received:
                break
        assert taken_at is not None, "the new host took nothing"
        assert new.worker._intake.received, "the new host read nothing"
        still_held = [flow for flow in old.worker._flows.values() if flow.ownership.holds()]
        taken = {partition for partition, row in world.storage.rows.items() if row.owner == "new"}
        assert not {flow.ownership.partition for flow in still_held} & taken
        world.container.trouble.lost_before = 0.0
        await ending
        for _ in range(2000):
            if world.settled():
                break
            await asyncio.sleep(0.1)
        world.check_end()
        await new.end()

    simulate(main, seed, seconds=2000)
