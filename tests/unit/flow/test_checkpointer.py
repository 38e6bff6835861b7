"""Checkpoints at an interval, on a virtual clock: a write that fails or hangs is nobody else's trouble."""

import asyncio

import pytest

from service.errors import LeaseLost, Retry
from service.flow.checkpointer import Checkpointer
from tests.simulation.loop import simulate


class Flow:
    """A partition that notes when it was asked, and then does what it is told."""

    def __init__(self, ownership, *answers):
        self.ownership = ownership
        self.asked = []
        self._answers = list(answers)

    async def checkpoint(self):
        self.asked.append(asyncio.get_running_loop().time() - 1_000)
        answer = self._answers.pop(0) if self._answers else 0
        if isinstance(answer, Exception):
            raise answer
        await asyncio.sleep(answer)


@pytest.fixture
def run(ownership):
    def run(*flows, seconds=22):
        async def main():
            checkpointer = Checkpointer(lambda: flows, 5.0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(seconds):
                    await checkpointer.run()
            return checkpointer.failed

        return simulate(main, 1)

    return run


def test_every_partition_is_asked_at_every_interval(run, ownership):
    flows = [Flow(ownership), Flow(ownership)]
    run(*flows)
    assert [flow.asked for flow in flows] == [[5, 10, 15, 20]] * 2


def test_a_failing_write_is_tried_again_and_counted_and_ends_nothing(run, ownership):
    failing = Flow(ownership, Retry("storage is away"), LeaseLost("0", "another has it"))
    fine = Flow(ownership)
    assert run(failing, fine) == 1
    assert failing.asked == fine.asked == [5, 10, 15, 20]


def test_a_write_that_takes_long_delays_no_other_partition(run, ownership):
    slow, fine = Flow(ownership, 12), Flow(ownership)
    run(slow, fine)
    assert slow.asked == [5, 20]
    assert fine.asked == [5, 10, 15, 20]
