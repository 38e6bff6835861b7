"""A real Spark standalone cluster: the same result as local mode, and one budget over both workers."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it

from service.local.azurite import free_port
from tests.spark.jars import packages
from tests.support.stack import until

pytestmark = [
    pytest.mark.proof,
    pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning"),  # Capture's files, by the local stack
]

RATE = 400.0
RU_RATE = 3000.0


class Cluster:
    """A master and two workers with one core each, as processes in a session of their own."""

    def __init__(self, folder):
        self.port = free_port()
        self._folder = folder
        self._processes = []

    @property
    def master(self):
        return f"spark://127.0.0.1:{self.port}"

    def __enter__(self):
        self._start("master.Master", "--port", str(self.port), "--webui-port", str(free_port()))
        until(self._listens, 90, "the master listens", every=0.5)
        for _ in range(2):
            port = str(free_port())
            self._start("worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", port, self.master)
        return self

    def __exit__(self, *_):
        for process in self._processes:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes:
            process.wait(30)

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _start(self, name, *arguments):
        home = Path(pyspark.__file__).parent
        number = len(self._processes)
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(Path.cwd()),
            "SPARK_WORKER_DIR": str(self._folder / f"worker-{number}"),
        }
        with (self._folder / f"spark-{number}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)


def submit(cluster, world, run_id, *arguments):
    """Backfill through spark-submit, as a person would."""
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin/spark-submit"), "--master", cluster.master, "--conf", "spark.driver.host=127.0.0.1"]
    command += ["--conf", "spark.executor.memory=600m", "--conf", "spark.ui.enabled=false"]
    command += ["--packages", ",".join(packages())]  # as in the image: the workers read the blobs themselves
    command += [
        "--conf",
        f"spark.pyspark.python={sys.executable}",
        "--conf",
        f"spark.executorEnv.PYTHONPATH={Path.cwd()}",
    ]
    command += ["service/jobs/__main__.py", "backfill", "--env-file", str(world.env_file()), "--source", "capture"]
    command += [
        "--path",
        world.source().path,
        "--report",
        str(world.folder / "backfill"),
        "--run-id",
        run_id,
        *arguments,
    ]
    environment = os.environ | {
        "PYTHONPATH": str(Path.cwd()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
    }
    log = world.folder / f"{run_id}.log"
    with log.open("wb") as output:
        done = subprocess.run(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False, timeout=500
        )
    assert done.returncode == 0, log.read_text()[-4000:]
    assert re.search(r"blobs_in_place\W+True", log.read_text())
    return json.loads((world.folder / "backfill" / "summary.json").read_text())


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as running:
        yield running


@pytest.mark.timeout(900)
def test_a_cluster_gives_the_same_result_and_keeps_one_budget(spark, make_world, cluster):
    """First as fast as it goes; then with a budget, evenly; then with one task that has ten times the others' work.
    For some 25 seconds each: a second that a busy machine takes from a task is then no more than 4 % of it.
    """
    world = make_world()
    world.fill(3000, documents=1000, deletes=10)
    world.capture()
    found = submit(cluster, world, "plain")
    assert found["complete"]
    assert world.found() == world.expected()

    even = make_world()
    even.fill(10_000)
    even.capture()
    shared = rate_of(even, submit(cluster, even, "even", "--records-per-second", str(RATE), "--tasks", "2"))
    skewed = make_world()
    skewed.send(*ten_to_one(spark, 9900))
    skewed.capture()
    uneven = rate_of(skewed, submit(cluster, skewed, "skewed", "--records-per-second", str(RATE), "--tasks", "2"))
    print(f"\nbudget of {RATE:.0f}/s over two workers: {shared:.0f}/s even, {uneven:.0f}/s skewed")
    assert abs(shared - RATE) <= 0.05 * RATE
    assert abs(uneven - RATE) <= 0.05 * RATE


@pytest.mark.timeout(900)
def test_a_cluster_keeps_one_budget_of_request_units(spark, make_world, cluster):
    """Evenly, and with one task that has ten times the other's work. For some 25 seconds each: half a second's worth,
    which a task leases at a time, is then no more than 2 % of it.
    """
    even, skewed = make_world(), make_world()
    even.fill(11_000)
    even.capture()
    skewed.send(*ten_to_one(spark, 13_200))
    skewed.capture()
    found = {}
    for name, world in {"even": even, "skewed": skewed}.items():
        summary = submit(cluster, world, f"ru-{name}", "--ru-per-second", str(RU_RATE), "--tasks", "2")
        # All documents cost the same, so that what was spent in a second is their number times the price of one.
        found[name] = rate_of(world, summary) * summary["ru"] / len(world.documents())
    print(f"\nbudget of {RU_RATE:.0f} RU/s over two workers: {found['even']:.0f} even, {found['skewed']:.0f} skewed")
    for spent in found.values():
        assert abs(spent - RU_RATE) <= 0.05 * RU_RATE


def ten_to_one(spark, count):
    """Documents of which ten in eleven are one task's, by the hash that Spark spreads them with."""
    rows = [(f'["k{n}"]', f"d{n}") for n in range(3 * count)]
    task = F.pmod(F.hash("key", "id"), F.lit(2))
    tasks = [row[0] for row in spark.createDataFrame(rows, "key string, id string").select(task).collect()]
    picked = [n for n, task in enumerate(tasks) if task == 0][: count * 10 // 11]
    picked += [n for n, task in enumerate(tasks) if task == 1][: count // 11]
    return [{"id": f"d{n}", "key": f"k{n}", "n": n} for n in picked]


def rate_of(world, summary):
    """Records per second, from the first write to the last, by when Cosmos stored them (whole seconds)."""
    assert summary["complete"]
    times = sorted(document["_ts"] for document in world.documents())
    counts = {second: times.count(second) for second in set(times)}
    # The first and last seconds are cut; those between are whole.
    whole = [counts.get(second, 0) for second in range(times[0] + 1, times[-1])]
    assert len(whole) >= 8, f"too short to measure: {counts} at {time.time()}"
    return sum(whole) / len(whole)
