"""The backlog's limits on a virtual clock: what is counted, when intake pauses, when the process ends, what it says."""

import asyncio
import time
from dataclasses import replace

import pytest

from service.errors import BacklogExceeded
from service.flow.backlog import Backlog, BacklogLimits
from service.flow.worklist import Frontier, WorkItem, WorkList
from service.sink.outcome import Outcome
from tests.simulation.loop import simulate


@pytest.fixture
def worklists(ownership):
    return [WorkList(replace(ownership, partition=name), Frontier(-1, None)) for name in ("0", "1")]


def take(worklist, event, count=1, **body):
    now = asyncio.get_running_loop().time()
    return [WorkItem(worklist, event(**body), 1, now) for _ in range(count)]


def test_too_many_records_end_the_process_and_the_message_says_all(worklists, event):
    async def main():
        backlog = Backlog(BacklogLimits(records=10), lambda: worklists)
        take(worklists[0], event, 4)
        await asyncio.sleep(90)
        take(worklists[1], event, 6)
        backlog.look()
        take(worklists[1], event)
        with pytest.raises(BacklogExceeded) as ended:
            backlog.look()
        return str(ended.value)

    message = simulate(main, 1)
    for part in ("11 records", "ALLOW_BACKLOG_OF (10)", "partition 1 alone has 7 (oldest 0 s)", "EVENTHUB_RATELIMIT"):
        assert part in message


def test_one_old_record_ends_the_process_while_everything_else_moves(worklists, event):
    """Age is looked at always, also while nothing arrives and while the other partition's checkpoints advance."""

    async def main():
        backlog = Backlog(BacklogLimits(seconds=600), lambda: worklists)
        take(worklists[1], event)
        watching = asyncio.create_task(backlog.run())
        began = asyncio.get_running_loop().time()
        while not watching.done():
            for item in take(worklists[0], event, 3):
                item.settle(Outcome.COMMITTED)
            await asyncio.sleep(1)
        waited = asyncio.get_running_loop().time() - began
        return waited, str(watching.exception())

    waited, message = simulate(main, 1)
    assert 600 <= waited < 603
    assert "ALLOW_BACKLOG_TO (600 s)" in message
    assert "partition 1 alone has 1 (oldest 60" in message


def test_a_wall_clock_that_is_set_forward_ages_nothing(worklists, event, monkeypatch):
    async def main():
        backlog = Backlog(BacklogLimits(seconds=600), lambda: worklists)
        take(worklists[0], event)
        monkeypatch.setattr(time, "time", lambda: 1e12)
        await asyncio.sleep(3)
        return backlog.look().oldest_seconds

    assert simulate(main, 1) == 3


def test_what_is_done_ahead_of_a_stuck_record_is_no_backlog(worklists, event):
    """One stuck record must not end the process by the number of those that are completed behind it."""

    async def main():
        backlog = Backlog(BacklogLimits(records=10), lambda: worklists)
        take(worklists[0], event)
        for _ in range(1000):
            take(worklists[0], event)[0].settle(Outcome.COMMITTED)
            backlog.look()
        return backlog.statistics()

    now = simulate(main, 1)
    assert (now.records, now.done_ahead) == (1, 1000)


def test_told_to_pause_it_stops_at_four_fifths_and_goes_on_at_three(worklists, event):
    async def main():
        backlog = Backlog(BacklogLimits(records=100, policy="pause"), lambda: worklists)
        items = take(worklists[0], event, 79)
        assert not backlog.look().paused
        items += take(worklists[0], event)
        backlog.look()
        waiting = asyncio.create_task(backlog.room())
        for item in items[:19]:
            item.settle(Outcome.COMMITTED)
        backlog.look()
        await asyncio.sleep(0)
        assert not waiting.done()
        assert backlog.statistics().paused_by == ("records",)
        items[19].settle(Outcome.COMMITTED)
        backlog.look()
        async with asyncio.timeout(1):
            await waiting

    simulate(main, 1)


def test_bytes_pause_whatever_the_policy_and_prefetch_and_done_ahead_count(worklists, event):
    async def main():
        held = 0
        backlog = Backlog(BacklogLimits(bytes=100_000, policy="fail"), lambda: worklists, lambda: held)
        stuck, *others = take(worklists[0], event, 5, body=b"x" * 14_000)
        assert not backlog.look().paused
        held = 10_000
        backlog.look()
        assert backlog.statistics().paused
        assert backlog.statistics().paused_by == ("bytes",)
        for item in others:
            item.settle(Outcome.COMMITTED)
        backlog.look()
        assert not backlog.statistics().paused
        assert backlog.statistics().paused_by == ()
        for _ in range(400):
            take(worklists[0], event)[0].settle(Outcome.COMMITTED)
        backlog.look()
        assert backlog.statistics().paused
        stuck.settle(Outcome.COMMITTED)
        backlog.look()
        assert backlog.statistics().bytes == 0

    simulate(main, 1)
