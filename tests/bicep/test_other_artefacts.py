"""Compose file, Kubernetes and Databricks examples and the workflow name only what exists."""

import re

import pytest

from service.config import Settings
from service.jobs.options import BackfillOptions, SourceOptions
from service.jobs.runs import jobs_container
from tests.bicep import rules
from tests.bicep.conftest import ROOT
from tests.support.command_line import unknown_words

FILES = ("deploy/local/compose.yaml", "deploy/spark/databricks.yml")
SETTINGS = {name.upper() for name in Settings.model_fields}
THEIRS = {"ACCEPT_EULA", "BLOB_SERVER", "METADATA_SERVER"}
"""Variables of Microsoft's emulators."""


@pytest.mark.parametrize("name", FILES)
def test_every_variable_is_a_setting(name):
    named = set(re.findall(r"^\s+([A-Z]+(?:_[A-Z]+)+):", (ROOT / name).read_text(), re.MULTILINE))
    assert named
    assert named <= SETTINGS | THEIRS


def test_the_compose_settings_are_without_fault(monkeypatch):
    text = (ROOT / "deploy/local/compose.yaml").read_text()
    service = text[text.index("\n  sluice:\n") :]
    for name, value in re.findall(r"^      ([A-Z]+(?:_[A-Z]+)+): (.+)$", service, re.MULTILINE):
        monkeypatch.setenv(name, value.strip('"'))
    from service.config import load

    assert load().eventhub_ratelimit == 1000


def test_every_image_of_the_compose_file_has_a_tag_that_is_not_latest():
    images = re.findall(r"^    image: (\S+)$", (ROOT / "deploy/local/compose.yaml").read_text(), re.MULTILINE)
    assert all(":" in image and not image.endswith(":latest") for image in images if image.startswith("mcr."))


def test_the_jobs_of_the_template_are_given_options_that_they_have(sources):
    known = {f"--{name.replace('_', '-')}" for kind in (BackfillOptions, SourceOptions) for name in kind.__slots__}
    given = set(re.findall(r"'(--[a-z-]+)'", sources["main.bicep"])) - {"--reports", "--online"}
    assert given
    assert given <= known


WRITTEN = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "deploy").glob("*/*.md"),
    *(ROOT / "bicep").rglob("*.bicep"),
    *(ROOT / "bicep").glob("*.md"),
]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_is_named_anywhere_exists(path):
    named = set(re.findall(r"`(?:\.venv/bin/)?sluice ([^`\n]+)`", path.read_text()))
    assert {line: unknown for line in named if (unknown := unknown_words(line))} == {}


def test_the_workflow_runs_what_the_makefile_has():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make (\w+)", (ROOT / ".github/workflows/ci.yaml").read_text())) <= targets


@pytest.mark.parametrize(
    "name",
    [
        "Dockerfile",
        "bicep/README.md",
        "bicep/main.bicep",
        "deploy/azure/deploy.sh",
        "deploy/azure/destroy.sh",
        "deploy/azure/admin.sh",
        "deploy/local/compose.yaml",
        "deploy/spark/README.md",
        "deploy/spark/spark-operator.yaml",
        "deploy/spark/databricks.yml",
        "deploy/dashboards/README.md",
        "deploy/RUNBOOK.md",
        ".github/workflows/ci.yaml",
    ],
)
def test_every_artefact_says_what_was_not_tried(name):
    assert re.search(r"not (been )?(tried|run)", (ROOT / name).read_text(), re.IGNORECASE)


def test_the_container_of_the_jobs_has_the_name_that_the_template_gives_it():
    settings = Settings.model_construct(blob_container="leases")
    assert f"toLower('{jobs_container(settings).replace('leases', '${blobContainer}')}')" == rules.JOBS_CONTAINER
