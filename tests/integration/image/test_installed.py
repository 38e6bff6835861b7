"""The wheel, as the image has it, started as another user from a tree that it may not write."""

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
import zipfile

import pytest
from dotenv import dotenv_values

from service.local.azurite import free_port
from tests.integration.image.conftest import ROOT, as_other_user, close, new_environment
from tests.integration.image.dockerfile import exec_form, stages


def files_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def variables_of(stack):
    return {name: value or "" for name, value in dotenv_values(stack.env_file, interpolate=False).items()}


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"no {what} within {seconds} s"
        time.sleep(0.1)


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def test_the_wheel_has_the_package_without_the_local_stack_and_without_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "service/cli.py" in names
    assert "service/py.typed" in names
    assert not [name for name in names if name.startswith(("service/local/", "tests/", "deploy/"))]


def test_bad_settings_are_all_reported_with_exit_code_78(installed):
    answer = installed.run(str(installed.sluice), "config", "check", COSMOS_BATCH_MAX="1000")
    assert answer.returncode == 78, answer.stderr
    assert "COSMOS_BATCH_MAX" in answer.stderr
    assert "EVENTHUB_CONNSTRING" in answer.stderr


def test_good_settings_pass(installed, make_stack):
    answer = installed.run(str(installed.sluice), "config", "check", **variables_of(make_stack()))
    assert answer.returncode == 0, answer.stderr


def run_until_all_arrived(installed, stack, preload, log):
    expected = preload(stack, 2_000)
    port = free_port()
    before = files_of(installed.folder)
    variables = installed.variables() | variables_of(stack) | {"HTTP_PORT": str(port), "CHECKPOINT_INTERVAL": "1s"}
    with log.open("wb") as output:
        command = [*as_other_user(), str(installed.sluice), "run"]
        process = subprocess.Popen(command, env=variables, stdout=output, stderr=subprocess.STDOUT, cwd="/")
    try:
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/healthz"), 60, "answer from /healthz")
        wait_for(lambda: len(stack.documents()) == len(expected), 60, "documents")
        health = stages((ROOT / "Dockerfile").read_text())["service"].last("HEALTHCHECK")
        words = exec_form(health[health.index("[") :])
        assert installed.run(str(installed.python), *words[1:], HTTP_PORT=str(port)).returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert files_of(installed.folder) == before


def test_it_runs_as_another_user_from_a_tree_that_it_cannot_write(installed, make_stack, preload, tmp_path):
    probe = f"open({str(installed.folder / 'venv/probe')!r}, 'w')"
    assert "Permission denied" in installed.run(str(installed.python), "-c", probe).stderr
    run_until_all_arrived(installed, make_stack(), preload, tmp_path / "run.log")


@pytest.mark.proof
def test_an_empty_environment_gets_all_it_needs_from_the_constraints(open_folder, wheel, make_stack, preload, tmp_path):
    folder = open_folder / "empty"
    folder.mkdir()
    made = new_environment(folder)
    wanted = f"sluice[azure-monitor] @ {wheel.as_uri()}"
    command = [made.python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), wanted]
    subprocess.run(command, check=True, timeout=900)
    subprocess.run([made.python, "-m", "pip", "uninstall", "-q", "--yes", "pip", "setuptools"], check=True, timeout=100)
    close(folder)
    assert made.run(str(made.sluice), "config", "check").returncode == 78
    stack = make_stack()
    online = made.run(str(made.sluice), "config", "check", "--online", **variables_of(stack))
    assert online.returncode == 0, online.stdout + online.stderr
    run_until_all_arrived(made, stack, preload, tmp_path / "run.log")


@pytest.mark.proof
@pytest.mark.spark
def test_an_empty_environment_runs_the_backfill_with_the_extra_spark(open_folder, wheel, make_stack, preload, tmp_path):
    folder = open_folder / "spark"
    folder.mkdir()
    made = new_environment(folder)
    wanted = f"sluice[azure-monitor,spark] @ {wheel.as_uri()}"
    command = [made.python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), wanted]
    subprocess.run(command, check=True, timeout=1800)
    variables = made.variables("spark") | {"HOME": str(tmp_path)}
    for start in (
        [made.sluice],
        [made.python, "-m", "service.jobs"],
        [made.spark_submit, "--master", "local[2]", ROOT / "deploy/spark/main.py"],
    ):
        stack = make_stack()
        stack.hub.consumer_groups["spark"] = "spark"
        expected = preload(stack, 500)
        report = tmp_path / f"report-{stack.env_file.stat().st_mtime_ns}"
        arguments = ["backfill", "--source", "hub", "--consumer-group", "spark", "--up-to", "end", "--report", report]
        command = [str(word) for word in (*start, *arguments)]
        answer = subprocess.run(
            command, env=variables | variables_of(stack), capture_output=True, text=True, check=False, timeout=600
        )
        assert answer.returncode == 0, answer.stderr[-3000:]
        found = {document["id"]: document for document in stack.documents()}
        assert found.keys() == expected.keys()
        for name, body in expected.items():
            assert found[name].items() >= body.items(), name
        assert json.loads((report / "summary.json").read_text())["records"]["committed"] == 500
