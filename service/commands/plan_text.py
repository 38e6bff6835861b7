"""A plan as a person reads it: what is known and from where, what is needed and why, settings to copy."""

from collections.abc import Iterator

import typer

from service.commands.common import answer_table
from service.ops.capacity import CosmosNeed, FleetNeed, HubNeed, Plan, Reach
from service.ops.figures import SHARES, Facts, Name

Row = tuple[str, str, str]


def print_plan(facts: Facts, made: Plan | None, there: Reach) -> None:
    """All of it."""
    answer_table(("what is known", "figure", "from"), list(_known(facts)))
    if made is not None:
        typer.echo()
        _print_needs(made)
    typer.echo()
    _print_reach(facts, there)
    for note in facts.notes:
        typer.echo(f"note: {note}")


def _known(facts: Facts) -> Iterator[Row]:
    for name in Name:
        figure = facts.figures.get(name)
        if figure is not None:
            shown = f"{figure.value:.1%}" if name in SHARES else _short(figure.value)
            yield name.value, shown, f"{figure.source}: {figure.how}"


def _print_needs(made: Plan) -> None:
    answer_table((f"{_short(made.rate)} records/s need", "figure", "why"), list(_needs(made)))
    for obstacle in made.obstacles:
        typer.echo(f"cannot be reached: {obstacle}")
    for warning in made.warnings:
        typer.echo(f"warning: {warning}")
    if made.next_limit is not None:
        typer.echo(f"next limit: {made.next_limit.what}, at {_short(made.next_limit.rate)} records/s")
    if made.reachable and made.fleet is not None:
        typer.echo("\nsettings:")
        for name, value in made.settings.items():
            typer.echo(f"{name}={value}")
        typer.echo(f"# replicas: {made.fleet.replicas}")


def _needs(made: Plan) -> Iterator[Row]:
    if made.cosmos is not None:
        yield from _of_cosmos(made.cosmos, made.headroom)
    yield from _of_hub(made.hub)
    if made.fleet is not None:
        yield from _of_fleet(made.fleet)


def _of_cosmos(need: CosmosNeed, headroom: float) -> Iterator[Row]:
    parts = f"{_short(need.ru)} for the records + {_short(need.headroom_ru)} head-room ({headroom:.0%})"
    if need.skew_ru >= 1:
        parts += f" + {_short(need.skew_ru)} idle beside the hottest partition"
    yield "RU/s", f"{need.throughput:,}", f"{parts}, as it is sold"
    each = need.throughput / need.physical_partitions
    hottest = (
        f"the hottest has {need.hottest_share:.1%} of the records: {_short(need.hottest_ru)} of its "
        f"{_short(each)} RU/s, {need.hottest_use:.0%}"
    )
    yield "physical partitions", f"{need.physical_partitions:,}", hottest


def _of_hub(need: HubNeed) -> Iterator[Row]:
    yield "throughput units", f"{need.units_out:,}", f"to read; {need.units_in:,} to send at this rate"
    yield "partitions of the hub", f"{need.partitions:,}", "each has one reader"


def _of_fleet(need: FleetNeed) -> Iterator[Row]:
    yield "workers", f"{need.workers:,}", "a core each"
    yield "replicas", f"{need.replicas:,}", f"WORKERS={need.workers_per_replica} in each"


def _print_reach(facts: Facts, there: Reach) -> None:
    if there.rate is None:
        typer.echo("what is there now: not known")
        return
    first, *others = there.limits
    typer.echo(f"what is there now carries {_short(first.rate)} records/s; what limits it: {first.what}")
    for limit in others:
        typer.echo(f"  then {limit.what}: {_short(limit.rate)} records/s")
    lag, arriving = facts.value(Name.LAG), facts.value(Name.ARRIVING) or 0.0
    if lag is None:
        return
    seconds = there.seconds_for(lag, arriving)
    takes = "grows for ever" if seconds is None else f"takes {_short(seconds)} s"
    typer.echo(f"the lag of {_short(lag)} events {takes} at that rate, while {_short(arriving)}/s arrive")


def _short(value: float) -> str:
    """As exact as a plan is: whole from a hundred on, three digits below."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
