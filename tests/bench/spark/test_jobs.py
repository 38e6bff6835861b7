"""What the jobs cost. Each bench prints its figure; ratios are held, times are not."""

import asyncio
import io
import json
import tempfile
import time
from pathlib import Path

import fastavro
import psutil
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service import options
from service.jobs import commands, hadoop_azure
from service.jobs.events import to_arrow
from service.jobs.options import CAPTURE_NAMES
from service.jobs.plan import Unit
from service.jobs.records import Decoding
from service.jobs.sources import capture
from service.jobs.sources.capture_names import NameFormat
from service.jobs.storage import open_store
from service.jobs.target import _describe
from service.jobs.writer import Writing, _WriteTask
from service.local.event_hubs.capture_avro import SCHEMA
from service.source.events import Event

BODY = 1024


def fill(world, count, size=BODY):
    pad = "x" * (size - 60)
    for first in range(0, count, 20_000):
        numbers = range(first, min(count, first + 20_000))
        for partition in world.hub.partitions:
            its = [n for n in numbers if str(n % len(world.hub.partitions)) == partition.id]
            bodies = [b'{"id":"d%d","key":"k%d","n":%d,"pad":"%b"}' % (n, n % 997, n, pad.encode()) for n in its]
            world.send(*bodies, partition=partition.id)


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


FILES = 12
FILE_EVENTS = 50_000


@pytest.fixture
def captured(world):
    """Twelve files of 50,000 events of 1 KB in Azurite, as Capture writes them."""
    pad = b"x" * (BODY - 60)
    row = {"Offset": "0", "EnqueuedTimeUtc": "11/16/2026 4:44:11 AM", "SystemProperties": {}, "Properties": {}}
    rows = (
        {**row, "SequenceNumber": n, "Body": b'{"id":"d%d","key":"k%d","n":%d,"pad":"%b"}' % (n, n % 997, n, pad)}
        for n in range(FILE_EVENTS)
    )
    body = io.BytesIO()
    fastavro.writer(body, fastavro.parse_schema(SCHEMA), rows, codec="null")
    container = world.blobs("capture")
    for number in range(FILES):
        name = f"local/{world.name}/{number}/2026/11/16/04/40/00.avro"
        container.upload_blob(name, body.getvalue(), max_concurrency=1)
    return open_store(world.source().path, world.settings())


def test_capture_from_blobs_by_spark_and_by_fastavro(spark, captured, tmp_path):
    """From Azurite, two columns of null-codec files: as the image does it, as Spark without hadoop-azure does, and
    with fastavro only.
    """
    names = NameFormat(CAPTURE_NAMES)
    unit = Unit(0, files=capture.list_capture(captured, names, None, None).parts)
    events = len(unit.files) * FILE_EVENTS
    assert hadoop_azure.opens(spark, captured, unit.files[0].name)
    jvm = capture.probe(spark)
    in_place = capture.CaptureReader(captured, names, 1, jvm, in_place=True)
    staged = capture.CaptureReader(captured, names, 1, jvm)
    python = capture.CaptureReader(captured, names, 1, None)

    def read(reader):
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            frame = reader.read(spark, unit, Path(folder)).select("sequence", "body")
            row = frame.agg(F.count("*"), F.sum(F.length("body"))).collect()[0]
            assert row[0] == events

    seconds = {}
    for name, reader in {"in place": in_place, "staged": staged, "fastavro": python}.items():
        read(reader)
        seconds[name] = min(timed(lambda reader=reader: read(reader)) for _ in range(3))
    rates = ", ".join(f"{name} {events / each:,.0f}/s" for name, each in seconds.items())
    times = {name: seconds["fastavro"] / each for name, each in seconds.items()}
    print(
        f"\ncapture of {events:,} events of 1 KB from Azurite: {rates};"
        f" Spark in place {times['in place']:.1f} times fastavro, staged {times['staged']:.1f} times"
    )
    assert times["in place"] >= 4
    assert times["staged"] > 1


def worker_cpu():
    """CPU seconds of all Python workers that Spark has, alive or gone."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            if "service.jobs.daemon" in process.cmdline():
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        except psutil.Error:
            continue
    return total


def test_cpu_per_record_of_a_backfill_against_the_sink_alone(spark, make_world):
    count = 60_000
    alone = make_world()
    alone_cpu = asyncio.run(_sink_alone(alone, count)) / count * 1e6
    world, warm = make_world(), make_world()
    fill(world, count)
    fill(warm, 2000)
    world.capture()
    # Just before: workers that have had nothing to do for a minute are ended, and a start is not what is meant.
    commands.backfill(warm.backfill(), warm.settings())
    before = worker_cpu()
    assert commands.backfill(world.backfill(), world.settings()) == 0
    spent = (worker_cpu() - before) / count * 1e6
    print(f"\nCPU per 1 KB record: {spent:.0f} us in the workers of a backfill, {alone_cpu:.0f} us in the sink alone")
    assert spent <= 2 * alone_cpu


async def _sink_alone(world, count):
    """The same records, decoded and written guarded by the sink, without Spark. The servers are another thread of this
    process, so only this thread's time counts.
    """
    settings = world.settings()
    target = await _describe(settings)
    decoding = Decoding(options.documents(settings), target.definition, "ns", world.name, "group")
    task = _WriteTask(Writing(settings, decoding, None))
    batches = [_batch(first) for first in range(0, count, 2000)]
    began = time.thread_time()
    for batch in batches:
        await task.write(batch)
    await task.finish()
    spent = time.thread_time() - began
    await task.close()
    assert len(world.documents()) == count
    return spent


def _batch(first):
    """2000 records as they come to a task that writes."""
    pad = b"x" * (BODY - 60)
    events = [
        Event(n, str(n), 1, b'{"id":"d%d","key":"k%d","n":%d,"pad":"%b"}' % (n, n % 997, n, pad), {})
        for n in range(first, first + 2000)
    ]
    batch = to_arrow(1, "0", events).append_column("index", pa.array([0] * 2000, pa.int32()))
    return batch.append_column("reason", pa.array([None] * 2000, pa.string()))


@pytest.mark.parametrize("count", [100_000, 400_000])
def test_reconcile_at_size(spark, make_world, count):
    world = make_world(partitions=4)
    fill(world, count, size=300)
    world.capture()
    settings = world.settings()
    loading = timed(lambda: commands.backfill(world.backfill(), settings))
    seconds = timed(lambda: commands.reconcile(world.reconcile(), settings))
    summary = json.loads((Path(world.folder) / "reconcile" / "summary.json").read_text())
    assert summary["states"]["ok"] == count
    print(
        f"\nreconcile of {count:,} documents: {seconds:.0f} s, {summary['ru']:,.0f} RU; to load them: {loading:.0f} s"
    )
