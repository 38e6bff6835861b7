"""What a record costs the consumer, end to end, and what telemetry adds to it."""

import os
import statistics

import pytest

from tests.support.stack import until

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

RECORDS = 40_000


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


def test_telemetry_costs_at_most_3_percent(make_stack, sluice, preload):
    ratios = []
    for _ in range(5):
        without = cpu_per_record(make_stack, sluice, preload, OTEL_SDK_DISABLED="true")
        ratios.append(cpu_per_record(make_stack, sluice, preload) / without)
    print(f"telemetry: {[f'{each:.3f}' for each in ratios]}, median {statistics.median(ratios):.3f}")
    assert statistics.median(ratios) <= 1.03
