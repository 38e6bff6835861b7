"""The local stack must never be what is measured: its CPU per document, and its start."""

import asyncio
import os
import time

import orjson
import psutil
import pytest

from tests.support.stack import Process, until

pytestmark = pytest.mark.bench

DOCUMENTS = 50_000
ROUNDS = 3
"""The best counts: what the neighbours of a shared machine take away is not the server's cost."""


def bodies(count, part):
    padding = "x" * 900
    for number in range(count):
        key = f"key-{part}-{number % 20_000:06d}"
        yield key, orjson.dumps({"id": f"doc-{number:08d}", "key": key, "number": number, "padding": padding})


def test_a_bulk_document_costs_the_server_at_most_10_microseconds(tmp_path):
    """Served by a process of its own; sent by the sink's own container, 100 a request; every round has new keys."""
    from service.sink.cosmos import CosmosAccess, CosmosContainer
    from service.sink.routing import RangeMap, effective_key

    env_file = tmp_path / "stack.env"
    with Process("local", "up", "--env-file", str(env_file), "--physical-partitions", "4", folder=tmp_path) as stack:
        until(env_file.exists, 60, "ready", process=stack)
        lines = dict(line.split("=", 1) for line in env_file.read_text().splitlines())
        server = psutil.Process(stack.process.pid)

        async def send(part):
            access = CosmosAccess.from_connection_string(
                lines["COSMOS_CONNSTRING"], lines["COSMOS_DATABASE"], lines["COSMOS_CONTAINER"]
            )
            container = CosmosContainer(access)
            definition = await container.describe()
            ranges = RangeMap(definition, await container.read_ranges())
            queues = {}
            for key, body in bodies(DOCUMENTS, part):
                range_id = ranges.find(effective_key(definition.kind, [key]))
                operation = b'{"operationType":"Upsert","partitionKey":"[\\"%b\\"]","resourceBody":%b}' % (
                    key.encode(),
                    body,
                )
                queues.setdefault(range_id, []).append(operation)
            before = server.cpu_times()
            for range_id, operations in queues.items():
                for start in range(0, len(operations), 100):
                    payload = b"[" + b",".join(operations[start : start + 100]) + b"]"
                    answers = await container.send_bulk(range_id, payload, minimal=True)
                    assert all(answer["statusCode"] in (200, 201) for answer in answers)
            after = server.cpu_times()
            await container.close()
            return after.user + after.system - before.user - before.system

        rounds = [asyncio.run(send(part)) / DOCUMENTS * 1e6 for part in range(ROUNDS)]
    figures = ", ".join(f"{spent:.1f}" for spent in rounds)
    print(f"Cosmos server: {figures} us of CPU per 1 KB document in bulk (load {os.getloadavg()[0]:.1f})")
    assert min(rounds) <= 10


def test_all_three_answer_within_6_seconds(tmp_path):
    env_file = tmp_path / "stack.env"
    began = time.monotonic()
    with Process("local", "up", "--env-file", str(env_file), folder=tmp_path) as stack:
        until(env_file.exists, 60, "ready", process=stack)
        took = time.monotonic() - began
        assert stack.stop() == 0
    print(f"local stack: ready after {took:.1f} s (load {os.getloadavg()[0]:.1f})")
    assert took <= 6
