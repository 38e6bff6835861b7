"""`sluice plan` against a whole stack: its figures are what the stack charged and stored, and its plans come true."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter

import pytest

from service import options
from service.config import load
from service.local.azurite import free_port
from service.source.connect import connect_hub
from service.source.start import AtEdge
from tests.support.stack import until

RATE = 1_000


def command(stack, *arguments, port=None, as_json=True):
    """The call, and its environment: the consumer to ask is at `port`, if one runs."""
    words = [sys.executable, "-m", "service", "plan", "--env-file", str(stack.env_file), *arguments]
    return [*words, "--json"] if as_json else words, os.environ | {"HTTP_PORT": str(port or free_port())}


def planned(stack, *arguments, port=None, code=0):
    words, environment = command(stack, *arguments, port=port)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def consuming(stack, sluice, records, **settings):
    """A consumer that has committed so many."""
    process = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: process.records()["committed"] >= records, 60, f"{records} committed", process=process)
    return process


def written(process):
    """Records committed so far, and operations that had to be sent again because of a 429."""
    status = process.status()
    return status["records"]["committed"], status["retried"].get("429", 0)


def receivers(stack):
    """Every receiver by its own name, which a new one of the same partition does not have."""
    return {(one.partition, one.epoch, one.name) for one in stack.call(stack.servers.event_hubs.control.receivers)}


def fill(stack, count, key_of):
    """Documents with the keys of `key_of(number)`, spread evenly over the hub's partitions."""

    def append():
        for partition in range(len(stack.hub.partitions)):
            numbers = range(partition, count, len(stack.hub.partitions))
            documents = ({"id": f"doc-{n:08d}", "key": key_of(n), "padding": "x" * 900} for n in numbers)
            stack.hub.append(str(partition), [json.dumps(document).encode() for document in documents])

    stack.call(append)


def half_of_one_key(number):
    return "hot" if number % 8 < 4 else f"key-{number:06d}"


def stored_in_the_fullest_range(stack):
    """By the stack's own routing."""

    def count():
        container = stack.container
        return Counter(container.route(document.key).id for document in container.store.in_order())

    counts = stack.call(count)
    return max(counts.values()) / counts.total()


@pytest.mark.proof
@pytest.mark.alone
def test_a_plan_from_a_running_consumer_holds_its_rate_on_what_it_says_to_buy(make_stack, sluice, preload):
    first = make_stack(physical_partitions=3)
    preload(first, 6_000)
    consumer = consuming(first, sluice, 6_000)
    made = planned(first, "--rate", str(RATE), port=consumer.port)
    charged = first.call(first.container.request_units) / 6_000
    assert made["figures"]["ru_per_record"]["source"] == "measured"
    assert made["figures"]["ru_per_record"]["value"] == pytest.approx(charged, rel=0.02)
    assert made["figures"]["record_bytes"]["value"] == pytest.approx(1024, rel=0.15)
    assert consumer.stop() == 0
    cosmos, settings = made["plan"]["cosmos"], made["plan"]["settings"]
    assert settings["EVENTHUB_RATELIMIT"] == RATE

    second = make_stack(physical_partitions=cosmos["physical_partitions"], throughput=cosmos["throughput"])
    preload(second, 26 * RATE)
    consumer = consuming(second, sluice, 4 * RATE, **settings)
    (before, _), began = written(consumer), time.monotonic()
    time.sleep(10)
    committed, throttled = written(consumer)
    held = (committed - before) / (time.monotonic() - began)
    print(f"planned {cosmos['throughput']} RU/s: held {held:.0f}/s, {throttled} of {committed} operations throttled")
    assert held == pytest.approx(RATE, rel=0.05)
    assert throttled < 0.05 * committed
    # Nor is it more than needed: with four fifths of what the records alone cost, Cosmos refuses and the rate falls.
    second.call(second.container.set_throughput, 0.8 * cosmos["ru"])
    (before, _), began = written(consumer), time.monotonic()
    time.sleep(6)
    committed, refused = written(consumer)
    slower = (committed - before) / (time.monotonic() - began)
    print(f"with {0.8 * cosmos['ru']:.0f} RU/s: {slower:.0f}/s, {refused - throttled} throttled")
    assert refused > throttled
    assert slower < 0.92 * RATE


def test_a_key_with_half_the_records_is_seen_in_what_is_stored(make_stack, sluice):
    stack = make_stack(physical_partitions=3)
    fill(stack, 8_000, half_of_one_key)
    consumer = consuming(stack, sluice, 8_000)
    made = planned(stack, "--rate", str(RATE), port=consumer.port)
    charged = stack.call(stack.container.request_units) / 8_000
    assert made["figures"]["ru_per_record"]["source"] == "measured"
    assert made["figures"]["ru_per_record"]["value"] == pytest.approx(charged, rel=0.02)
    fullest = stored_in_the_fullest_range(stack)
    assert made["figures"]["hottest_key"]["source"] == "measured"
    assert "documents" in made["figures"]["hottest_key"]["how"]
    assert made["plan"]["cosmos"]["physical_partitions"] == 3
    assert made["plan"]["cosmos"]["hottest_share"] == pytest.approx(fullest, rel=0.001)
    assert made["plan"]["cosmos"]["hottest_share"] >= 0.5
    # Where half of all goes to one key, 20,000 RU/s are more than its physical partition has, whatever is bought.
    hot = planned(stack, "--rate", "5000", port=consumer.port, code=3)
    assert not hot["plan"]["reachable"]
    assert "One partition key" in hot["plan"]["obstacles"][0]


def test_without_a_consumer_keys_are_seen_in_a_sample_and_the_rest_is_assumed_and_says_so(make_stack):
    stack = make_stack(physical_partitions=4, throughput=8_000)
    fill(stack, 4_000, half_of_one_key)
    made = planned(stack, "--rate", str(RATE), "--sample", "2000")
    figures = made["figures"]
    assert "2,000 sampled records" in figures["hottest_key"]["how"]
    assert figures["hottest_key"]["value"] == pytest.approx(0.5, abs=0.05)
    assert made["plan"]["cosmos"]["hottest_share"] >= 0.5
    assert figures["ru_per_record"]["source"] == "assumed"
    assert (figures["throughput"]["value"], figures["throughput"]["source"]) == (8_000, "read")
    assert (figures["hub_partitions"]["value"], figures["lag"]["value"]) == (4, 4_000)
    assert receivers(stack) == set()  # nothing is left behind
    blind = planned(stack, "--rate", str(RATE), "--sample", "0")
    assert blind["figures"]["hottest_key"]["source"] == "assumed"


def test_a_consumer_at_work_is_not_disturbed(make_stack, sluice):
    stack = make_stack()
    fill(stack, 40_000, lambda number: f"key-{number % 1000:06d}")
    consumer = consuming(stack, sluice, 500, EVENTHUB_RATELIMIT=500)
    before = receivers(stack)
    assert {partition for partition, _, _ in before} == {"0", "1", "2", "3"}
    made = planned(stack, "--rate", str(RATE), "--sample", "5000", port=consumer.port)
    assert receivers(stack) == before
    status = consumer.status()
    assert (status["leases"]["lost"], status["leases"]["handed_over"], status["faults"]) == (0, 0, [])
    assert sum(row["reopened"] for row in status["partitions"]) == 0
    assert any("no sample of events was read" in note for note in made["notes"])
    assert made["figures"]["workers"]["value"] == 1


async def test_a_reader_that_has_no_lease_is_not_disturbed_either(make_stack):
    """The hub itself refuses the sample: a receiver without an epoch never displaces one that has it."""
    stack = make_stack(partitions=2)
    fill(stack, 2_000, lambda number: f"key-{number % 1000:06d}")
    settings = load(stack.env_file)
    client = connect_hub(options.hub(settings), options.receiver(settings))
    foreign = [client.receiver(partition, 7, AtEdge("earliest")) for partition in ("0", "1")]
    try:
        await asyncio.gather(*(receiver.receive() for receiver in foreign))
        before = receivers(stack)
        assert {(partition, epoch) for partition, epoch, _ in before} == {("0", 7), ("1", 7)}
        made = await asyncio.to_thread(planned, stack, "--rate", str(RATE), "--sample", "1000")
        assert receivers(stack) == before
        assert made["figures"]["hottest_key"]["source"] == "assumed"
        assert any("no sample of events was read" in note for note in made["notes"])
        assert [bool(await receiver.receive()) for receiver in foreign] == [True, True]
    finally:
        for receiver in foreign:
            await receiver.close()
        await client.close()


@pytest.mark.proof
@pytest.mark.alone
def test_the_lag_takes_as_long_as_it_says(make_stack, sluice, preload):
    stack = make_stack(physical_partitions=2, throughput=6_000)
    preload(stack, 1_000)
    consumer = consuming(stack, sluice, 1_000)
    ru = planned(stack, port=consumer.port)["figures"]["ru_per_record"]["value"]
    assert consumer.stop() == 0
    preload(stack, 12_000, first=1_000)
    said = planned(stack, "--ru-per-record", str(ru))
    assert said["plan"] is None
    assert said["figures"]["lag"]["value"] == 12_000
    assert "RU/s" in said["reach"]["limits"][0]["what"]
    consumer = consuming(stack, sluice, 1)
    began = time.monotonic()
    until(lambda: consumer.records()["committed"] >= 12_000, 90, "all committed", process=consumer)
    took = time.monotonic() - began
    print(f"said {said['reach']['lag_seconds']:.1f} s, took {took:.1f} s")
    assert 0.75 < took / said["reach"]["lag_seconds"] < 1.5


def test_it_reads_as_plain_lines_with_settings_to_copy(make_stack):
    stack = make_stack(throughput=4_000)
    words, environment = command(stack, "--records", "4200000", "--within", "100s", as_json=False)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "\ncannot be reached: The busiest of the hub's 4 partitions" in done.stdout
    assert "settings:" not in done.stdout
    words, environment = command(stack, "--rate", "1000", as_json=False)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[lines.index("settings:") + 1 :][:5] == [
        "EVENTHUB_RATELIMIT=1000",
        "EVENTHUB_RATELIMIT_SCOPE=fleet",
        "WORKERS=1",
        "COSMOS_RULIMIT=7200",
        "# replicas: 1",
    ]
    assert any(line.startswith("what is there now carries") for line in lines)
    assert "no consumer answers" in lines[-1] or "no sample" in lines[-1]
