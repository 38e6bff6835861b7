"""A driver that dies in the middle, and the one that goes on."""

import os
import signal
import subprocess
import sys

from service.jobs import commands
from service.jobs.runs import Runs
from tests.support.stack import until


def test_a_killed_run_goes_on_where_it_was(spark, world):
    """Four units, killed with SIGKILL when at least one is done; then only the others are written."""
    for part in range(4):
        world.fill(200, documents=800, first=part * 200)
        world.capture()
    options = world.backfill(window_bytes=1, run_id="killed")
    log = world.folder / "driver.log"
    command = [
        sys.executable,
        "-m",
        "service.jobs",
        "backfill",
        "--env-file",
        str(world.env_file()),
        "--source",
        "capture",
    ]
    command += ["--path", options.source.path, "--report", options.report, "--run-id", "killed", "--master", "local[1]"]
    command += ["--window-bytes", "1", "--records-per-second", "150"]
    with log.open("wb") as output:
        driver = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        until(lambda: _marks(world) >= 1 or driver.poll() is not None, 200, "a unit done", every=0.05)
        assert driver.poll() is None, log.read_text()
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    run = Runs(world.settings()).find("killed")
    assert run is not None
    done_before = len(run.done)
    assert 1 <= done_before < len(run.plan.units)
    left = {unit.number for unit in run.open_units()}

    world.stack.call(world.container.write_log.clear)
    assert commands.backfill(options, world.settings()) == 0
    summary = world.summary("backfill")
    assert summary["units_before"] == done_before
    assert summary["complete"]
    assert world.found() == world.expected()
    again = world.stack.call(lambda: {entry.id for entry in world.container.write_log})
    assert again == {f"d{n}" for n in range(800) if n // 200 in left}


def _marks(world):
    container = world.blobs(f"{world.name}-jobs")
    with container:
        return len(list(container.list_blob_names(name_starts_with="runs/killed/done/"))) if container.exists() else 0
