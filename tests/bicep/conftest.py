"""The files of bicep/ as text, so that a test can change one, and all faults found in them."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from service.ops.telemetry import INSTRUMENTS
from tests.bicep import language, rules
from tests.bicep.dialect import parse

ROOT = Path(__file__).parents[2]
BICEP = ROOT / "bicep"


def read_files() -> dict[str, str]:
    paths = [BICEP / "main.bicep", *sorted((BICEP / "modules").glob("*.bicep"))]
    paths += [BICEP / "roles.json", BICEP / "main.parameters.json"]
    return {str(path.relative_to(BICEP)): path.read_text() for path in paths}


def all_faults(sources: Mapping[str, str]) -> list[str]:
    files = {path: parse(source) for path, source in sources.items() if path.endswith(".bicep")}
    found = list(language.faults(files))
    if any(file.broken_lines for file in files.values()):
        return found
    metrics = {instrument.name for instrument in INSTRUMENTS}
    roles, parameters = (json.loads(sources[name]) for name in ("roles.json", "main.parameters.json"))
    return found + list(rules.faults(files, roles, parameters, metrics))


@pytest.fixture
def sources() -> dict[str, str]:
    return read_files()
