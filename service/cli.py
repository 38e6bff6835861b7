"""The command `sluice`. Each command is a few lines that call the module which does the work."""

import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
import uvloop
from dotenv import dotenv_values

from service.config import Settings, load
from service.errors import BadSettings, Fatal, SluiceError
from service.ops import logs

T = TypeVar("T")

app = typer.Typer(
    name="sluice",
    help="Moves records from Azure Event Hubs into Azure Cosmos DB at exactly the rate you choose, and loses none.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
local = typer.Typer(help="The local stack: Event Hubs, Cosmos and Azurite on loopback.", no_args_is_help=True)
config = typer.Typer(help="Look at the settings.", no_args_is_help=True)
app.add_typer(local, name="local")
app.add_typer(config, name="config")

EnvFile = Annotated[
    Path | None,
    typer.Option("--env-file", metavar="FILE", help="Read NAME=value lines from FILE; the environment wins over it."),
]


def main() -> None:
    """Entry point: errors become a message and an exit code, never a traceback."""
    try:
        app()
    except BadSettings as error:
        for fault in error.faults:
            typer.echo(f"sluice: {fault}", err=True)
        sys.exit(error.exit_code)
    except Fatal as error:
        typer.echo(f"sluice: {error}", err=True)
        sys.exit(error.exit_code)
    except SluiceError as error:
        typer.echo(f"sluice: {error}", err=True)
        sys.exit(1)


@app.command()
def run(env_file: EnvFile = None) -> None:
    """Consume: from the hub into Cosmos, until SIGTERM or Ctrl-C."""
    from service import app as service_app  # noqa: PLC0415 - the Azure SDKs take most of a second to import

    settings = _settings(env_file)
    logs.configure(settings.log_level, settings.log_format)
    _run(service_app.run(settings, env_file))


@app.command(hidden=True)
def worker(env_file: EnvFile = None) -> None:
    """One of several workers; started by `sluice run` with WORKERS above 1."""
    from service import app as service_app  # noqa: PLC0415 - the Azure SDKs take most of a second to import

    settings = _settings(env_file)
    logs.configure(settings.log_level, settings.log_format)
    _run(service_app.run_worker(settings, env_file))


@local.command("up")
def local_up(
    env_file: Annotated[
        Path | None,
        typer.Option("--env-file", metavar="FILE", help="Write the settings of this stack to FILE once it answers."),
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the hub.")] = 4,
    physical_partitions: Annotated[int, typer.Option(min=1, help="Ranges of the Cosmos container.")] = 3,
    throughput: Annotated[int, typer.Option(min=0, help="RU/s of the container; 0 = never throttle.")] = 0,
    event_hubs_port: Annotated[int, typer.Option(min=0, help="0 = any free one.")] = 0,
    cosmos_port: Annotated[int, typer.Option(min=0, help="0 = any free one.")] = 0,
    blob_port: Annotated[int, typer.Option(min=0, help="0 = any free one.")] = 0,
) -> None:
    """Start the local stack and keep it until SIGTERM or Ctrl-C."""
    from service.app import stop_signals  # noqa: PLC0415 - the Azure SDKs take most of a second to import
    from service.local import stack  # noqa: PLC0415 - extra `local`

    logs.configure()
    options = stack.StackOptions(
        partitions=partitions,
        physical_partitions=physical_partitions,
        throughput=throughput,
        event_hubs_port=event_hubs_port,
        cosmos_port=cosmos_port,
        blob_port=blob_port,
    )

    async def until_told() -> None:
        with stop_signals() as stop:
            await stack.up(options, env_file, stop)

    _run(until_told())


@app.command()
def produce(
    count: Annotated[int, typer.Option(min=1, help="Events to send.")],
    env_file: EnvFile = None,
    rate: Annotated[int, typer.Option(min=0, help="Events per second; 0 = as fast as it goes.")] = 0,
    keys: Annotated[int, typer.Option(min=1, help="Distinct values of `key`.")] = 1000,
    size: Annotated[int, typer.Option(min=1, help="Bytes of a body, about.")] = 1024,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed gives the same documents.")] = None,
    updates: Annotated[float, typer.Option(min=0, max=1, help="Share that writes an earlier document again.")] = 0.0,
    poison: Annotated[int, typer.Option(min=0, help="Events among them that are no JSON.")] = 0,
) -> None:
    """Send documents with `id` and `key` to the hub, as load."""
    from service.local import produce as producing  # noqa: PLC0415 - the Azure SDKs take long to import

    settings = _settings(env_file)
    logs.configure(settings.log_level, settings.log_format)
    load_ = producing.Load(count, rate, keys, size, seed, updates, poison)
    sent = _run(producing.produce_with_progress(settings, load_))
    typer.echo(f"{sent} events sent")


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(min=1, help="How long the producer sends.")] = 60,
    rate: Annotated[int, typer.Option(min=0, help="Records per second that the consumer takes.")] = 2000,
) -> None:
    """Everything at once: local stack, producer, consumer, live figures, and a sum that must add up."""
    from service.local import demo as demonstration  # noqa: PLC0415 - extra `local`

    raise typer.Exit(_run(demonstration.demo(seconds, rate)))


@config.command("check")
def config_check(env_file: EnvFile = None) -> None:
    """Report every fault of the settings at once; exit code 78 when there is one."""
    _settings(env_file)
    typer.echo("settings: no fault found")


@config.command("show")
def config_show(
    env_file: EnvFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Print the settings in force; secrets are shown as stars."""
    import orjson  # noqa: PLC0415 - only here

    shown = {name.upper(): value for name, value in _settings(env_file).model_dump(mode="json").items()}
    if as_json:
        typer.echo(orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode())
        return
    for name, value in shown.items():
        typer.echo(f"{name}={'' if value is None else value}")


def _settings(env_file: Path | None) -> Settings:
    """The settings; other variables of the file (AZURE_*, OTEL_*, SSL_CERT_FILE) go into the environment."""
    settings = load(env_file)
    if env_file is not None:
        for name, value in dotenv_values(env_file, interpolate=False).items():
            if name.lower() not in Settings.model_fields and value is not None:
                os.environ.setdefault(name, value)
    return settings


def _run(work: Coroutine[Any, Any, T]) -> T:
    return uvloop.run(work)
