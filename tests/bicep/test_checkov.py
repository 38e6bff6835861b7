"""checkov finds nothing in the templates but what is listed here with its reason.

checkov pins packages that ours must have newer, so `make setup` gives it an environment of its own
(docs/decisions/0081-checkov-apart.md). It needs no network.
"""

import json
import subprocess

import pytest

from tests.bicep.conftest import BICEP, ROOT, read_files

CHECKOV = ROOT / ".venv/checkov/bin/checkov"
REASONS = {
    "CKV_AZURE_101": "public access is closed by the parameter privateEndpoints; checkov does not see the choice",
    "CKV_AZURE_99": "as above; without private endpoints only Entra identities with a data role get in",
    "CKV_AZURE_35": "as above: the parameter closes it",
    "CKV_AZURE_206": "redundancy is the parameter storageSku, zone-redundant by default; checkov sees no value",
    "CKV_AZURE_166": "quarantine needs a scanner of the user's own to release images; without one nothing deploys",
    "CKV_AZURE_139": "`az acr build` and CI push from outside; the admin user and anonymous pulls are off",
}


@pytest.mark.timeout(300)
def test_checkov_finds_only_what_is_excused():
    assert CHECKOV.is_file(), "`make setup` installs it"
    answer = subprocess.run(
        [CHECKOV, "-d", str(BICEP), "--framework", "bicep", "--skip-download", "--compact", "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    results = json.loads(answer.stdout)["results"]
    assert results["parsing_errors"] == []
    assert results["passed_checks"]
    found = {check["check_id"] for check in results["failed_checks"]}
    assert found == REASONS.keys()


def test_each_excuse_has_a_reason_and_nothing_is_excused_in_the_files():
    assert all(len(reason) > 20 for reason in REASONS.values())
    assert not any("checkov:skip" in source for source in read_files().values())
