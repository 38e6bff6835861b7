"""The command `sluice`: its groups of commands, and errors as messages with exit codes."""

import importlib.metadata
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from service.commands import dead_letters, jobs, leases, local
from service.commands.common import EnvFile, Json, answer_json, read_settings, run
from service.commands.plan import plan
from service.commands.status import status
from service.config import Settings
from service.errors import BadSettings, Fatal, SluiceError

app = typer.Typer(
    name="sluice",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
config = typer.Typer(help="Check and show the settings.", no_args_is_help=True)

_HERE, _LOOK, _HISTORY = "Without Azure, on this machine", "Look and mend", "History (PySpark, Java 17+)"
_WHERE_SETTINGS_COME_FROM = (
    "Settings are environment variables, or NAME=value lines in a file given with --env-file; `sluice config table` "
    "lists them all. `sluice local up --env-file FILE` writes such a file for a stack on this machine."
)


def main() -> None:
    """Entry point: errors become a message and an exit code, never a traceback."""
    try:
        app()
    except BadSettings as error:
        for fault in error.faults:
            typer.echo(f"sluice: {fault}", err=True)
        if any(": missing" in fault for fault in error.faults):
            typer.echo(_WHERE_SETTINGS_COME_FROM, err=True)
        sys.exit(error.exit_code)
    except SluiceError as error:
        typer.echo(f"sluice: {error}", err=True)
        sys.exit(error.exit_code if isinstance(error, Fatal) else 1)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sluice {importlib.metadata.version('sluice')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Moves records from Azure Event Hubs into Azure Cosmos DB at exactly the rate you choose, and loses none."""


@app.command("run")
def run_service(env_file: EnvFile = None) -> None:
    """Consume: from the hub into Cosmos, until SIGTERM or Ctrl-C."""
    from service import app as service_app  # noqa: PLC0415 - the Azure SDKs take most of a second to import

    run(service_app.run(read_settings(env_file), env_file))


@app.command(hidden=True)
def worker(env_file: EnvFile = None) -> None:
    """One of several workers; started by `sluice run` with WORKERS above 1."""
    from service import app as service_app  # noqa: PLC0415 - as above

    run(service_app.run_worker(read_settings(env_file), env_file))


@config.command("check")
def config_check(
    env_file: EnvFile = None,
    online: Annotated[
        bool, typer.Option("--online", help="Also try identity, hub, storage, Cosmos and one bulk request.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Report every fault of the settings at once; exit code 78 when there is one."""
    try:
        findings = _findings(read_settings(env_file), online=online)
    except BadSettings as error:
        if not as_json:
            raise
        findings = [{"what": "settings", "ok": False, "said": fault} for fault in error.faults]
    if as_json:
        answer_json(findings)
    else:
        for finding in findings:
            typer.echo(f"{'ok' if finding['ok'] else 'FAULT':6}{finding['what']}: {finding['said']}")
    raise typer.Exit(0 if all(finding["ok"] for finding in findings) else BadSettings.exit_code)


def _findings(settings: Settings, *, online: bool) -> list[dict[str, Any]]:
    if not online:
        return [{"what": "settings", "ok": True, "said": "no fault found"}]
    from service.ops.online_check import online_check  # noqa: PLC0415 - as above

    return [asdict(finding) for finding in run(online_check(settings))]


@config.command("show")
def config_show(env_file: EnvFile = None, as_json: Json = False) -> None:
    """Print the settings in force; secrets are shown as stars."""
    shown = {name.upper(): value for name, value in read_settings(env_file).model_dump(mode="json").items()}
    if as_json:
        answer_json(shown)
        return
    for name, value in shown.items():
        typer.echo(f"{name}={'' if value is None else value}")


@config.command("table")
def config_table() -> None:
    """Print the table of settings as the README has it."""
    from service.ops.settings_table import settings_table  # noqa: PLC0415 - only here

    typer.echo(settings_table())


app.command(rich_help_panel=_LOOK)(status)
app.command(rich_help_panel=_LOOK)(plan)
app.add_typer(leases.leases, name="leases", rich_help_panel=_LOOK)
app.add_typer(leases.checkpoints, name="checkpoints", rich_help_panel=_LOOK)
app.add_typer(dead_letters.dead_letters, name="deadletters", rich_help_panel=_LOOK)
app.add_typer(dead_letters.transform, name="transform")
app.add_typer(config, name="config")
app.command(rich_help_panel=_HISTORY)(jobs.backfill)
app.command(rich_help_panel=_HISTORY)(jobs.reconcile)
app.command(rich_help_panel=_HISTORY)(jobs.repair)
app.command(rich_help_panel=_HERE)(local.demo)
app.add_typer(local.local, name="local", rich_help_panel=_HERE)
app.command(rich_help_panel=_HERE)(local.produce)
