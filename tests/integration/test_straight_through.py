"""From the hub into Cosmos: the whole service as a process against the whole stack."""

import asyncio
import json
import signal
import time

import pytest

from service import options
from service.config import load
from service.flow import completion_map
from service.source import lease_document
from service.source.connect import connect_blobs, connect_hub
from service.source.events import Hub
from service.source.layout import lease_name
from tests.support.stack import until

RECORDS = 50_000
SHORT_LEASES = {"LEASE_DURATION": "15s", "LEASE_RENEW": "5s"}


def committed(process):
    return process.records()["committed"]


def checkpoints(process):
    """The checkpointed sequence of each partition, as /status has it."""
    status = process.status() or {"partitions": []}
    return {row["id"]: row["checkpoint"]["sequence"] for row in status["partitions"] if row["checkpoint"]}


def same(stack, expected):
    """Cosmos holds exactly these documents: no more, no less, in their last state."""
    found = {document["id"]: document["number"] for document in stack.documents()}
    return found == {name: body["number"] for name, body in expected.items()}


@pytest.mark.alone
def test_fifty_thousand_records_arrive_exactly_and_cheaply(make_stack, sluice, preload):
    stack = make_stack(partitions=4, physical_partitions=4)
    expected = preload(stack, RECORDS, keys=20_000)
    consumer = sluice("run", "--env-file", str(stack.env_file))
    until(consumer.status, 60, "status", process=consumer)
    before = consumer.cpu_seconds()
    until(lambda: committed(consumer) >= RECORDS, 110, "all committed", every=0.2, process=consumer)
    spent = (consumer.cpu_seconds() - before) / RECORDS * 1e6
    assert consumer.stop() == 0
    assert same(stack, expected)
    document = stack.documents()[0]
    assert set(document["_sluice"]) >= {"incarnation", "partition", "sequence"}
    print(f"\nCPU of the consumer: {spent:.0f} us per 1 KB record")
    assert spent <= 150


def test_a_kill_in_the_middle_loses_nothing_and_only_what_no_checkpoint_knew_is_redone(make_stack, sluice, preload):
    stack = make_stack(partitions=4, physical_partitions=4)
    expected = preload(stack, 30_000, keys=5_000)
    # One record is stuck, so that its partition's checkpoint is a low frontier and a long completion map.
    stuck = "doc-00000400"
    stack.call(lambda: stack.container.faults.fail_next(10**6, 449, scope="operation", document_id=stuck))
    settings = {"CHECKPOINT_INTERVAL": "2s", "EVENTHUB_RATELIMIT": 3000, "COSMOS_RETRY_WAIT": "500ms", **SHORT_LEASES}
    first = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: committed(first) >= 13_000, 60, "some committed", process=first)
    seen = checkpoints(first)
    assert max(seen.values()) > 0
    first.signal(signal.SIGKILL)
    first.process.wait()
    time.sleep(1)  # what was on its way when it was killed may still land
    writes = stack.call(lambda: {write.id for write in stack.container.write_log.committed()})
    known = asyncio.run(_known(stack))
    assert sum(len(done_ahead) for _, done_ahead in known.values()) > 1_000
    durable = {name for name, body in expected.items() if _done(known, body["number"])}
    assert durable < writes
    stack.call(stack.container.write_log.clear)
    stack.call(stack.container.faults.clear)
    second = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: len(checkpoints(second)) == 4, 60, "all partitions taken over", process=second)
    assert all(checkpoints(second)[partition] >= sequence for partition, sequence in seen.items())
    until(lambda: committed(second) == len(expected) - len(durable), 60, "the rest", every=0.3, process=second)
    assert second.stop() == 0
    again = stack.call(lambda: [write.id for write in stack.container.write_log.committed()])
    redone = writes & set(again)
    print(
        f"{len(durable)} known to the checkpoints, {len(writes - durable)} written and not known, {len(redone)} redone"
    )
    assert sorted(again) == sorted(set(expected) - durable)
    assert redone == writes - durable
    assert same(stack, expected)


async def _known(stack):
    """What the checkpoints in the blobs say, by partition: the frontier, and all that is done ahead of it."""
    settings = load(stack.env_file)
    client = connect_hub(options.hub(settings), options.receiver(settings))
    created_ms = (await client.describe()).created_ms
    hub = Hub(client.namespace, client.name, settings.eventhub_consumergroup, created_ms)
    blobs = connect_blobs(settings.blob_container, **options.blob_account(settings))
    found = {}
    for partition in range(len(stack.hub.partitions)):
        blob = await blobs.get(lease_name(hub, str(partition)))
        at = lease_document.decode(str(partition), blob.body).stored.checkpoint
        found[partition] = at.sequence, completion_map.decode(hub, str(partition), at.sequence, at.done_ahead)
    await blobs.close()
    await client.close()
    return found


def _done(known, number, keys=5_000):
    """Whether a checkpoint has the document of this number; `preload` spreads them by key."""
    partition = number % keys % len(known)
    sequence = number // len(known)
    frontier, done_ahead = known[partition]
    return sequence <= frontier or sequence in done_ahead


def test_throttled_to_half_it_finishes_by_itself(make_stack, sluice, preload):
    # About 6 RU a record: 2,000 records/s wanted, 1,000 a second sold.
    stack = make_stack(partitions=4, physical_partitions=2, throughput=6_000)
    expected = preload(stack, 10_000, keys=5_000)
    consumer = sluice("run", "--env-file", str(stack.env_file), EVENTHUB_RATELIMIT=2000)
    until(lambda: committed(consumer) >= 10_000, 100, "all committed", every=0.2, process=consumer)
    assert consumer.records()["retried"] > 0
    assert consumer.records()["failed"] == 0
    assert consumer.status()["slots"]["used"] == 10_000  # retries pay none
    assert consumer.stop() == 0
    assert same(stack, expected)


def test_a_hub_may_have_more_than_32_partitions(make_stack, sluice, preload):
    stack = make_stack(partitions=40)
    expected = preload(stack, 4_000, keys=4_000)
    consumer = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: committed(consumer) == 4_000, 60, "all committed", every=0.2, process=consumer)
    assert consumer.stop() == 0
    assert same(stack, expected)


def test_two_hosts_share_the_partitions_and_each_has_one_reader(make_stack, sluice, preload):
    stack = make_stack(partitions=4, physical_partitions=2)
    settings = {"LEASE_DURATION": "15s", "LEASE_RENEW": "2s", "EVENTHUB_RATELIMIT": 1000}
    expected = preload(stack, 20_000, keys=5_000)
    first = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: len(checkpoints(first)) == 4, 60, "the first has all", process=first)
    second = sluice("run", "--env-file", str(stack.env_file), **settings)

    def shared():
        mine, theirs = set(checkpoints(first)), set(checkpoints(second))
        return len(mine) == len(theirs) == 2 and not mine & theirs

    until(shared, 60, "two and two", process=second)

    def readers():
        groups = [partition.group("$Default") for partition in stack.hub.partitions]
        return stack.call(lambda: [len(group.receivers) for group in groups])

    def each_has_one():
        counts = readers()
        assert max(counts) <= 1, "two readers on one partition"
        return min(counts) == 1

    until(each_has_one, 30, "every partition is read", process=second)
    until(lambda: len(stack.documents()) == 20_000, 60, "all documents", every=0.3, process=second)
    assert first.stop() == 0
    assert second.stop() == 0
    assert same(stack, expected)


def test_the_progress_line_of_the_original_sample_comes_every_five_seconds(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 100)
    consumer = sluice("run", "--env-file", str(stack.env_file))
    line = "100 successes, 0 failures, 0 retries after 5 seconds, avg RU cost is"
    until(lambda: "100 successes, 0 failures, 0 retries after" in consumer.output(), 60, line, process=consumer)


def test_a_clean_restart_redoes_nothing(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 3_000)
    first = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: committed(first) == 3_000, 60, "all committed", process=first)
    assert first.stop() == 0
    second = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: len(checkpoints(second)) == 4, 60, "partitions taken at once", process=second)
    preload(stack, 10, first=5_000)
    until(lambda: second.records()["received"] >= 10, 60, "the new ones", process=second)
    assert second.records()["received"] == 10


def test_poison_goes_to_the_dead_letters_and_holds_up_nobody(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 500)
    stack.call(stack.hub.append, "0", [b"not json", b"\xff\xfe", b"[1]", b'{"id": "a/b", "key": "k"}'])
    preload(stack, 500, first=500)
    consumer = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: consumer.records()["failed"] == 4, 60, "four dead letters", process=consumer)
    until(lambda: committed(consumer) == 1000, 60, "the good ones", process=consumer)
    assert consumer.stop() == 0
    assert len(stack.documents()) == 1000


def test_sigterm_under_load_ends_in_order_with_everything_checkpointed(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 20_000)
    settings = {"EVENTHUB_RATELIMIT": 3000, "CHECKPOINT_INTERVAL": "60s"}
    first = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: committed(first) > 3000, 60, "under load", process=first)
    began = time.monotonic()
    assert first.stop() == 0
    assert time.monotonic() - began < 20
    written = len(stack.documents())
    stack.call(stack.container.write_log.clear)
    second = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: len(stack.documents()) == 20_000, 60, "the rest", every=0.3, process=second)
    assert second.records()["received"] == 20_000 - written


def test_status_has_the_names_that_other_programs_read(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 100)
    consumer = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: committed(consumer) == 100, 60, "committed", process=consumer)
    status = consumer.status()
    assert set(status) >= {"host", "records", "ru", "rate", "backlog", "partitions"}
    assert set(status["records"]) >= {"received", "committed", "superseded", "dropped", "failed", "retried"}
    assert set(status["backlog"]) >= {"items", "bytes", "oldest_seconds"}
    for row in status["partitions"]:
        assert set(row) >= {"id", "epoch", "checkpoint", "lag", "backlog", "done_ahead"}
        assert set(row["checkpoint"]) == {"sequence", "offset"}
    assert consumer.get("/healthz")[0] == 200
    assert json.loads(consumer.get("/readyz")[1]) == {"status": "ready"}


def test_everything_over_tls_with_capture(make_stack, sluice):
    stack = make_stack(tls=True, capture_seconds=1.0)
    sender = sluice("produce", "--env-file", str(stack.env_file), "--count", "300")
    assert sender.process.wait(60) == 0, sender.output()
    consumer = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: committed(consumer) == 300, 60, "all committed", process=consumer)
    assert consumer.stop() == 0
    assert len(stack.documents()) == 300


def test_what_the_stack_keeps_in_a_folder_outlives_it(tmp_path, sluice):
    folder = tmp_path / "data"
    for round_ in (1, 2):
        env_file = tmp_path / f"{round_}.env"
        up = sluice("local", "up", "--env-file", str(env_file), "--data", str(folder))
        until(env_file.exists, 60, "ready", process=up)
        sender = sluice("produce", "--env-file", str(env_file), "--count", "100", "--seed", str(round_))
        assert sender.process.wait(60) == 0, sender.output()
        consumer = sluice("run", "--env-file", str(env_file))
        until(lambda consumer=consumer: committed(consumer) == 100, 60, "only the new ones", process=consumer)
        assert consumer.stop() == 0
        assert up.stop() == 0
