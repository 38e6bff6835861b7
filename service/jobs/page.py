"""The report as one HTML file: everything in it, nothing fetched. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from service.jobs.balance import CLASSES
from service.jobs.svg import columns, legend, stacked_bars

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}
h1{font-size:1.5em;margin-bottom:.2em}h2{font-size:1.1em;margin:2em 0 .4em}
svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#444}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.2em .9em .2em 0;text-align:left}
td.n,th.n{text-align:right}.verdict{padding:.7em 1em;border-radius:6px;color:#fff;font-size:1.15em}
.good{background:#2f7d4f}.bad{background:#b3322c}.part{background:#a06a1b}
.mark{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 1em;vertical-align:-1px}
.legend{font-size:.9em;margin:.2em 0}
footer{margin-top:3em;color:#777;font-size:.85em}
"""
_SHOWN_KEYS, _SHOWN_HOURS = 10, 400


def page(title: str, verdict: str, mood: str, sections: Iterable[str]) -> str:
    """A whole page; `mood` is good, bad or part."""
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<p class="verdict {mood}">{escape(verdict)}</p>{"".join(sections)}'
        f"<footer>Sluice, {made}</footer></body></html>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Numbers to the right, all else to the left."""
    first = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table><tr>{first}</tr>{lines}</table>"


def _cell(value: Any) -> str:  # noqa: ANN401 - what a table may hold
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="n">{value:,.0f}</td>' if isinstance(value, int) else f'<td class="n">{value:,.1f}</td>'
    return f"<td>{escape(str(value))}</td>"


def reconcile_page(summary: Mapping[str, Any], differences: Sequence[Mapping[str, Any]], keys: Counter[str]) -> str:
    """What a manager has to know first, then where to look."""
    states = {name: count for name, count in summary["states"].items() if count}
    balance = summary["balance"]
    wrong, left_out = summary["differences"], summary["left_out"]
    came_in = sum(row["came_in"] for row in balance)
    lost = summary["unaccounted"]
    if left_out:
        verdict, mood = (
            f"Incomplete: {len(left_out)} files could not be read. {wrong:,} differences in the rest.",
            "part",
        )
    elif wrong or lost:
        verdict, mood = (
            f"{wrong:,} documents are not as the stream says; {lost:,} of {came_in:,} records are missing.",
            "bad",
        )
    else:
        verdict, mood = f"All {came_in:,} records are accounted for: nothing is missing, nothing is wrong.", "good"
    closes = "closes" if summary["balance_closes"] else "DOES NOT CLOSE"
    partitions = sorted(_sums(balance, "partition").items(), key=lambda each: (len(each[0]), each[0]))
    hours = sorted(_sums(balance, "hour").items())
    sections = [
        "<h2>Documents by state</h2>",
        table(["state", "documents"], states.items()),
        f"<h2>What became of the records, by partition (the balance {closes})</h2>",
        legend(CLASSES),
        stacked_bars([(f"partition {name}", counts) for name, counts in partitions], "By partition"),
        f"<h2>By hour{f' (the last {_SHOWN_HOURS} of {len(hours):,})' if len(hours) > _SHOWN_HOURS else ''}</h2>",
        columns([(_hour(hour), counts) for hour, counts in hours[-_SHOWN_HOURS:]], "By hour"),
        "<h2>What was read</h2>",
        table(
            ["partition", "first sequence", "last sequence", "records", "gaps", "checkpoint"],
            [
                (
                    name,
                    each["first"],
                    each["last"],
                    each["records"],
                    each["gaps"],
                    "none" if each["bound"] is None else each["bound"],
                )
                for name, each in summary["covered"].items()
            ],
        ),
        f"<p>From {escape(summary['reads'])}, in {summary['seconds']:,.0f} s, for {summary['ru']:,.0f} RU.</p>",
    ]
    if keys:
        sections += [
            "<h2>Partition keys with the most differences</h2>",
            table(["key", "differences"], keys.most_common(_SHOWN_KEYS)),
        ]
    if differences:
        sections += [
            "<h2>Examples</h2>",
            _examples(differences),
            "<p>All of them are in <code>differences/</code>.</p>",
        ]
    if left_out:
        sections += ["<h2>Files that were left out</h2>", table(["file", "why"], left_out.items())]
    return page("Reconciliation", verdict, mood, sections)


def backfill_page(summary: Mapping[str, Any]) -> str:
    """What a run has done."""
    records = {name: count for name, count in summary["records"].items() if count}
    units = f"{summary['units_done']} of {summary['units']} units"
    if summary["dry_run"]:
        verdict, mood = f"Dry run: nothing was written. {units} read.", "part"
    elif summary["complete"]:
        verdict, mood = f"Done: {units}, {records.get('committed', 0):,} documents written.", "good"
    else:
        verdict, mood = f"Incomplete: {units} done. Run it again to go on.", "part"
    bars = [(f"partition {name}", counts) for name, counts in summary["partitions"].items()]
    sections = [
        "<h2>Records by outcome</h2>",
        table(["outcome", "records"], records.items()),
        "<h2>By partition</h2>",
        legend(sorted({name for _, counts in bars for name in counts})),
        stacked_bars(bars, "By partition"),
        f"<p>Run {escape(summary['run_id'])}, {summary['seconds']:,.0f} s, {summary['ru']:,.0f} RU.</p>",
    ]
    if summary["left_out"]:
        sections += ["<h2>Files that were left out</h2>", table(["file", "why"], summary["left_out"].items())]
    return page("Backfill", verdict, mood, sections)


def _sums(balance: Sequence[Mapping[str, Any]], name: str) -> dict[Any, dict[str, int]]:
    """What became of the records, by partition or by hour."""
    sums: dict[Any, dict[str, int]] = {}
    for row in balance:
        counts = sums.setdefault(row[name], dict.fromkeys(CLASSES, 0))
        for each in CLASSES:
            counts[each] += row[each]
    return sums


def _hour(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:00}"


def _examples(differences: Sequence[Mapping[str, Any]]) -> str:
    return table(
        ["state", "key", "id", "should be of", "is of"],
        [
            (row["state"], row["key"], row["id"], _place(row["stamp"]), _place(row["found_stamp"]))
            for row in differences
        ],
    )


def _place(stamp: Mapping[str, Any] | None) -> str:
    return "-" if not stamp else f"partition {stamp['partition']}, sequence {stamp['sequence']}"
