"""The scripts of deploy/azure against a stand-in for az that writes down what it is asked."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bicep.conftest import ROOT
from tests.support.azure import HEALTHY, AzureStandIn

SCRIPTS = sorted((ROOT / "deploy/azure").glob("*.sh"))


class Azure(AzureStandIn):
    """Runs the scripts with it."""

    def run(self, script, *arguments, answers=HEALTHY, typed=""):
        self.forget()
        command = [str(ROOT / "deploy/azure" / script), *arguments]
        return subprocess.run(
            command,
            env=self.environment(answers),
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def azure(tmp_path):
    return Azure(tmp_path)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_sound_and_says_how_it_is_used(script, azure):
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    shellcheck = shutil.which("shellcheck") or str(ROOT / ".venv/bin/shellcheck")
    found = subprocess.run([shellcheck, script], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    answer = azure.run(script.name, "--help")
    assert answer.returncode == 0
    assert answer.stdout.startswith("Usage:")
    assert azure.calls() == []


def test_a_dry_run_prints_every_command_and_calls_nothing(azure):
    answer = azure.run("deploy.sh", "--group", "g", "--tag", "t", "--dry-run", "--", "eventhubRatelimit=3000")
    assert answer.returncode == 0, answer.stderr
    assert azure.calls() == []
    printed = answer.stdout.splitlines()
    for step in (
        "az group create --name g",
        "az deployment group what-if",
        "az acr build --registry",
        "--target spark",
        "az deployment group create",
        "az containerapp job start",
        "az containerapp revision list",
    ):
        assert any(step in line for line in printed), step
    assert sum("eventhubRatelimit=3000" in line for line in printed) == 3


def test_it_looks_first_builds_then_deploys_and_checks_last(azure):
    answer = azure.run("deploy.sh", "--group", "g", "--tag", "t", "--yes")
    assert answer.returncode == 0, answer.stderr
    steps = [
        "what-if",
        "deployApps=false",
        "acr build",
        "group create --resource-group g",
        "job start",
        "revision list",
    ]
    calls = azure.calls()
    places = [max(i for i, call in enumerate(calls) if step in call) for step in steps]
    assert places == sorted(places)
    assert not any("group create --name g" in call for call in calls), "the group was there"


def test_running_it_again_asks_for_the_same(azure):
    azure.run("deploy.sh", "--group", "g", "--tag", "t", "--yes")
    first = azure.calls()
    azure.run("deploy.sh", "--group", "g", "--tag", "t", "--yes")
    assert azure.calls() == first


def test_a_group_is_made_when_there_is_none(azure):
    azure.run("deploy.sh", "--group", "g", "--tag", "t", "--yes", answers=HEALTHY | {"group exists": "false"})
    assert any("group create --name g --location westeurope" in call for call in azure.calls())


def test_nothing_is_changed_when_the_answer_is_no(azure):
    answer = azure.run("deploy.sh", "--group", "g", "--tag", "t", typed="n\n")
    assert answer.returncode == 1
    assert not any("deployment group create" in call or "acr build" in call for call in azure.calls())


def test_what_if_alone_changes_nothing(azure):
    assert azure.run("deploy.sh", "--group", "g", "--tag", "t", "--only-what-if").returncode == 0
    assert not any("deployment group create" in call for call in azure.calls())


def test_images_are_not_built_again_for_a_rollback(azure):
    azure.run("deploy.sh", "--group", "g", "--tag", "old", "--skip-build", "--yes")
    assert not any("acr build" in call for call in azure.calls())
    assert any("imageTag=old" in call for call in azure.calls())
    assert azure.run("deploy.sh", "--group", "g", "--skip-build").returncode == 1


@pytest.mark.parametrize(("question", "answer"), [("job execution show", "Failed"), ("revision list", "Unhealthy")])
def test_a_deployment_that_does_not_work_fails(azure, question, answer):
    result = azure.run("deploy.sh", "--group", "g", "--tag", "t", "--yes", answers=HEALTHY | {question: answer})
    assert result.returncode == 1
    assert answer in result.stderr


def test_every_parameter_that_the_script_gives_is_one_of_the_template(azure, sources):
    azure.run("deploy.sh", "--group", "g", "--tag", "t", "--yes")
    given = {
        word.split("=")[0]
        for call in azure.calls()
        if "deployment group" in call
        for word in call.split()
        if "=" in word
    }
    known = json.loads(sources["main.parameters.json"])["parameters"]
    assert {name for name in given if not name.startswith("-")} <= known.keys()


def test_every_output_that_the_script_asks_for_is_one_of_the_template(sources):
    script = (ROOT / "deploy/azure/deploy.sh").read_text()
    for name in ("registryName", "adminJobName", "appName"):
        assert f"output {name} " in script
        assert f"output {name} string" in sources["main.bicep"]


def test_removal_asks_for_the_name(azure):
    assert azure.run("destroy.sh", "--group", "g", typed="yes\n").returncode == 1
    assert not any("group delete" in call for call in azure.calls())
    assert azure.run("destroy.sh", "--group", "g", typed="g\n").returncode == 0
    assert any("group delete --name g" in call for call in azure.calls())


def test_removal_of_what_is_not_there_is_no_fault(azure):
    assert azure.run("destroy.sh", "--group", "g", "--yes", answers={"group exists": "false"}).returncode == 0
    assert not any("group delete" in call for call in azure.calls())


def test_stopping_only_removes_nothing(azure):
    azure.run("destroy.sh", "--group", "g", "--stop-only", answers={"revision list": "sluice--1"})
    calls = azure.calls()
    assert any("revision deactivate" in call and "sluice--1" in call for call in calls)
    assert not any("delete" in call for call in calls)


def test_an_admin_command_keeps_the_variables_of_the_job(azure):
    answer = azure.run("admin.sh", "--group", "g", "--", "checkpoints", "set", "--to", "earliest")
    assert answer.returncode == 0, answer.stderr
    container = json.loads(Path(f"{azure.log}.yaml").read_text())["containers"][0]
    assert container["args"] == ["checkpoints", "set", "--to", "earliest"]
    assert container["env"] == [{"name": "A", "value": "1"}]


def test_an_admin_command_that_fails_fails(azure):
    answer = azure.run(
        "admin.sh", "--group", "g", "--", "leases", "list", answers=HEALTHY | {"job execution show": "Failed"}
    )
    assert answer.returncode == 1
