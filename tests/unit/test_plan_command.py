"""`sluice plan` by its options alone: what it answers, what it refuses, and its exit codes."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from service.cli import app
from service.config import Settings
from service.ops.figures import Facts, Name


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def answer(*words):
    return CliRunner().invoke(app, ["plan", *words])


def test_it_works_without_settings_and_says_what_it_assumed():
    made = json.loads(answer("--rate", "24000", "--ru-per-record", "6", "--headroom", "0", "--json").stdout)
    assert made["plan"]["cosmos"]["throughput"] == 144_000
    assert made["plan"]["cosmos"]["physical_partitions"] == 15
    sources = {name: figure["source"] for name, figure in made["figures"].items()}
    assert sources == {
        "rate": "given",
        "ru_per_record": "given",
        "record_bytes": "assumed",
        "hottest_key": "assumed",
        "records_per_core": "assumed",
        "headroom": "given",
    }


def test_records_within_a_time_are_a_rate():
    made = json.loads(answer("--records", "4200000", "--within", "3m", "--json").stdout)
    assert made["plan"]["rate"] == pytest.approx(23_333.3, abs=0.1)


def test_what_is_there_can_be_given_and_turned_round():
    words = ("--throughput", "150000", "--physical-partitions", "15", "--partitions", "16", "--ru-per-record", "6")
    made = json.loads(answer(*words, "--json").stdout)
    assert made["plan"] is None
    assert made["reach"]["rate"] == pytest.approx(25_000)
    assert made["reach"]["limits"][0]["what"] == "RU/s of the container"


def test_large_records_are_assumed_to_cost_more():
    facts = Facts()
    facts.give(Name.RECORD_BYTES, 10 * 1024, "--record-bytes")
    facts.assume()
    assert facts.value(Name.RU_PER_RECORD) == 15


def test_a_rate_that_no_money_buys_is_planned_all_the_same_and_ends_with_3():
    done = answer("--rate", "50000", "--hottest-share", "20%")
    assert done.exit_code == 3
    assert "cannot be reached: One partition key has 20.0% of the records" in done.stdout
    assert "EVENTHUB_RATELIMIT" not in done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "say what is wanted"),
        (["--rate", "0"], "more than 0"),
        (["--rate", "-5"], "more than 0"),
        (["--rate", "nan"], "more than 0"),
        (["--rate", "inf"], "more than 0"),
        (["--rate", "fast"], "fast is not a number"),
        (["--records", "0", "--within", "3m"], "greater than or equal to 1"),
        (["--records", "10"], "--within"),
        (["--within", "3m"], "--records"),
        (["--records", "10", "--within", "0s"], "more than 0"),
        (["--records", "10", "--within", "3q"], "3q is not a duration"),
        (["--rate", "5", "--records", "10", "--within", "3m"], "not both"),
        (["--rate", "5", "--ru-per-record", "0"], "more than 0"),
        (["--rate", "5", "--record-bytes", "0"], "more than 0"),
        (["--rate", "5", "--record-bytes", "1 stone"], "not a size"),
        (["--rate", "5", "--hottest-share", "120%"], "more than all"),
        (["--rate", "5", "--hottest-share", "-0.1"], "0 or more"),
        (["--rate", "5", "--headroom", "-1%"], "0 or more"),
        (["--rate", "5", "--records-per-core", "0"], "more than 0"),
        (["--rate", "5", "--sample", "-1"], "greater than or equal to 0"),
        (["--rate", "5", "--throughput", "0"], "more than 0"),
        (["--rate", "5", "--physical-partitions", "0"], "greater than or equal to 1"),
        (["--rate", "5", "--partitions", "0"], "greater than or equal to 1"),
    ],
)
def test_bad_input_is_a_usage_error_that_says_what_is_wrong(words, complaint, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = answer(*words)
    assert done.exit_code == 2, done.output
    assert complaint in " ".join(done.output.split())


def test_bad_settings_are_not_a_usage_error(tmp_path):
    (tmp_path / "some.env").write_text("EVENTHUB_NAME=hub\n")
    words = [sys.executable, "-m", "service", "plan", "--env-file", str(tmp_path / "some.env"), "--rate", "5"]
    environment = {name: value for name, value in os.environ.items() if name.lower() not in Settings.model_fields}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 78
    assert "COSMOS_CONNSTRING: missing" in done.stderr
    assert "Traceback" not in done.stderr
