"""deploy/spark/job.py runs a command and keeps its report, whatever the command's end."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from azure.storage.blob import ContainerClient

from tests.integration.image.conftest import ROOT

STAND_IN = """
import json, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[sys.argv.index("--report") + 1])
(folder / "parts").mkdir()
(folder / "summary.json").write_text(json.dumps(sys.argv[1:]))
(folder / "parts" / "report.html").write_text("<html></html>")
if "--wait" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    print("waiting", flush=True)
    time.sleep(60)
sys.exit(int(sys.argv[sys.argv.index("--end") + 1]))
"""
"""In the place of `service.jobs`: writes a report and ends as told."""


@pytest.fixture
def job(tmp_path, azurite, blob_container_name):
    (tmp_path / "service/jobs").mkdir(parents=True)
    (tmp_path / "service/__init__.py").write_text("")
    (tmp_path / "service/jobs/__init__.py").write_text("")
    (tmp_path / "service/jobs/__main__.py").write_text(STAND_IN)

    def start(*arguments, container=blob_container_name):
        command = [
            sys.executable,
            str(ROOT / "deploy/spark/job.py"),
            "--reports",
            f"http://host/{container}",
            *arguments,
        ]
        environment = {**os.environ, "BLOB_CONNSTRING": azurite, "PYTHONPATH": str(tmp_path)}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True)

    return start


@pytest.fixture
def reports(azurite, blob_container_name):
    with ContainerClient.from_connection_string(azurite, blob_container_name) as container:
        container.create_container()
        yield container


@pytest.mark.parametrize("code", [0, 4])
def test_the_report_is_kept_and_the_exit_code_is_that_of_the_command(job, reports, code):
    process = job("reconcile", "--source", "capture", "--end", str(code))
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    names = sorted(blob.name for blob in reports.list_blobs())
    assert [name.split("/", 2)[::2] for name in names] == [
        ["reconcile", "parts/report.html"],
        ["reconcile", "summary.json"],
    ]
    told = json.loads(reports.download_blob(names[1]).readall())
    assert told[:3] == ["reconcile", "--source", "capture"]
    assert names[1].rsplit("/", 1)[0] in out


def test_work_that_cannot_be_proved_has_failed(job):
    process = job("backfill", "--end", "0", container="not-there")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "could not be stored" in err


def test_the_signal_to_end_reaches_the_command(job, reports):
    process = job("backfill", "--wait", "--end", "0")
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert len(list(reports.list_blobs())) == 2


def test_no_command_is_a_mistake_in_the_call(job):
    process = job()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "which command" in err
