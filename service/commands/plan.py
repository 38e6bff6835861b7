"""`sluice plan`: what a rate needs, and what can be reached with what is there, before money is spent."""

import math
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from service.commands.common import EnvFile, Json, answer_json, read_settings, run
from service.commands.plan_text import print_plan
from service.config import Settings
from service.errors import SetupFault
from service.ops.capacity import Plan, Reach
from service.ops.figures import Facts, Name
from service.ops.planner import plan as planned
from service.ops.planner import reach
from service.units import parse_bytes, parse_duration

NOT_REACHABLE = 3
"""Exit code: the plan is made, but what was asked for is not in it whole."""
SAMPLE_EVENTS = 5_000
"""Enough for the share of one physical partition in ten to within a tenth of it; about 5 MB of 1 KB events."""


def _number(text: str) -> float:
    """A number above 0."""
    return _finite(text, float, "a number such as 4000", above_zero=True)


def _bytes(text: str) -> float:
    """A size above 0."""
    return _finite(text, parse_bytes, "a size such as 1024 or 4KiB", above_zero=True)


def _seconds(text: str) -> float:
    """A duration above 0."""
    return _finite(text, parse_duration, "a duration such as 180s or 3m", above_zero=True)


def _share(text: str) -> float:
    """A part of one; of head-room, perhaps more."""
    return _finite(text, _part, "a share such as 0.2 or 20%", above_zero=False)


def _hottest(text: str) -> float:
    """The share of a key: at most all."""
    share = _share(text)
    if share > 1:
        raise typer.BadParameter(f"{text} is more than all; write a share such as 0.2 or 20%")
    return share


def _part(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def _finite(text: str, parse: Callable[[str], float], wanted: str, *, above_zero: bool) -> float:
    try:
        number = parse(text)
    except ValueError:
        raise typer.BadParameter(f"{text} is not {wanted}") from None
    if not math.isfinite(number) or number < 0 or (above_zero and not number):
        raise typer.BadParameter(f"{text} must be {'more than 0' if above_zero else '0 or more'}: {wanted}")
    return number


def plan(
    env_file: EnvFile = None,
    rate: Annotated[float | None, typer.Option(parser=_number, metavar="R", help="Records per second wanted.")] = None,
    records: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="So many records in all; with --within.")
    ] = None,
    within: Annotated[
        float | None, typer.Option(parser=_seconds, metavar="TIME", help="In this time, such as 3m; with --records.")
    ] = None,
    ru_per_record: Annotated[
        float | None, typer.Option(parser=_number, metavar="X", help="RU to commit one; else measured, or 6 for 1 KB.")
    ] = None,
    record_bytes: Annotated[
        float | None, typer.Option(parser=_bytes, metavar="B", help="Size of one in the hub, such as 1KiB.")
    ] = None,
    hottest_share: Annotated[
        float | None,
        typer.Option(parser=_hottest, metavar="P", help="Share of the hottest partition key, such as 0.2 or 20%."),
    ] = None,
    records_per_core: Annotated[
        float | None, typer.Option(parser=_number, metavar="C", help="Records per second that one worker takes.")
    ] = None,
    headroom: Annotated[
        float | None, typer.Option(parser=_share, metavar="H", help="RU/s beyond the need, such as 20%; shown apart.")
    ] = None,
    throughput: Annotated[
        float | None, typer.Option(parser=_number, metavar="RU", help="RU/s that the container has; else as it says.")
    ] = None,
    physical_partitions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Ranges of the container; else as it says.")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Partitions of the hub; else as it says.")
    ] = None,
    sample: Annotated[
        int, typer.Option(min=0, metavar="K", help="Events to look at where nobody reads the hub; 0 = none.")
    ] = SAMPLE_EVENTS,
    as_json: Json = False,
) -> None:
    """What a rate needs of Cosmos, the hub and the replicas, and what can be reached with what is there.

    Disturbs nobody: what a consumer reads is left to it. Without settings it works by the options alone. Exit code 3:
    the rate cannot be reached, whatever is bought.
    """
    rate = _wanted(rate, records, within)
    settings = _settings(env_file)
    facts = _facts(settings, sample)
    facts.give(Name.RATE, rate, "--rate" if records is None else f"{records:,} records in {within:g} s")
    facts.give(Name.RU_PER_RECORD, ru_per_record, "--ru-per-record")
    facts.give(Name.RECORD_BYTES, record_bytes, "--record-bytes")
    facts.give(Name.HOTTEST_KEY, hottest_share, "--hottest-share")
    facts.give(Name.RECORDS_PER_CORE, records_per_core, "--records-per-core")
    facts.give(Name.HEADROOM, headroom, "--headroom")
    facts.give(Name.THROUGHPUT, throughput, "--throughput")
    facts.give(Name.PHYSICAL_PARTITIONS, physical_partitions, "--physical-partitions")
    facts.give(Name.HUB_PARTITIONS, partitions, "--partitions")
    facts.assume()
    supply = facts.supply(settings)
    there = reach(facts.cost(), supply)
    if rate is None and not there.limits:
        _nothing_known(facts, settings)
    made = None
    if rate is not None:
        spare = facts.figures[Name.HEADROOM].value
        made = planned(rate, facts.cost(), supply, headroom=spare, records=records or 0)
    if as_json:
        answer_json(_as_json(facts, made, there))
    else:
        print_plan(facts, made, there)
    raise typer.Exit(NOT_REACHABLE if made is not None and not made.reachable else 0)


def _wanted(rate: float | None, records: int | None, within: float | None) -> float | None:
    """The rate that is asked for, if one is."""
    if (records is None) != (within is None):
        raise typer.BadParameter("give --records and --within together: so many records in that time")
    if rate is not None and records is not None:
        raise typer.BadParameter("give --rate, or --records and --within, not both: they may contradict each other")
    return records / within if records is not None and within is not None else rate


def _settings(env_file: Path | None) -> Settings | None:
    """None where there are none at all: then the options alone must do."""
    named = ("EVENTHUB_CONNSTRING", "EVENTHUB_NAMESPACE")
    if env_file is None and not any(os.environ.get(name) for name in named):
        return None
    return read_settings(env_file)


def _facts(settings: Settings | None, sample: int) -> Facts:
    if settings is None:
        return Facts()
    from service.ops.measure import measure  # noqa: PLC0415 - the Azure SDKs take most of a second to import

    return run(measure(settings, sample))


def _nothing_known(facts: Facts, settings: Settings | None) -> None:
    if settings is None:
        raise typer.BadParameter(
            "say what is wanted (--rate, or --records and --within), what is there (--throughput and "
            "--physical-partitions, --partitions), or where to look (--env-file)"
        )
    raise SetupFault("; ".join(["nothing could be found out", *(note.rstrip(".") for note in facts.notes)]))


def _as_json(facts: Facts, made: Plan | None, there: Reach) -> dict[str, Any]:
    figures = {name.name.lower(): asdict(facts.figures[name]) for name in Name if name in facts.figures}
    return {
        "figures": figures,
        "plan": None if made is None else _plan_as_json(made),
        "reach": {
            "rate": there.rate,
            "limits": [asdict(limit) for limit in there.limits],
            "lag_seconds": there.seconds_for(facts.value(Name.LAG) or 0, facts.value(Name.ARRIVING) or 0.0),
        },
        "notes": facts.notes,
    }


def _plan_as_json(made: Plan) -> dict[str, Any]:
    shown = asdict(made) | {"reachable": made.reachable, "settings": made.settings}
    if made.cosmos is not None:
        shown["cosmos"]["hottest_use"] = made.cosmos.hottest_use
    return shown
