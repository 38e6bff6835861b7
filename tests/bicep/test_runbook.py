"""The runbook names only metrics, commands, settings and parameters that exist, and covers what it must."""

import json
import re

import pytest

from service.config import Settings
from tests.bicep.conftest import ROOT
from tests.bicep.dialect import parse
from tests.bicep.language import allowed_values
from tests.bicep.test_dashboard import exported
from tests.support.command_line import unknown_words

__all__ = ["exported"]

RUNBOOK = (ROOT / "deploy/RUNBOOK.md").read_text()


def test_every_metric_exists(exported):
    assert set(re.findall(r"sluice_[a-z_]+", RUNBOOK)) <= exported.keys()


@pytest.mark.parametrize(
    "line", sorted(set(re.findall(r"(?:`|\")sluice ([^`\"]+)|admin\.sh [^`]*? -- ([a-z][^`]+)", RUNBOOK)))
)
def test_every_command_and_option_exists(line):
    assert unknown_words(line[0] or line[1]) == []


def test_every_setting_exists():
    prefixes = {name.split("_")[0].upper() for name in Settings.model_fields}
    named = {name for name in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", RUNBOOK) if name.split("_")[0] in prefixes}
    assert named <= {name.upper() for name in Settings.model_fields}


def test_every_parameter_exists(sources):
    named = set(re.findall(r"`(?:[^`\n]* -- )?([a-z]+[A-Z]\w+)=", RUNBOOK))
    assert named
    assert named <= json.loads(sources["main.parameters.json"])["parameters"].keys()


def test_every_value_given_to_a_parameter_is_one_that_it_takes(sources):
    parameters = parse(sources["main.bicep"]).of("parameter")
    for name, value in re.findall(r"\b([a-z]+[A-Z]\w+)=([a-z]+)\b", RUNBOOK):
        if allowed := allowed_values(parameters[name]):
            assert value in allowed, f"{name}={value}"


@pytest.mark.parametrize(
    "topic",
    [
        "429 storm",
        "Stuck partition",
        "Poison flood",
        "Partitions wander",
        "Retention at risk",
        "Cosmos split",
        "Hub re-created",
        "Restore",
        "Upgrade and rollback",
        "Admin commands behind private endpoints",
    ],
)
def test_what_must_be_covered_is(topic):
    assert f"\n## {topic}\n" in RUNBOOK


def test_every_symptom_has_meaning_and_action():
    sections = re.split(r"\n## ", RUNBOOK)
    for section in sections:
        if "**Symptom**" in section:
            assert "**Meaning**" in section
            assert "**Do**" in section


def test_every_alert_leads_to_a_section(sources):
    alerts = re.findall(r"name: '([a-z-]+)'\n    metric", sources["modules/alerts.bicep"])
    rows = dict(re.findall(r"^\| `sluice-([a-z-]+)` \| (.+) \|$", RUNBOOK, re.MULTILINE))
    assert rows.keys() == {*alerts, "silence"}
    for section in rows.values():
        assert f"\n## {section}\n" in RUNBOOK
