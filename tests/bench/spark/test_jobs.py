"""What the jobs cost. Each bench prints its figure; ratios are held, times are not."""

import asyncio
import json
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service import options
from service.jobs import commands
from service.jobs.events import to_arrow
from service.jobs.options import CAPTURE_NAMES
from service.jobs.plan import Unit
from service.jobs.records import Decoding
from service.jobs.sources import capture
from service.jobs.sources.capture_names import NameFormat
from service.jobs.storage import open_store
from service.jobs.target import _describe
from service.jobs.writer import Writing, _WriteTask
from service.source.events import Event

EVENTS = 200_000
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


def test_capture_from_blobs_by_the_jvm_and_by_fastavro(spark, make_world, tmp_path):
    """From Azurite, two columns of null-codec files. The JVM cannot open blobs: they are brought to disk first."""
    world = make_world(partitions=4)
    fill(world, EVENTS)
    path = world.capture()
    store = open_store(path, world.settings())
    names = NameFormat(CAPTURE_NAMES)
    unit = Unit(0, files=capture.list_capture(store, names, None, None).parts)
    jvm = capture.CaptureReader(store, names, 1, capture.probe(spark))
    python = capture.CaptureReader(store, names, 1, None)

    def read(reader, folder):
        folder.mkdir(exist_ok=True)
        frame = reader.read(spark, unit, folder).select("sequence", "body")
        row = frame.agg(F.count("*"), F.sum(F.length("body"))).collect()[0]
        assert row[0] == EVENTS

    read(jvm, tmp_path / "warm")
    read(python, tmp_path / "warm")
    by_jvm = min(timed(lambda n=n: read(jvm, tmp_path / f"jvm{n}")) for n in range(3))
    staged = min(timed(lambda: read(jvm, tmp_path / "warm")) for _ in range(3))
    by_python = min(timed(lambda n=n: read(python, tmp_path / f"py{n}")) for n in range(3))
    local = {part.name: tmp_path / "warm" / part.name.replace("/", "+") for part in unit.files}
    on_disk = capture.CaptureReader(_Staged(store, local), names, 1, None)
    python_on_disk = min(timed(lambda: read(on_disk, tmp_path / "warm")) for _ in range(3))
    print(
        f"\ncapture of {EVENTS} events of 1 KB from Azurite: JVM with download {EVENTS / by_jvm:,.0f}/s, fastavro with"
        f" download {EVENTS / by_python:,.0f}/s ({by_python / by_jvm:.1f} times); from disk JVM"
        f" {EVENTS / staged:,.0f}/s, fastavro {EVENTS / python_on_disk:,.0f}/s ({python_on_disk / staged:.1f} times)"
    )
    assert by_jvm < by_python
    assert staged * 4 <= python_on_disk


class _Staged:
    """A store whose files have been brought to disk."""

    def __init__(self, store, local):
        self._store, self._local = store, {name: str(path) for name, path in local.items()}

    def local_path(self, name):
        return self._local.get(name, "")


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
