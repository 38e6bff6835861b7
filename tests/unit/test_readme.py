"""The README says what the program does: its table of settings, its commands, its links."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli import app
from service.ops.settings_table import settings_table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
COMMANDS = sorted(set(re.findall(r"`?(?:\.venv/bin/)?sluice ((?:[a-z]+ ?)+)", README)))


def test_the_table_of_settings_is_the_settings():
    assert settings_table() in README, "run `sluice config table` and put what it prints into the README"


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_it_names_exists(words):
    names = words.split()
    result = CliRunner().invoke(app, [*names[:2], "--help"])
    if result.exit_code != 0:
        result = CliRunner().invoke(app, [names[0], "--help"])
    assert result.exit_code == 0, f"sluice {words}"


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists()


def test_it_says_plainly_that_it_has_not_run_against_azure():
    assert "has not run against Azure yet" in README
