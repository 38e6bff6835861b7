"""The command line as a stranger meets it: help, version, and what is said about bad settings."""

import json
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from service.cli import app
from service.config import Settings


def every_command(group, words=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from every_command(command, (*words, name))
        yield (*words, name), command


COMMANDS = dict(every_command(typer.main.get_command(app)))


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_says_what_it_and_its_options_do(words):
    command = COMMANDS[words]
    assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0
    assert command.help or command.callback.__doc__
    assert all(option.help for option in command.params if option.name != "help")


def test_every_command_that_reads_has_json_and_every_one_that_changes_a_dry_run():
    options = {
        words: {name for option in command.params for name in option.opts} for words, command in COMMANDS.items()
    }
    for words in (
        ("status",),
        ("plan",),
        ("leases", "list"),
        ("checkpoints", "show"),
        ("deadletters", "list"),
        ("config", "show"),
    ):
        assert "--json" in options[words]
    for words in (
        ("leases", "release"),
        ("checkpoints", "set"),
        ("checkpoints", "import"),
        ("deadletters", "redrive"),
        ("backfill",),
    ):
        assert "--dry-run" in options[words]
    assert "--write" in options["repair",]


def test_it_says_its_version():
    answer = CliRunner().invoke(app, ["--version"])
    assert re.fullmatch(r"sluice \d+\.\d+\.\d+\n", answer.output)


def test_faults_are_json_where_json_is_asked_for(tmp_path):
    answer = CliRunner().invoke(app, ["config", "check", "--json"])
    assert answer.exit_code == 78
    findings = json.loads(answer.stdout)
    assert {finding["ok"] for finding in findings} == {False}
    assert any("EVENTHUB_CONNSTRING" in finding["said"] for finding in findings)


def test_who_gives_no_settings_is_told_where_they_come_from(tmp_path):
    answer = subprocess.run(
        [sys.executable, "-m", "service", "run"],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
        timeout=60,
    )
    assert answer.returncode == 78
    assert "--env-file" in answer.stderr.splitlines()[-1]
    assert "Traceback" not in answer.stderr
