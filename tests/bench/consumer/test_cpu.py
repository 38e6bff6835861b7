"""What a record costs the consumer, end to end, and what telemetry adds to it."""

import os
import statistics
import time

import pytest

from tests.support.stack import until

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

RECORDS = 40_000
RATE = 2_000
WINDOW_SECONDS = 15
SCRAPE_SECONDS = 5
"""Prometheus is mostly told to ask every 15 to 60 seconds."""


def cpu_per_record(make_stack, sluice, preload, **settings):
    stack = make_stack(partitions=4, physical_partitions=4)
    preload(stack, RECORDS, keys=20_000)
    process = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(process.status, 60, "status", process=process)
    before = process.cpu_seconds()
    until(lambda: process.records()["committed"] >= RECORDS, 300, "all committed", every=0.25, process=process)
    spent = process.cpu_seconds() - before
    assert process.stop() == 0
    return spent / RECORDS * 1e6


def test_at_most_100_microseconds_per_record_end_to_end(make_stack, sluice, preload):
    figures = [cpu_per_record(make_stack, sluice, preload) for _ in range(3)]
    print(f"consumer: {[f'{each:.0f}' for each in figures]} us of CPU per 1 KB record (load {os.getloadavg()[0]:.1f})")
    assert min(figures) <= 100


def test_telemetry_costs_at_most_3_percent(make_stack, sluice, preload, otlp):
    """Two consumers side by side read the same hub on the same core: whatever else happens costs both the same."""
    quiet = {"EVENTHUB_CONSUMERGROUP": "quiet", "OTEL_SDK_DISABLED": "true"}
    *others, core = os.sched_getaffinity(0)
    os.sched_setaffinity(0, others or {core})
    ratios = []
    for turn in range(5):
        stack = make_stack(partitions=4, physical_partitions=4)
        stack.call(stack.hub.add_consumer_group, "quiet")
        preload(stack, RECORDS, keys=20_000)
        kinds = [otlp.settings, quiet] if turn % 2 else [quiet, otlp.settings]
        pair = [sluice("run", "--env-file", str(stack.env_file), EVENTHUB_RATELIMIT=RATE, **kind) for kind in kinds]
        for process in pair:
            os.sched_setaffinity(process.process.pid, {core})
        for process in pair:
            until(lambda process=process: process.records()["committed"] > 2 * RATE, 60, "at work", process=process)
        before = [spent(process) for process in pair]
        for _ in range(WINDOW_SECONDS // SCRAPE_SECONDS):
            time.sleep(SCRAPE_SECONDS)
            for process in pair:
                process.get("/metrics")
        cost = [
            (cpu - cpu_before) / (records - records_before)
            for (cpu, records), (cpu_before, records_before) in zip(map(spent, pair), before, strict=True)
        ]
        ratios.append(cost[0] / cost[1] if turn % 2 else cost[1] / cost[0])
        assert [process.stop() for process in pair] == [0, 0]
    print(f"telemetry: {[f'{each:.3f}' for each in ratios]}, median {statistics.median(ratios):.3f}")
    assert statistics.median(ratios) <= 1.03


def spent(process):
    """Seconds of CPU so far, and for how many records."""
    return process.cpu_seconds(), process.records()["committed"]
