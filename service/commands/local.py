"""`sluice local up`, `sluice produce`, `sluice demo`."""

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from service.commands.common import EnvFile, read_settings, run
from service.errors import SetupFault
from service.ops import logs
from service.units import parse_duration

local = typer.Typer(help="The local stack: Event Hubs, Cosmos and Azurite on loopback.", no_args_is_help=True)


@local.command("up")
def up(
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
    tls: Annotated[
        bool, typer.Option("--tls", help="All three over TLS; FILE then names the certificate too.")
    ] = False,
    websocket_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="AMQP over WebSockets as well; 0 = any free one. FILE then names it."),
    ] = None,
    control: Annotated[
        bool,
        typer.Option("--control", help="HTTP ports to throttle, split, freeze and break things; FILE then names them."),
    ] = False,
    capture: Annotated[
        bool, typer.Option("--capture", help="Write Capture files into the container `capture`.")
    ] = False,
    capture_every: Annotated[str, typer.Option(help="How often, such as 10s.")] = "10s",
    data: Annotated[Path | None, typer.Option(help="Keep everything in this folder over a restart.")] = None,
) -> None:
    """Start the local stack and keep it until SIGTERM or Ctrl-C."""
    _need_local()
    from service.local import stack  # noqa: PLC0415 - extra `local`
    from service.signals import stop_signals  # noqa: PLC0415 - as above

    logs.configure()
    options = stack.StackOptions(
        partitions=partitions,
        physical_partitions=physical_partitions,
        throughput=throughput,
        event_hubs_port=event_hubs_port,
        cosmos_port=cosmos_port,
        blob_port=blob_port,
        tls=tls,
        websocket_port=websocket_port,
        control=control,
        capture_seconds=parse_duration(capture_every) if capture else 0.0,
        data=data,
    )

    async def until_told() -> None:
        with stop_signals() as stop:
            await stack.up(options, env_file, stop)

    run(until_told())


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
    _need_local()
    from service.local import produce as producing  # noqa: PLC0415 - the Azure SDKs take long to import

    load = producing.Load(count, rate, keys, size, seed, updates, poison)
    sent = run(producing.produce_with_progress(read_settings(env_file), load))
    typer.echo(f"{sent} events sent")


def demo(
    seconds: Annotated[float, typer.Option(min=1, help="How long it takes, about.")] = 60,
    rate: Annotated[int, typer.Option(min=0, help="Records per second that the consumer takes.")] = 2000,
) -> None:
    """Everything at once: local stack, producer, consumer, live figures, and a sum that must add up."""
    _need_local()
    from service.local import demo as demonstration  # noqa: PLC0415 - extra `local`

    raise typer.Exit(run(demonstration.demo(seconds, rate)))


def _need_local() -> None:
    """The service's image has no local stack; elsewhere its packages are an extra."""
    if importlib.util.find_spec("service.local") is None or importlib.util.find_spec("cryptography") is None:
        raise SetupFault("the local stack is not installed here: use a working copy (`make setup`), not the image.")
