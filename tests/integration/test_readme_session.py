"""The README as a newcomer follows it: every command is typed as it stands there, in its order, in one session.

Whatever is added there is typed too, so it must work. `make test` leaves out the long ones; `make proof` types all.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient
from dotenv import dotenv_values
from fastavro import reader

from service.config import Settings
from service.local.azurite import free_port
from tests.support.azure import AzureStandIn
from tests.support.readme import Block, Command, blocks, commands, like
from tests.support.stack import until

ROOT = Path(__file__).parents[2]
NOT_HERE = {"make test": "it runs this very test; CI types it in a fresh clone"}
LONG = {
    "make demo": "takes a minute",
    ".venv/bin/sluice backfill": "starts Spark",
    ".venv/bin/sluice reconcile": "starts Spark",
    ".venv/bin/sluice repair": "starts Spark, and needs what reconcile wrote",
}
"""By the beginning of a command, as NOT_HERE."""
SAYS_WHEN_READY = {"local up": "ready:", "run": '"started"'}
INSTALLED = (".venv", "node_modules")
IS_SET_UP = """
[ "$(cat .venv/.sluice-test)" = "$(cat pyproject.toml constraints.txt | cksum | tr ' ' '-')" ] || exit 1
for folder in deploy/local tests/contract/js; do
    [ "$(cat $folder/node_modules/.sluice)" = "$(cksum < $folder/package.json)" ] || exit 1
done
[ "$(cat .venv/checkov/.sluice)" = "$(cksum < tests/bicep/checkov.txt)" ] || exit 1
"""
"""As deploy/local/setup.sh knows it. Else it would install this copy into the environment that runs the tests."""
RECORDS = 10_000
PORT = 8080


def starts(command: Command, beginnings: dict[str, str]) -> bool:
    return any(command.line.startswith(beginning) for beginning in beginnings)


class Session:
    """A working copy, and the terminals that are open in it."""

    def __init__(self, folder: Path, azure: AzureStandIn) -> None:
        self.folder = folder
        self.azure = azure
        self._open: list[tuple[Command, subprocess.Popen[bytes], Path]] = []
        settings = {name.upper() for name in Settings.model_fields}
        own = {name: value for name, value in os.environ.items() if name not in settings}
        self._environment = own | azure.environment() | {"COLUMNS": "200"}
        # As written, wherever the port that it names is free.
        self.port = PORT if is_free(PORT) else free_port()
        if self.port != PORT:
            self._environment["HTTP_PORT"] = str(self.port)

    def follow(self, block: Block, left_out: dict[str, str]) -> None:
        """Type one block, and compare what it shows."""
        typed = [command for command in block.commands if not starts(command, left_out)]
        said = "".join(self.type(command) for command in typed)
        if any(starts(command, LONG) for command in block.commands if command not in typed):
            return  # what is shown may be of those that were left out
        for shown in block.shown:
            assert any(like(shown, line) for line in said.splitlines()), f"{shown!r} was not printed, but:\n{said}"

    def type(self, command: Command) -> str:
        """One command; gives what it printed."""
        if command.stays:
            return self._start(command)
        self.azure.forget()
        said = self._wait_for_records(command) if command.line.startswith("curl") else self._run(command)
        if "deploy.sh" in command.line:
            check_deployment(command, said, self.azure.calls())
        return said

    def end(self) -> None:
        """Ctrl-C in every open terminal, the last one first."""
        while self._open:
            command, process, log = self._open.pop()
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(60) == 0, f"{command.line}\n{log.read_text()[-3000:]}"

    def kill(self) -> None:
        for _, process, _ in self._open:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _run(self, command: Command) -> str:
        line = command.line.replace(f":{PORT}/", f":{self.port}/")
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self._environment,
            input="y\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
        assert done.returncode == 0, f"{command.line} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _start(self, command: Command) -> str:
        log = self.folder / f"terminal-{len(self._open)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", command.line],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._open.append((command, process, log))
        sign = next(sign for name, sign in SAYS_WHEN_READY.items() if f"sluice {name}" in command.line)

        def ready() -> bool:
            assert process.poll() is None, f"{command.line} ended with {process.returncode}\n{log.read_text()}"
            return sign in log.read_text()

        until(ready, 90, f"{sign} of {command.line}")
        return log.read_text()

    def _wait_for_records(self, command: Command) -> str:
        """Ask until all that was produced is committed."""
        last = {}

        def all_committed() -> bool:
            last.update(json.loads(self._run(command)))
            return last["records"]["committed"] == RECORDS

        until(all_committed, 60, f"{RECORDS} committed", every=0.5)
        return json.dumps(last)


def check_deployment(command: Command, said: str, calls: list[str]) -> None:
    """What a command of deploy.sh asked of az."""
    if "--help" in command.line:
        assert said.startswith("Usage:")
    if "--help" in command.line or "--dry-run" in command.line:
        assert calls == []
        return
    given = command.line.partition(" -- ")[2]
    deployments = [call for call in calls if call.startswith("deployment group create")]
    assert deployments
    assert all(given in call for call in deployments)
    assert sum("acr build" in call for call in calls) == 2


def captured(env_file: Path) -> int:
    """How many events are in Capture's files."""
    settings = dotenv_values(env_file, interpolate=False)
    with ContainerClient.from_connection_string(settings["BLOB_CONNSTRING"], "capture") as container:
        files = [container.download_blob(blob.name).readall() for blob in container.list_blobs()]
    return sum(1 for file in files if file for _ in reader(io.BytesIO(file)))


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@pytest.fixture
def session(tmp_path) -> Iterator[Session]:
    """A working copy that is set up: with the packages of this one."""
    folder, azure = tmp_path / "sluice", tmp_path / "bin"
    azure.mkdir()
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*INSTALLED, ".*_cache", ".hypothesis", "*.egg-info"))
    for name in ("deploy/local", "tests/contract/js", "."):
        for path in (ROOT / name).iterdir():
            if path.name in INSTALLED:
                (folder / name / path.name).symlink_to(path)
    done = subprocess.run(["bash", "-c", IS_SET_UP], cwd=folder, check=False)
    assert done.returncode == 0, "run `make setup` first: here it is typed again, and must find nothing to do"
    made = Session(folder, AzureStandIn(azure))
    yield made
    made.kill()


@pytest.mark.timeout(600)
def test_every_short_command_works_as_written(session):
    for block in blocks():
        session.follow(block, NOT_HERE | LONG)
    session.end()


@pytest.mark.proof
@pytest.mark.spark
def test_every_command_works_as_written(session):
    for block in blocks():
        if any("--source capture" in command.line for command in block.commands):
            until(lambda: captured(session.folder / "stack.env") == RECORDS, 60, "Capture's files", every=1)
        session.follow(block, NOT_HERE)
    session.end()


def test_nothing_is_left_out_without_need():
    """Each entry of the two lists is the beginning of a command that is there."""
    for beginning in NOT_HERE | LONG:
        assert any(command.line.startswith(beginning) for command in commands()), beginning


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```sh\nmake nothing\n```\n", "make nothing ended with 2"),
        ("```sh\n.venv/bin/sluice leases lift\n```\n", "leases lift ended with 2"),
        ("```sh\ndeploy/azure/deploy.sh --help\n```\n\n```text\nUsage: guess\n```\n", "'Usage: guess' was not printed"),
    ],
)
def test_a_command_that_does_not_work_or_says_something_else_is_found(session, text, complaint):
    with pytest.raises(AssertionError, match=complaint):
        session.follow(blocks(text)[0], NOT_HERE | LONG)
