"""Several workers seen as one replica: their status and their metrics summed."""

from collections.abc import Iterable, Sequence
from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

_LARGEST = ("oldest_seconds", "seconds", "partitions_in_hub")
"""Fields of the status where the sum would mean nothing."""
_LARGEST_METRICS = frozenset(
    {"sluice_backlog_oldest_seconds", "sluice_backlog_paused", "sluice_request_units_per_record"}
)


def merge_status(host: str, workers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One status from many: numbers are summed, partitions listed together, each worker's host named."""
    merged: dict[str, Any] = {}
    for worker in workers:
        _add(merged, worker)
    merged["host"] = host
    merged["hosts"] = [worker["host"] for worker in workers]
    merged["partitions"] = sorted(merged.get("partitions", []), key=lambda row: (len(row["id"]), row["id"]))
    return merged


def _add(into: dict[str, Any], other: dict[str, Any]) -> None:
    for name, value in other.items():
        before = into.get(name)
        if isinstance(value, dict):
            _add(into.setdefault(name, {}), value)
        elif isinstance(value, list):
            into[name] = [*(before or []), *value]
        elif isinstance(value, bool) or before is None or value is None:
            into[name] = before or value
        elif isinstance(value, int | float):
            into[name] = max(before, value) if name in _LARGEST else before + value


def merge_metrics(texts: Iterable[str]) -> bytes:
    """One page of metrics from many: samples with the same name and labels are summed."""
    families: dict[str, Metric] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text):
            families.setdefault(family.name, family)
            sums = values.setdefault(family.name, {})
            for sample in family.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                if sample.name in _LARGEST_METRICS:
                    sums[key] = max(sums.get(key, 0.0), sample.value)
                else:
                    sums[key] = sums.get(key, 0.0) + sample.value
    lines = []
    for name, family in families.items():
        suffix = "_total" if family.type == "counter" else ""
        lines += [f"# HELP {name}{suffix} {family.documentation}", f"# TYPE {name}{suffix} {family.type}"]
        for (sample_name, labels), value in values[name].items():
            text = ",".join(f'{key}="{label}"' for key, label in labels)
            lines.append(f"{sample_name}{{{text}}} {value}" if text else f"{sample_name} {value}")
    return ("\n".join(lines) + "\n").encode()
