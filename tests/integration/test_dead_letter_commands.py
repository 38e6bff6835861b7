"""`sluice deadletters` as an operator types it, against a stack."""

import json
import subprocess
import sys

import pytest

from tests.support.stack import until

POISON = 3


def ask(stack, *words):
    done = subprocess.run(
        [sys.executable, "-m", "service", *words, "--env-file", str(stack.env_file), "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(300)
def test_letters_are_listed_shown_and_sent_again_only_when_it_is_meant(make_stack, sluice):
    stack = make_stack()
    stack.call(stack.hub.append, "0", [b"{"] * POISON)
    run = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: run.records()["failed"] == POISON, 60, "dead letters", process=run)
    assert run.stop() == 0

    letters = ask(stack, "deadletters", "list")
    assert [letter["sequence"] for letter in letters] == list(range(POISON))
    assert ask(stack, "deadletters", "show", "0", "1")["body"] == "{"
    assert ask(stack, "deadletters", "redrive", "--dry-run") == {"would be sent": POISON}
    assert ask(stack, "deadletters", "redrive") == {"dead-lettered": POISON, "skipped": 0}, "the dry run sent nothing"
    assert stack.documents() == []
