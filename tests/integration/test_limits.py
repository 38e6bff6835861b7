"""Too much backlog, a stuck record, big events, dry runs: what a person at night has to rely on."""

import time

import psutil
import pytest

from tests.support.stack import until


def committed(process):
    return process.records()["committed"]


def frontier(process):
    return {row["id"]: row["checkpoint"]["sequence"] for row in process.status()["partitions"]}


def test_a_throttled_cosmos_ends_the_process_at_the_limit_with_the_leases_free(make_stack, sluice, preload):
    stack = make_stack(throughput=400, physical_partitions=1)
    preload(stack, 20_000)
    settings = {"ALLOW_BACKLOG_OF": 3000, "CHECKPOINT_INTERVAL": "1s"}
    first = sluice("run", "--env-file", str(stack.env_file), **settings)
    assert first.process.wait(60) == 70
    message = first.output()
    assert "ALLOW_BACKLOG_OF (3000)" in message
    assert "BACKLOG_POLICY=pause" in message
    assert "Traceback" not in message
    stack.call(stack.container.set_throughput, 0)
    began = time.monotonic()
    second = sluice("run", "--env-file", str(stack.env_file))
    until(
        lambda: len((second.status() or {"partitions": []})["partitions"]) == 4, 14, "leases were free", process=second
    )
    assert time.monotonic() - began < 14
    until(lambda: len(stack.documents()) == 20_000, 60, "all documents", every=0.3, process=second)


def test_told_to_pause_it_waits_and_recovers(make_stack, sluice, preload):
    stack = make_stack(throughput=400, physical_partitions=1)
    preload(stack, 20_000)
    settings = {"ALLOW_BACKLOG_OF": 3000, "BACKLOG_POLICY": "pause"}
    process = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: process.status() and process.status()["backlog"]["paused"], 60, "paused", process=process)
    assert process.status()["backlog"]["records"] <= 3000
    assert process.get("/healthz")[0] == 200
    stack.call(stack.container.set_throughput, 0)
    until(lambda: committed(process) == 20_000, 60, "recovered", process=process)


def test_a_range_that_refused_all_it_was_sent_is_used_at_once_when_it_may_be(make_stack, sluice, preload):
    """Nothing was accepted, so nothing is known of its rate; and nothing more comes that would make the sink look."""
    stack = make_stack(physical_partitions=1)
    (only,) = stack.call(lambda: [each.id for each in stack.container.ranges.ranges])
    stack.call(stack.container.throttle_range, only)
    preload(stack, 250)
    process = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: process.records().get("retried", 0) > 100, 60, "throttled", process=process)
    stack.call(lambda: stack.container.throttle_range(only, on=False))
    until(lambda: committed(process) == 250, 20, "all committed", process=process)


def test_one_stuck_record_holds_the_frontier_and_nothing_else(make_stack, sluice, preload):
    stack = make_stack(partitions=2)
    stuck = "doc-00000100"
    stack.call(lambda: stack.container.faults.fail_next(10**6, 449, scope="operation", document_id=stuck))
    preload(stack, 20_000)
    settings = {"CHECKPOINT_INTERVAL": "500ms", "COSMOS_RETRY_WAIT": "500ms", "SHUTDOWN_DEADLINE": "6s"}
    process = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: committed(process) == 19_999, 60, "all others", process=process)
    until(lambda: max(frontier(process).values()) == 9_999, 10, "the other partition is through", process=process)
    assert min(frontier(process).values()) < 100
    assert sum(row["done_ahead"] for row in process.status()["partitions"]) > 9_000
    # A restart while it is stuck: what the completion map knows is not done again.
    assert process.stop() == 0
    stack.call(stack.container.write_log.clear)
    stack.call(stack.container.faults.clear)
    second = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: committed(second) == 1, 60, "the stuck one", process=second)
    until(lambda: min(frontier(second).values()) == 9_999, 20, "the checkpoint jumps", process=second)
    assert second.records()["received"] == 1
    assert second.records()["skipped"] > 9_000


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_a_record_stuck_for_a_minute_at_3000_a_second_costs_the_others_nothing(make_stack, sluice, preload):
    rate, seconds = 3_000, 60
    stack = make_stack(partitions=2)
    stuck = "doc-00006000"
    stack.call(lambda: stack.container.faults.fail_next(10**6, 449, scope="operation", document_id=stuck))
    count = rate * (seconds + 15)
    preload(stack, count)
    process = sluice("run", "--env-file", str(stack.env_file), EVENTHUB_RATELIMIT=rate)
    until(lambda: stack.call(lambda: stack.container.faults.happened), 60, "stuck", process=process)
    began, before = time.monotonic(), committed(process)
    memory = []
    while time.monotonic() - began < seconds:
        time.sleep(1)
        memory.append(psutil.Process(process.process.pid).memory_info().rss)
        waits, moves = frontier(process)["0"], frontier(process)["1"]
        assert waits < 3_000
    passed = time.monotonic() - began
    others = committed(process) - before
    # A batch may wait for a second, and every tenth of a second a period ends.
    assert others >= rate * (passed - 2)
    assert moves >= rate * (passed - 10) / 2
    ahead = sum(row["done_ahead"] for row in process.status()["partitions"])
    assert ahead >= rate * (passed - 3) / 2
    grown = max(memory) - memory[0]
    print(f"{others} others committed in {passed:.0f} s, {ahead} done ahead, memory grew by {grown / 1e6:.0f} MB")
    assert grown < 100e6  # with their bodies they would take more than 200 MB
    stack.call(stack.container.faults.clear)
    until(lambda: frontier(process)["0"] >= ahead, 15, "the checkpoint jumps", process=process)
    until(lambda: committed(process) == count, 60, "all of them", process=process)


@pytest.mark.timeout(300)
def test_50_kb_events_within_1_gib_pause_intake_and_do_not_end_the_process(make_stack, sluice, preload):
    """With every setting as it comes. What is preloaded, and what it becomes, is several times the memory there is."""
    limit = 1024**3
    stack = make_stack(partitions=16, throughput=400, physical_partitions=1)
    preload(stack, 24_000, size=50_000)
    process = sluice("run", "--env-file", str(stack.env_file), data_bytes=limit)
    until(lambda: process.status() and process.status()["backlog"]["paused"], 90, "paused", process=process)
    time.sleep(5)
    assert process.status()["backlog"]["paused"]
    print(f"peak {process.peak_bytes() / 1e6:.0f} MB, backlog {process.status()['backlog']['bytes'] / 1e6:.0f} MB")
    assert process.peak_bytes() < 0.75 * limit
    # Under way again it takes more, and stays within the limit.
    stack.call(stack.container.set_throughput, 0)
    already = committed(process)
    until(lambda: committed(process) > already + 10_000, 90, "recovered", process=process)
    assert process.peak_bytes() < 0.75 * limit
    assert process.stop() == 0


def test_a_dry_run_counts_and_writes_nothing(make_stack, sluice, preload):
    stack = make_stack()
    stack.call(stack.hub.add_consumer_group, "dry")
    preload(stack, 1_000)
    stack.call(stack.hub.append, "0", [b"no json"])
    process = sluice("run", "--env-file", str(stack.env_file), COSMOS_WRITE="no", EVENTHUB_CONSUMERGROUP="dry")
    until(lambda: committed(process) == 1_000, 60, "counted", process=process)
    assert process.records()["failed"] == 1
    assert process.stop() == 0
    assert stack.documents() == []


def test_a_flood_of_poison_stops_with_exit_75_and_the_checkpoint_before_it(make_stack, sluice, preload):
    stack = make_stack(partitions=1)
    preload(stack, 500)
    stack.call(stack.hub.append, "0", [b"rubbish"] * 3000)
    settings = {"DEADLETTER_MAX_CONSECUTIVE": 200, "CHECKPOINT_INTERVAL": "500ms"}
    process = sluice("run", "--env-file", str(stack.env_file), **settings)
    assert process.process.wait(60) == 75
    assert "Traceback" not in process.output()
    again = sluice("run", "--env-file", str(stack.env_file), **settings)
    assert again.process.wait(60) == 75
    # Nothing was passed over: with limits that allow the flood, every record is accounted for.
    settings = {"DEADLETTER_MAX_CONSECUTIVE": 10_000, "DEADLETTER_MAX_RATIO": 1.0}
    last = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: last.records()["failed"] == 3000, 60, "all of the flood", process=last)
    # A lane that is not full may still wait when the last dead letter is written.
    until(lambda: len(stack.documents()) == 500, 60, "all that is good", process=last)


@pytest.mark.parametrize(
    ("settings", "good", "rubbish", "code"),
    [({"ALLOW_BACKLOG_OF": 3000}, 20_000, 0, 70), ({"DEADLETTER_MAX_CONSECUTIVE": 50}, 0, 500, 75)],
)
def test_a_limit_that_one_worker_reaches_ends_the_replica(make_stack, sluice, preload, settings, good, rubbish, code):
    stack = make_stack(throughput=400, physical_partitions=1)
    stack.call(stack.hub.append, "0", [b"rubbish"] * rubbish)
    preload(stack, good)
    process = sluice("run", "--env-file", str(stack.env_file), WORKERS=2, **settings)
    assert process.process.wait(90) == code
    message = process.output()
    assert next(iter(settings)) in message
    assert "started again" not in message
    assert "Traceback" not in message


def test_metrics_agree_exactly_with_cosmos_and_the_dead_letters(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 50_000)
    stack.call(stack.hub.append, "1", [b"rubbish"] * 7)
    process = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: committed(process) + process.records()["failed"] == 50_007, 90, "done", process=process)
    page = process.get("/metrics")[1].decode()
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert float(values["sluice_records_committed_total"]) == len(stack.documents()) == 50_000
    assert float(values['sluice_records_dead_lettered_total{reason="the body is not JSON"}']) == 7
    assert float(values["sluice_records_received_total"]) == 50_007
    assert float(values["sluice_batches_waited_seconds_total"]) > 0
    assert float(values["sluice_enqueue_to_commit_seconds_count"]) > 100


def test_no_secret_is_ever_shown(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 100)
    process = sluice("run", "--env-file", str(stack.env_file), LOG_LEVEL="debug")
    until(lambda: committed(process) == 100, 60, "done", process=process)
    shown = process.output() + "".join(process.get(path)[1].decode() for path in ("/status", "/metrics", "/healthz"))
    assert process.stop() == 0
    shown += process.output()
    text = stack.env_file.read_text()
    for name in ("SharedAccessKey=", "AccountKey="):
        for part in text.split(name)[1:]:
            assert part.split(";")[0].strip() not in shown
