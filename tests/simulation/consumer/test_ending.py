"""SIGTERM while something does not do its part: the worker ends all the same, in time and with a word about it."""

import asyncio

import pytest
from structlog.testing import capture_logs

from service.worker import CANCEL_SECONDS, LATE_SECONDS
from tests.simulation.consumer.world import Host, World
from tests.simulation.loop import simulate
from tests.simulation.source.hub import SimulatedClient


class DeafClient(SimulatedClient):
    """Answers at once when it is asked for the first time; later it takes for ever, and misses the first cancelling."""

    asked = 0

    async def describe(self):
        self.asked += 1
        if self.asked > 1:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.Event().wait()
        return await super().describe()


@pytest.mark.parametrize("seed", range(5))
def test_a_call_that_misses_being_cancelled_does_not_keep_the_worker(seed):
    async def main():
        world = World(2, lease_duration=15.0, lease_renew=5.0, shutdown_deadline=20.0, document_body="array")
        for partition in world.hub.partitions:
            for _ in range(50):
                world.publish(partition, 20, poison=0.0)
        host = Host(world, "host")
        host.hub = lambda: DeafClient(world.hub, host.weather.gate)
        await asyncio.sleep(60)  # by now all is done, and it measures
        assert world.settled()
        began = world.loop.time()
        with capture_logs() as logs:
            await host.end()
        assert world.loop.time() - began <= 20 + LATE_SECONDS + CANCEL_SECONDS
        assert not any(row.owner for row in world.storage.rows.values()), "the leases are released before that"
        (said,) = [entry["unfinished"] for entry in logs if "cut off" in entry["event"]]
        assert any("DeafClient.describe" in each for each in said)

    simulate(main, seed, seconds=2000)


def test_storage_that_is_away_at_the_end_is_a_sentence_and_no_traceback():
    async def main():
        world = World(2, lease_duration=15.0, lease_renew=5.0, shutdown_deadline=20.0, document_body="array")
        host = Host(world, "host")
        await asyncio.sleep(10)
        host.weather.fault_before = 1.0
        for partition in world.hub.partitions:
            for _ in range(50):
                world.publish(partition, 20, poison=0.0)
        await asyncio.sleep(2)
        with capture_logs() as logs:
            await host.end()
        assert [entry["event"] for entry in logs if "exc_info" in entry] == []
        said = [entry["why"] for entry in logs if "the last checkpoint was not written" in entry["event"]]
        assert said == ["storage cannot be reached"] * 2

    simulate(main, 1, seconds=2000)
