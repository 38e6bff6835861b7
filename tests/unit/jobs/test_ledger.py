"""The budget ledger: what may be spent when, for any number of tasks."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.jobs.ledger import Allowance, Ledger, LedgerBlob, Page
from service.jobs.watch import Rising
from service.source.connect import connect_blobs
from tests.simulation.loop import simulate


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(1, 500)), min_size=1, max_size=60), st.floats(10, 5000))
def test_no_stretch_of_time_is_given_more_than_the_rate_and_one_lease(steps, rate):
    page, now = Page(), 1000.0
    leases = []
    for wait, amount in steps:
        now += wait
        page, start = page.lease(amount, rate, now)
        leases.append((max(start, now), amount))
    leases.sort()
    for first in range(len(leases)):
        for last in range(first, len(leases)):
            seconds = leases[last][0] - leases[first][0]
            given_away = sum(amount for _, amount in leases[first : last + 1])
            largest = max(amount for _, amount in leases[first : last + 1])
            assert given_away <= rate * (seconds + 0.5) + largest + 1e-6 * given_away


def test_what_is_given_back_can_be_leased_again():
    page, _ = Page().lease(100, 10, 50)
    assert page.give_back(40, 10).given_until == pytest.approx(page.given_until - 4)
    assert page.give_back(40, 10).given == 60


async def test_tasks_that_contend_for_one_blob_keep_the_rate_together(azurite, blob_container_name):
    blobs = connect_blobs(blob_container_name, connection_string=azurite)
    await blobs.make()
    ledger = Ledger(blob_container_name, "ledger.json", "records", 2000.0)
    began = asyncio.get_running_loop().time()

    async def task(number, records):
        allowance = Allowance(LedgerBlob(blobs, ledger.name, random.Random(number)), ledger)
        for _ in range(records // 100):
            await allowance.take(100, 0, 0.0)
        await allowance.give_back(0.0)

    await asyncio.gather(task(1, 4000), *(task(number, 400) for number in range(2, 6)))
    seconds = asyncio.get_running_loop().time() - began
    page, _ = await LedgerBlob(blobs, ledger.name).read()
    await blobs.close()
    # A lease whose answer was lost is taken again: then less is spent than was given, never more.
    assert page.given >= 5600 - 1e-6
    # One lease's worth (half a second) is there at once, and the last lease may be spent as soon as it begins.
    assert seconds >= 5600 / 2000 - 2 * 0.5 - 0.05


async def test_ru_that_were_guessed_wrong_are_settled_with_the_next_lease(azurite, blob_container_name):
    blobs = connect_blobs(blob_container_name, connection_string=azurite)
    await blobs.make()
    ledger = Ledger(blob_container_name, "ledger.json", "ru", 1_000_000.0)
    allowance = Allowance(LedgerBlob(blobs, ledger.name), ledger)
    spent = 0.0
    for _ in range(10):
        await allowance.take(100, 0, spent)
        spent += 100 * 37.0
    await allowance.give_back(spent)
    page, _ = await LedgerBlob(blobs, ledger.name).read()
    await blobs.close()
    assert page.given >= spent - 1e-6


def test_lag_that_rises_three_times_in_a_row_is_falling_behind():
    rising = Rising()
    assert [rising.note(lag) for lag in (5, 6, 7, 8, 9, 9, 10, 11, 12)] == [
        *(False, False, False),
        *(True, True),
        *(False, False, False),
        True,
    ]


class MemoryLedger(LedgerBlob):
    """The ledger without a blob."""

    def __init__(self):
        self.page = Page()

    async def read(self):
        return self.page, None

    async def change(self, change):
        before, self.page = self.page, change(self.page)
        return before


@pytest.mark.parametrize("rate", [0.0, 100.0])
def test_a_hold_that_is_made_longer_while_tasks_wait_holds_them_all_the_time(rate):
    async def main():
        loop = asyncio.get_running_loop()
        blob = MemoryLedger()
        allowance = Allowance(blob, Ledger("c", "l", "records", rate), loop.time)
        taken = []

        async def task():
            while loop.time() < 1_060:
                await allowance.take(10, 0, 0.0)
                taken.append(loop.time())
                await asyncio.sleep(0.1)

        async def watch():
            await asyncio.sleep(10)
            for _ in range(6):  # as the job's watch does: each hold is longer than the time to the next
                await blob.change(lambda page: page.hold(loop.time() + 10))
                await asyncio.sleep(5)

        await asyncio.gather(task(), watch())
        # What was leased before the hold may still be spent, and without a rate it is looked for once a second.
        assert not [at for at in taken if 1_011.1 < at < 1_045]
        assert [at for at in taken if at < 1_010]
        assert [at for at in taken if at > 1_045]

    simulate(main, 1)


@pytest.mark.parametrize("answer_seconds", [0.02, 0.25, 1.0])
@pytest.mark.parametrize("work", [(5000,), (3000, 3000), (5000, 500)])
def test_ru_are_spent_at_the_rate_however_late_their_price_is_known(work, answer_seconds):
    """The price of a record is that of those that were answered: those on their way must not make it look cheaper."""
    rate, price = 3000.0, 5.6

    async def main():
        loop = asyncio.get_running_loop()
        ledger, blob = Ledger("c", "l", "ru", rate), MemoryLedger()
        sent = []

        async def task(records):
            allowance = Allowance(blob, ledger, loop.time)
            known = {"open": 0, "ru": 0.0}

            def answer():
                known["open"] -= 100
                known["ru"] += 100 * price

            for _ in range(records // 100):
                await allowance.take(100, known["open"], known["ru"])
                known["open"] += 100
                sent.append(loop.time())
                loop.call_later(answer_seconds, answer)

        await asyncio.gather(*(task(records) for records in work))
        # Ahead of the rate may be: half a second that nobody used, each task's lease, and what the first answers owe.
        for number, at in enumerate(sent, 1):
            assert number * 100 * price <= rate * (at - sent[0] + 0.5 + 0.5 * len(work) + answer_seconds) + 1
        assert sent[-1] - sent[0] <= sum(work) * price / rate * 1.05

    simulate(main, 1)
