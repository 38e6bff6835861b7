"""A stand-in for az: it writes down what it is asked, and answers as told."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

STAND_IN = r"""#!/bin/bash
printf '%s\n' "$*" >> "$CALLS"
while IFS=$'\t' read -r beginning answer; do
    case "$*" in *"$beginning"*) printf '%s\n' "$answer"; break ;; esac
done <<< "$ANSWERS"
for word in "$@"; do
    [ "${before:-}" != --yaml ] || cp "$word" "$CALLS.yaml"
    before=$word
done
exit 0
"""
"""In bash, since Python would take a minute to start so often."""
HEALTHY = {
    "group exists": "true",
    "outputs.registryName": "myregistry",
    "outputs.adminJobName": "sluice-admin",
    "outputs.appName": "sluice",
    "job start": "sluice-admin-1",
    "job execution show": "Succeeded",
    "revision list": "Healthy",
    "job show": json.dumps({"containers": [{"args": ["config"], "env": [{"name": "A", "value": "1"}]}]}),
}
"""What az answers where all is well."""


class AzureStandIn:
    """A folder for the PATH, and what its az was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "az").write_text(STAND_IN)
        (folder / "az").chmod(0o755)
        self.log = folder / "calls"
        self.forget()

    def environment(self, answers: Mapping[str, str] = HEALTHY) -> dict[str, str]:
        return {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "CALLS": str(self.log),
            "ANSWERS": "\n".join(f"{beginning}\t{answer}" for beginning, answer in answers.items()),
            "SLUICE_POLL_SECONDS": "0",
        }

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()

    def forget(self) -> None:
        self.log.write_text("")
