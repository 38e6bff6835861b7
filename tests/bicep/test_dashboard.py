"""The dashboard asks only for metrics that the service gives, and shows all of them."""

import dataclasses
import json
import re

import pytest

from service.ops import telemetry
from tests.bicep.conftest import ROOT

DASHBOARD = json.loads((ROOT / "deploy/dashboards/grafana.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


@pytest.fixture
def exported(monkeypatch) -> dict[str, str]:
    """The names at /metrics, as the exporter itself makes them, with their kinds."""
    rows = [dataclasses.replace(row, read=lambda _: [(1.0, {})]) for row in telemetry.INSTRUMENTS]
    monkeypatch.setattr(telemetry, "INSTRUMENTS", rows)
    made = telemetry.Telemetry(lambda: {"any": 1}, host="test")
    for name in [name for name in vars(made) if name.startswith("_") and hasattr(getattr(made, name), "record")]:
        getattr(made, name).record(1.0)
    lines, _ = made.prometheus()
    made.close()
    kinds = re.findall(r"^# TYPE (\w+) (\w+)$", lines.decode(), re.MULTILINE)
    return dict(kinds)


def test_every_query_asks_for_metrics_that_exist(exported):
    wanted = {name for query in QUERIES for name in re.findall(r"sluice_\w+", query)}
    known = exported.keys() | {f"{name}_bucket" for name, kind in exported.items() if kind == "histogram"}
    assert wanted <= known, wanted - known


def test_every_metric_is_shown(exported):
    shown = " ".join(QUERIES)
    missing = {name for name in exported if not re.search(rf"\b{name}(_bucket)?\b", shown)}
    assert missing == set()


def test_counters_are_shown_as_rates(exported):
    for query in QUERIES:
        for name in re.findall(r"sluice_\w+_total", query):
            assert re.search(rf"(rate|increase)\({name}", query) or "lost_to_retention" in name, query


def test_panels_have_numbers_of_their_own_and_do_not_overlap():
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_every_symptom_that_a_panel_names_is_in_the_runbook():
    headings = re.findall(r"^#+ (.+)$", (ROOT / "deploy/RUNBOOK.md").read_text(), re.MULTILINE)
    for panel in PANELS:
        for symptom in re.findall(r"RUNBOOK: ([^.]+)\.", panel["description"]):
            assert symptom in headings, symptom
