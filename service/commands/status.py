"""`sluice status`: a running replica as a table, or the stores alone when none runs."""

import time
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from service.commands import leases
from service.commands.common import EnvFile, Json, answer_json, read_settings, table
from service.ops import replica

WATCH_SECONDS = 1.0
COLUMNS = (
    "partition",
    "epoch",
    "checkpoint",
    "lag",
    "lag s",
    "backlog",
    "done ahead",
    "checkpoint age s",
    "lost in min",
)


def status(
    env_file: EnvFile = None,
    url: Annotated[str | None, typer.Option(help="Address of the replica; else HTTP_HOST and HTTP_PORT.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """What a running replica says of itself; the leases and checkpoints alone when none answers."""
    address = url
    if address is None:
        address = replica.address(read_settings(env_file))
    found = replica.fetch_status(address)
    if found is None:
        if url is not None:
            typer.echo(f"sluice: nobody answers at {url}/status", err=True)
            raise typer.Exit(1)
        typer.echo(f"nobody answers at {address}/status; this is what storage and the hub say:", err=True)
        leases.list_leases(env_file, as_json)
        return
    if as_json:
        answer_json(found)
    elif watch:
        _watch(address, found)
    else:
        Console().print(_shown(found))


def _watch(address: str, found: dict[str, Any]) -> None:
    try:
        with Live(_shown(found), auto_refresh=False) as live:
            while True:
                time.sleep(WATCH_SECONDS)
                now = replica.fetch_status(address)
                live.update(_shown(now) if now else Text("nobody answers"), refresh=True)
    except KeyboardInterrupt:
        return


def _shown(found: dict[str, Any]) -> Group:
    rows = [
        (
            row["id"],
            row["epoch"],
            (row["checkpoint"] or {}).get("sequence"),
            row["lag"],
            row["lag_seconds"],
            row["backlog"],
            row["done_ahead"],
            row["checkpoint_age_seconds"],
            row["minutes_to_loss"],
        )
        for row in found["partitions"]
    ]
    records = found["records"]
    limit = f"limit {found['rate_limit']:g}/s" if found["rate_limit"] else "no limit"
    lines = [
        f"{found['host']}: up {found['seconds']:.0f} s, {found['rate']:g} records/s ({limit})"
        + (", draining" if found["draining"] else "")
        + (", paused" if found["backlog"]["paused"] else ""),
        (
            f"received {records['received']}, committed {records['committed']}, superseded {records['superseded']}, "
            f"dropped {records['dropped']}, dead-lettered {records['failed']}, retried {records['retried']}, "
            f"{found['ru']:,.0f} RU"
        ),
        *(f"fault: {fault}" for fault in found["faults"]),
    ]
    return Group(Text("\n".join(lines)), table(COLUMNS, rows))
