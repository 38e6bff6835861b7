"""`sluice leases` and `sluice checkpoints`: what an operator does to the consumer group."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import orjson
import typer

from service import options
from service.commands.common import DryRun, EnvFile, Force, Json, answer_json, answer_table, read_settings, run
from service.config import Settings
from service.errors import BadSettings
from service.ops.admin import Admin, Change, LeaseView, parse_export
from service.source.blobs import Blobs
from service.source.connect import connect_blobs, connect_hub
from service.source.event_hubs import EventHubs
from service.source.events import Hub, PartitionId
from service.source.foreign import Layout, stored_by
from service.source.start import AtOffset, AtSequence, Position, parse_start
from service.source.store import Stored

leases = typer.Typer(help="Who owns which partition.", no_args_is_help=True)
checkpoints = typer.Typer(help="How far each partition is; move, export, import.", no_args_is_help=True)

Partitions = Annotated[list[str] | None, typer.Argument(help="Partitions; all where none is named.")]


@leases.command("list")
def list_leases(env_file: EnvFile = None, as_json: Json = False) -> None:
    """Every partition of the hub: owner, epoch, checkpoint, lag."""
    views = run(_views(read_settings(env_file)))
    if as_json:
        answer_json([asdict(view) for view in views])
        return
    rows = [(v.partition, v.owner if v.live else "", v.epoch, _sequence(v), v.lag, v.wanted_by) for v in views]
    answer_table(("partition", "owner", "epoch", "checkpoint", "lag", "asked for by"), rows)


@leases.command("release")
def release(
    partitions: Partitions = None,
    env_file: EnvFile = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Free partitions, so that any host can take them at once."""
    settings = read_settings(env_file)

    async def work() -> Sequence[Change]:
        async with _admin(settings) as group:
            return await group.admin.release(partitions or [], force=force, dry_run=dry_run)

    _answer_changes(run(work()), as_json=as_json)


@checkpoints.command("show")
def show(env_file: EnvFile = None, as_json: Json = False) -> None:
    """The checkpoint of every partition."""
    views = run(_views(read_settings(env_file)))
    if as_json:
        answer_json([asdict(view) for view in views])
        return
    rows = [(v.partition, _sequence(v), v.checkpoint.offset if v.checkpoint else None, v.lag) for v in views]
    answer_table(("partition", "sequence", "offset", "lag"), rows)


@checkpoints.command("set")
def set_checkpoints(
    partitions: Partitions = None,
    env_file: EnvFile = None,
    to: Annotated[str | None, typer.Option(help="`earliest`, `latest` or an ISO time.")] = None,
    sequence: Annotated[int | None, typer.Option(help="The event of this sequence is the next to be read.")] = None,
    offset: Annotated[str | None, typer.Option(help="The event of this offset is the next to be read.")] = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Move checkpoints, forwards or back. Give one of --to, --sequence, --offset."""
    if sum(given is not None for given in (to, sequence, offset)) != 1:
        raise typer.BadParameter("give exactly one of --to, --sequence and --offset")
    position = _position(to, sequence, offset)
    settings = read_settings(env_file)

    async def work() -> Sequence[Change]:
        async with _admin(settings) as group:
            return await group.admin.set(partitions or [], position, force=force, dry_run=dry_run)

    _answer_changes(run(work()), as_json=as_json)


@checkpoints.command("export")
def export(
    env_file: EnvFile = None,
    file: Annotated[Path | None, typer.Option("--file", help="Write to FILE instead of standard output.")] = None,
) -> None:
    """Every checkpoint as one JSON document."""
    settings = read_settings(env_file)

    async def work() -> dict[str, object]:
        async with _admin(settings) as group:
            return await group.admin.export()

    document = run(work())
    if file is None:
        answer_json(document)
    else:
        file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))


@checkpoints.command("import")
def import_checkpoints(
    env_file: EnvFile = None,
    file: Annotated[Path | None, typer.Option("--file", help="A document that `export` wrote.")] = None,
    layout: Annotated[str | None, typer.Option("--from", help="`lease` or `ownership`: the other layout here.")] = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take checkpoints over, from a file or from the other LEASE_MODE's blobs in the same container."""
    if (file is None) == (layout is None) or layout not in (None, "lease", "ownership"):
        raise typer.BadParameter("give one of --file FILE and --from lease|ownership")
    settings = read_settings(env_file)

    async def work() -> Sequence[Change]:
        async with _admin(settings) as group:
            if file is not None:
                found = _exported(file)
            else:
                which: Layout = "lease" if layout == "lease" else "ownership"
                found = await stored_by(group.blobs, await group.hub(), which)
            return await group.admin.import_(found, force=force, dry_run=dry_run)

    _answer_changes(run(work()), as_json=as_json)


async def _views(settings: Settings) -> Sequence[LeaseView]:
    async with _admin(settings) as group:
        return await group.admin.leases()


@dataclass(frozen=True, slots=True)
class _Group:
    """The consumer group of the settings, within reach of an operator."""

    admin: Admin
    client: EventHubs
    blobs: Blobs
    name: str

    async def hub(self) -> Hub:
        """The hub in its present life."""
        description = await self.client.describe()
        return Hub(self.client.namespace, self.client.name, self.name, description.created_ms)


@contextlib.asynccontextmanager
async def _admin(settings: Settings) -> AsyncIterator[_Group]:
    client = connect_hub(options.hub(settings), options.receiver(settings))
    blobs = connect_blobs(settings.blob_container or "", **options.blob_account(settings))
    store = options.lease_store(settings, blobs, adopt=True)
    group = settings.eventhub_consumergroup
    try:
        yield _Group(Admin(client, store, client.namespace, client.name, group), client, blobs, group)
    finally:
        await store.close()
        await client.close()


def _position(to: str | None, sequence: int | None, offset: str | None) -> Position:
    if sequence is not None:
        return AtSequence(sequence)
    if offset is not None:
        return AtOffset(offset)
    try:
        return parse_start(to or "").common
    except ValueError as error:
        raise typer.BadParameter(f"--to: {error}") from None


def _exported(file: Path) -> Mapping[PartitionId, Stored]:
    try:
        return parse_export(orjson.loads(file.read_bytes()))
    except (OSError, ValueError) as error:
        raise BadSettings([f"--file: {file} cannot be imported: {error}"]) from None


def _answer_changes(changes: Sequence[Change], *, as_json: bool) -> None:
    if as_json:
        answer_json([asdict(change) for change in changes])
        return
    rows = [
        (
            change.partition,
            change.what if change.done else f"would be {change.what}",
            change.old.sequence if change.old else None,
            change.new.sequence if change.new else None,
        )
        for change in changes
    ]
    answer_table(("partition", "what", "old sequence", "new sequence"), rows)


def _sequence(view: LeaseView) -> int | None:
    return view.checkpoint.sequence if view.checkpoint else None
