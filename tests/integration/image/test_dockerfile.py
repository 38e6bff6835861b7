"""What the Dockerfile says. No Docker engine is needed; what it does is done in test_installed.py."""

import re
from pathlib import Path

import pytest

from service.config import Settings
from tests.integration.image.dockerfile import environment, exec_form, kept, lineage, stages

ROOT = Path(__file__).parents[3]
STAGES = stages((ROOT / "Dockerfile").read_text())
IGNORE = (ROOT / ".dockerignore").read_text()
IMAGES = ("service", "spark")


def test_the_service_is_the_default_and_the_jobs_have_a_target_of_their_own():
    assert list(STAGES)[-1] == "service"
    assert "spark" in STAGES


def test_every_base_is_pinned_to_a_patch_version():
    for stage in STAGES.values():
        assert stage.base in STAGES or re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", stage.base), stage.base


def test_packages_come_from_the_constraints_and_nothing_is_fetched_after_that():
    for name in ("packages", "spark-packages"):
        wheel, install = STAGES[name].all("RUN")
        assert "--constraint constraints.txt" in wheel
        assert "--no-index --find-links /wheels" in install


def test_the_service_has_no_java_no_spark_and_no_local_stack():
    said = " ".join(rest for stage in lineage(STAGES, "service") for _, rest in stage.instructions)
    assert not re.search(r"jre|jdk|java|spark", said, re.IGNORECASE)
    assert not kept(IGNORE, "service/local/stack.py")
    assert STAGES["service"].all("COPY") == ["--from=packages /opt/sluice/venv /opt/sluice/venv"]


def test_the_jobs_have_java_and_their_files():
    said = " ".join(STAGES["spark"].all("RUN"))
    assert "openjdk-17-jre-headless" in said
    assert kept(IGNORE, "deploy/spark/job.py")
    assert environment(lineage(STAGES, "spark"))["PYSPARK_PYTHON"] == "/opt/sluice/venv/bin/python"


@pytest.mark.parametrize("name", IMAGES)
def test_the_user_is_a_number_and_not_root(name):
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", STAGES[name].last("USER"))


@pytest.mark.parametrize("name", IMAGES)
def test_signals_reach_python_since_no_shell_is_between(name):
    assert exec_form(STAGES[name].last("ENTRYPOINT"))[0] in {"sluice", "python"}
    assert exec_form(STAGES[name].last("CMD"))
    assert STAGES["service"].last("STOPSIGNAL") == "SIGTERM"


@pytest.mark.parametrize("name", IMAGES)
def test_nothing_is_written_while_running_and_the_ops_pages_listen_outside(name):
    variables = environment(lineage(STAGES, name))
    assert variables["PYTHONDONTWRITEBYTECODE"] == "1"
    assert variables["HTTP_HOST"] == "0.0.0.0"
    assert int(variables["HTTP_PORT"]) == Settings.model_fields["http_port"].default


def test_health_is_asked_by_python_since_there_is_no_curl():
    health = STAGES["service"].last("HEALTHCHECK")
    words = exec_form(health[health.index("[") :])
    assert words[0] == "python"
    assert "/healthz" in words[-1]
    compile(words[-1], "healthcheck", "exec")


def test_the_image_says_what_it_is():
    labels = " ".join(STAGES["base"].all("LABEL"))
    for label in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in labels


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("service/app.py", True),
        ("service/source/hub.py", True),
        ("constraints.txt", True),
        ("README.md", True),
        ("deploy/spark/main.py", True),
        ("service/local/cosmos/wire.py", False),
        ("service/__pycache__/app.pyc", False),
        ("tests/conftest.py", False),
        ("deploy/local/node_modules/x.js", False),
        (".venv/bin/python", False),
        (".git/config", False),
        ("stack.env", False),
    ],
)
def test_the_build_context_has_what_is_needed_and_no_more(path, wanted):
    assert kept(IGNORE, path) is wanted


def test_no_build_kit_feature_is_used_since_az_acr_build_has_none():
    assert "--mount" not in (ROOT / "Dockerfile").read_text()
