"""The README says what the program does: its table of settings, its commands, its links.

That its commands work as written is tried by tests/integration/test_readme_session.py.
"""

import re

import pytest

from service.ops.settings_table import settings_table
from tests.support.command_line import unknown_words
from tests.support.readme import README, ROOT, blocks, commands, like

WITHOUT_BLOCKS = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
NAMED = sorted(set(re.findall(r"`(?:\.venv/bin/)?sluice ([^`]+)`", WITHOUT_BLOCKS)))
TYPED = sorted({command.line.split("sluice ", 1)[1] for command in commands() if "bin/sluice " in command.line})


def test_the_table_of_settings_is_the_settings():
    assert settings_table() in README, "run `sluice config table` and put what it prints into the README"


@pytest.mark.parametrize("line", [*NAMED, *TYPED])
def test_every_command_and_option_that_it_names_exists(line):
    assert unknown_words(line) == []


def test_a_command_or_option_that_does_not_exist_would_be_found():
    assert unknown_words("leases lift") == ["lift"]
    assert unknown_words("leases list --jsn") == ["--jsn"]
    assert unknown_words("flow") == ["flow"]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists()


@pytest.mark.parametrize("anchor", sorted(set(re.findall(r"\]\(#([^)]+)\)", README))))
def test_every_anchor_is_a_heading(anchor):
    assert anchor in {title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", README, re.MULTILINE)}


def test_it_says_plainly_that_it_has_not_run_against_azure():
    assert "has not run against Azure yet" in README


def test_every_block_is_typed_or_the_answer_to_one_that_is():
    assert len(blocks()) >= 4
    with pytest.raises(ValueError, match="neither"):
        blocks("```\nmake demo\n```\n")
    with pytest.raises(ValueError, match="neither"):
        blocks("```text\nready\n```\n")


def test_what_is_shown_is_compared_but_for_its_numbers():
    assert like("ok    hub has 4 partitions", "ok  hub has 16 partitions")
    assert not like("ok    hub has 4 partitions", "ok  hub has many partitions")
    assert not like("it adds up", "IT DOES NOT ADD UP")
