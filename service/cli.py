"""The command `sluice`: its groups of commands, and errors as messages with exit codes."""

import sys

import typer

from service.commands import leases, local
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
def config_check(env_file: EnvFile = None) -> None:
    """Report every fault of the settings at once; exit code 78 when there is one."""
    read_settings(env_file)
    typer.echo("settings: no fault found")


@config.command("show")
def config_show(env_file: EnvFile = None, as_json: Json = False) -> None:
    """Print the settings in force; secrets are shown as stars."""
    shown = {name.upper(): value for name, value in read_settings(env_file).model_dump(mode="json").items()}
    if as_json:
        answer_json(shown)
        return
    for name, value in shown.items():
        typer.echo(f"{name}={'' if value is None else value}")


app.command()(status)
app.command()(local.produce)
app.command()(local.demo)
app.add_typer(leases.leases, name="leases")
app.add_typer(leases.checkpoints, name="checkpoints")
app.add_typer(config, name="config")
app.add_typer(local.local, name="local")
