"""The command `sluice`: its groups of commands, and errors as messages with exit codes."""

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from service.commands import dead_letters, jobs, leases, local
from service.commands.common import EnvFile, Json, answer_json, read_settings, run
from service.commands.status import status
from service.errors import BadSettings, Fatal, SluiceError

app = typer.Typer(
    name="sluice",
    help="Moves records from Azure Event Hubs into Azure Cosmos DB at exactly the rate you choose, and loses none.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
config = typer.Typer(help="Look at the settings.", no_args_is_help=True)


def main() -> None:
    """Entry point: errors become a message and an exit code, never a traceback."""
    try:
        app()
    except BadSettings as error:
        for fault in error.faults:
            typer.echo(f"sluice: {fault}", err=True)
        sys.exit(error.exit_code)
    except SluiceError as error:
        typer.echo(f"sluice: {error}", err=True)
        sys.exit(error.exit_code if isinstance(error, Fatal) else 1)


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
    online: Annotated[bool, typer.Option("--online", help="Also try hub, storage, Cosmos and bulk.")] = False,
    as_json: Json = False,
) -> None:
    """Report every fault of the settings at once; exit code 78 when there is one."""
    settings = read_settings(env_file)
    if not online:
        typer.echo("settings: no fault found")
        return
    from service.ops.online_check import online_check  # noqa: PLC0415 - as above

    findings = run(online_check(settings))
    if as_json:
        answer_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            typer.echo(f"{'ok' if finding.ok else 'FAULT':6}{finding.what}: {finding.said}")
    raise typer.Exit(0 if all(finding.ok for finding in findings) else BadSettings.exit_code)


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


app.command()(status)
app.command()(local.produce)
app.command()(local.demo)
app.command()(jobs.backfill)
app.command()(jobs.reconcile)
app.command()(jobs.repair)
app.add_typer(leases.leases, name="leases")
app.add_typer(leases.checkpoints, name="checkpoints")
app.add_typer(dead_letters.dead_letters, name="deadletters")
app.add_typer(dead_letters.transform, name="transform")
app.add_typer(config, name="config")
app.add_typer(local.local, name="local")
