"""Blobs read by Spark where they are, with the jars of the image `spark`: in a process of its own, since a session that
runs gets no more jars.
"""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.spark.jars import packages

pytestmark = pytest.mark.proof


def run(world, job, path, *arguments):
    """A job as in the image; gives its exit code and what it says."""
    command = [sys.executable, "-m", "service.jobs", job, "--env-file", str(world.env_file()), "--source", "capture"]
    command += ["--path", path, "--report", str(world.folder / job), "--master", "local[2]", *arguments]
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": f"--packages {','.join(packages())} pyspark-shell"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(900)
def test_hadoops_addresses_are_read_by_spark_itself_and_a_damaged_blob_is_left_out(world):
    world.fill(3000, documents=1000, deletes=10)
    world.capture()
    container = world.blobs("capture")
    names = sorted(container.list_blob_names(name_starts_with=f"local/{world.name}/"))
    damaged = container.get_blob_client(names[0])
    whole = damaged.download_blob().readall()
    middle = len(whole) // 2
    damaged.upload_blob(whole[:middle] + b"\xff" * 300 + whole[middle + 300 :], overwrite=True)
    path = f"abfss://capture@devstoreaccount1.dfs.core.windows.net/local/{world.name}/"
    code, said = run(world, "backfill", path, "--reader", "jvm")
    assert code == 3, said
    assert re.search(r"blobs_in_place\W+True", said)
    assert list(world.summary("backfill")["left_out"]) == [names[0]]

    damaged.upload_blob(whole, overwrite=True)
    code, said = run(world, "backfill", path, "--reader", "jvm")
    assert code == 0, said
    assert world.found() == world.expected()
    code, said = run(
        world, "reconcile", path.replace("abfss", "wasbs").replace(".dfs.", ".blob."), "--recheck-seconds", "1"
    )
    assert code == 0, said
    assert json.loads((world.folder / "reconcile" / "summary.json").read_text())["clean"]
