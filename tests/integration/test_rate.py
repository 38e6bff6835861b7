"""The rate of whole processes: one, several workers, several hosts."""

import signal
import time
from collections import Counter

import pytest

from tests.support.stack import until

SECONDS = 10


def used(process):
    return (process.status() or {"slots": {"used": 0}})["slots"]["used"]


def measured(*processes):
    """Slots used per second by all of them together, over SECONDS."""
    before, began = sum(map(used, processes)), time.monotonic()
    time.sleep(SECONDS)
    return (sum(map(used, processes)) - before) / (time.monotonic() - began)


@pytest.mark.alone
def test_one_process_takes_exactly_its_rate(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 15_000)
    process = sluice("run", "--env-file", str(stack.env_file), EVENTHUB_RATELIMIT=955)
    until(lambda: used(process) > 2000, 60, "under way", process=process)
    assert abs(measured(process) - 955) < 955 * 0.02


@pytest.mark.alone
def test_two_workers_take_the_rate_of_one_replica_and_are_seen_as_one(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 18_000)
    process = sluice("run", "--env-file", str(stack.env_file), EVENTHUB_RATELIMIT=800, WORKERS=2, LEASE_RENEW="2s")

    def balanced():
        """Two partitions each, all of them hungry, and each worker with its half of the rate: no more moves."""
        status = process.status() or {}
        held = Counter(row["host"] for row in status.get("partitions", []))
        return list(held.values()) == [2, 2] and status["rate_limit"] == 800 and status["slots"]["waiting"] == 4

    until(balanced, 60, "both at work", process=process)
    assert abs(measured(process) - 800) < 800 * 0.02
    status = process.status()
    assert [row["id"] for row in status["partitions"]] == ["0", "1", "2", "3"]
    page = process.get("/metrics")[1].decode()
    committed = next(line for line in page.splitlines() if line.startswith("sluice_records_committed_total"))
    assert float(committed.split()[1]) >= status["records"]["committed"]
    until(lambda: process.records()["committed"] == 18_000, 60, "all committed", process=process)
    assert process.stop() == 0
    assert len(stack.documents()) == 18_000


def test_workers_that_drain_are_still_seen(make_stack, sluice, preload):
    stack = make_stack(throughput=400, physical_partitions=1)
    preload(stack, 3_000)
    process = sluice("run", "--env-file", str(stack.env_file), WORKERS=2, SHUTDOWN_DEADLINE="6s")
    until(lambda: (process.status() or {}).get("records", {}).get("received") == 3_000, 60, "taken", process=process)
    process.signal(signal.SIGTERM)
    status = until(
        lambda: (process.status() or {}).get("draining") and process.status(), 5, "draining", process=process
    )
    assert (status["not_ready"], status["records"]["received"]) == ("draining", 3_000)
    assert 0 < status["backlog"]["items"] < 3_000
    assert process.process.wait(20) == 0


def test_a_crashed_worker_is_started_again(make_stack, sluice, preload):
    import psutil

    stack = make_stack()
    settings = {"WORKERS": 2, "LEASE_DURATION": "15s", "LEASE_RENEW": "2s"}
    process = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: process.status() and len(process.status().get("hosts", [])) == 2, 60, "two workers", process=process)
    victim = psutil.Process(process.process.pid).children()[0]
    victim.send_signal(signal.SIGKILL)
    until(lambda: "started again" in process.output(), 30, "noticed", process=process)
    preload(stack, 2_000)
    until(lambda: len(stack.documents()) == 2_000, 60, "all documents", every=0.3, process=process)
    until(lambda: len(process.status()["hosts"]) == 2, 30, "two again", process=process)


@pytest.mark.alone
def test_two_hosts_in_fleet_scope_are_never_above_n_and_at_it_one_renewal_after_the_last_move(
    make_stack, sluice, preload
):
    stack = make_stack()
    rate, renew, period = 1000, 2.0, 0.1
    preload(stack, 60_000)
    settings = {"EVENTHUB_RATELIMIT": rate, "EVENTHUB_RATELIMIT_SCOPE": "fleet", "LEASE_RENEW": f"{renew:g}s"}
    first = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: used(first) > 1000, 60, "the first at work", process=first)
    second = sluice("run", "--env-file", str(stack.env_file), **settings)

    def look():
        """Slots used by both, certainly between these two times."""
        began = time.monotonic()
        slots = used(first) + used(second)
        return began, slots, time.monotonic()

    def never_above(earlier):
        (began, before, _), (_, now, ended) = earlier, look()
        # A process that could not run for a while makes up for its late ticks: each host may be one period ahead.
        assert now - before <= rate * (ended - began + 2 * period)

    start = look()

    def balanced():
        never_above(start)
        held = [len((process.status() or {"partitions": []})["partitions"]) for process in (first, second)]
        return held == [2, 2]

    until(balanced, 60, "two and two", process=second)
    time.sleep(renew)
    _, before, began = settled = look()
    for _ in range(20):
        time.sleep(1)
        never_above(settled)
    ended, now, _ = look()
    assert now - before >= 0.98 * rate * (ended - began)


def test_sighup_takes_the_new_rate_from_the_file(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 20_000)
    stack.env_file.write_text(stack.env_file.read_text() + "EVENTHUB_RATELIMIT=100\n")
    process = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: used(process) > 200, 60, "under way", process=process)
    stack.env_file.write_text(stack.env_file.read_text().replace("RATELIMIT=100", "RATELIMIT=2000"))
    process.signal(signal.SIGHUP)
    until(lambda: process.status()["rate_limit"] == 2000, 30, "the new rate", process=process)
    until(lambda: used(process) > 4000, 60, "faster", process=process)
