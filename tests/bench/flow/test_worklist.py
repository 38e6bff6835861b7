"""What the WorkList costs: time per record, flat in its length, and memory per record in backlog."""

import subprocess
import sys
import time

import pytest

from service.flow.worklist import Frontier, WorkItem, WorkList
from service.sink.outcome import Outcome
from service.source.events import Event, Hub, PartitionId
from service.source.leases import Ownership

pytestmark = pytest.mark.bench


def microseconds(items):
    """Add, complete out of order, look at the frontier: per record."""

    async def write(checkpoint):
        pass

    held = Ownership(Hub("n", "h", "g", 1), PartitionId("0"), 1, None, 0.0, lambda: 0.0, write)
    worklist = WorkList(held, Frontier(-1, None))
    events = [Event(number, "0", 0, b"", {}) for number in range(items)]
    began = time.process_time()
    made = [WorkItem(worklist, event, 1, 0.0) for event in events]
    for start in range(0, items, 100):
        for item in reversed(made[start : start + 100]):
            item.settle(Outcome.COMMITTED)
        worklist.frontier  # noqa: B018 - its share of a checkpoint
    spent = time.process_time() - began
    assert worklist.frontier.sequence == items - 1
    return spent / items * 1e6


def test_at_most_2_microseconds_per_record_and_flat():
    figures = {items: min(microseconds(items) for _ in range(3)) for items in (1_000, 10_000, 100_000, 1_000_000)}
    print({items: f"{figure:.2f} us" for items, figure in figures.items()})
    assert max(figures.values()) <= 2.0
    assert figures[1_000_000] <= 2 * figures[1_000] + 0.2


def test_less_than_3_kb_of_memory_per_1_kb_record_in_backlog():
    script = (
        "import psutil\n"
        "from tests.bench.flow.test_worklist import *\n"
        "async def write(checkpoint): pass\n"
        "held = Ownership(Hub('n', 'h', 'g', 1), PartitionId('0'), 1, None, 0.0, lambda: 0.0, write)\n"
        "worklist = WorkList(held, Frontier(-1, None))\n"
        "before = psutil.Process().memory_info().rss\n"
        "kept = [WorkItem(worklist, Event(n, str(n), 0, b'x' * 1024 + str(n).encode(), {}), 1, 0.0)"
        " for n in range(100000)]\n"
        "print((psutil.Process().memory_info().rss - before) / 100000)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    print(f"{float(answer.stdout):.0f} bytes per record in backlog, before the sink's own document")
    assert 1024 < float(answer.stdout) < 3 * 1024
