"""`sluice deadletters` and `sluice transform`: records that could not be committed, and the function before them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from azure.identity.aio import DefaultAzureCredential

from service import options
from service.commands.common import DryRun, EnvFile, Json, answer_json, answer_table, read_settings, run
from service.config import Settings
from service.endpoints import AzureEndpoints
from service.errors import SetupFault
from service.ops.progress import Progress
from service.sink.dry_run import DryRunSink
from service.sink.letter_archive import LetterArchive, StoredLetter
from service.sink.record import Decoder
from service.sink.redrive import Redriven, redrive
from service.sink.transform import Transform, try_transform

dead_letters = typer.Typer(help="Records that can never be committed.", no_args_is_help=True)
transform = typer.Typer(help="Your own function between events and documents.", no_args_is_help=True)

Partition = Annotated[str | None, typer.Option("--partition", help="Only of this partition of the hub.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Only those whose reason has these words.")]


@dead_letters.command("list")
def list_letters(
    env_file: EnvFile = None,
    partition: Partition = None,
    reason: Reason = None,
    every: Annotated[bool, typer.Option("--all", help="Also those sent again, and duplicates.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 1000,
    as_json: Json = False,
) -> None:
    """Dead letters, oldest first, without their bodies."""
    letters = run(_letters(read_settings(env_file), partition, reason, every=every, limit=limit))
    if as_json:
        answer_json([letter.summary() for letter in letters])
        return
    rows = [(x.partition, x.event.sequence, x.index, x.at.isoformat(timespec="seconds"), x.reason) for x in letters]
    answer_table(("partition", "sequence", "index", "at", "reason"), rows)


@dead_letters.command("show")
def show(
    partition: Annotated[str, typer.Argument(help="Partition of the hub.")],
    sequence: Annotated[int, typer.Argument(help="Sequence of the event.")],
    env_file: EnvFile = None,
    as_json: Json = False,
) -> None:
    """One dead letter with its body; bytes that are no text are shown escaped."""
    settings = read_settings(env_file)

    async def work() -> list[StoredLetter]:
        async with _archive(settings) as archive:
            return await archive.find(partition, sequence)

    letters = run(work())
    if not letters:
        raise SetupFault(f"there is no dead letter of partition {partition}, sequence {sequence}")
    for letter in letters:
        shown: dict[str, Any] = letter.summary() | {"body": letter.event.body.decode(errors="backslashreplace")}
        if as_json:
            answer_json(shown)
        else:
            for name, value in shown.items():
                typer.echo(f"{name}: {value}")


@dead_letters.command("redrive")
def redrive_letters(
    env_file: EnvFile = None,
    partition: Partition = None,
    reason: Reason = None,
    rate: Annotated[int, typer.Option(min=0, help="Records per second; 0 = EVENTHUB_RATELIMIT.")] = 0,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Send dead letters again, guarded: a newer record of the same document stays. What went is marked."""
    settings = read_settings(env_file)
    if dry_run:
        counts = {"would be sent": len(run(_letters(settings, partition, reason)))}
    else:
        outcome = run(_redrive(settings, partition, reason, rate or settings.eventhub_ratelimit))
        counts = {kind.value: count for kind, count in outcome.outcomes.items()} | {"skipped": outcome.skipped}
    if as_json:
        answer_json(counts)
    else:
        answer_table(("outcome", "records"), list(counts.items()))


@transform.command("try")
def try_file(
    file: Annotated[Path, typer.Argument(help="A file with one JSON body a line.")],
    env_file: EnvFile = None,
    name: Annotated[str | None, typer.Option("--transform", help="module:function; else DOCUMENT_TRANSFORM.")] = None,
    as_json: Json = False,
) -> None:
    """Show what the transform makes of each line of FILE, without a hub or Cosmos; exit code 1 if one fails."""
    chosen = name or read_settings(env_file).document_transform
    if not chosen:
        raise typer.BadParameter("no transform: give --transform module:function or set DOCUMENT_TRANSFORM")
    if not file.is_file():
        raise typer.BadParameter(f"there is no file {file}")
    trials = try_transform(Transform.load(chosen), file.read_bytes().splitlines())
    if as_json:
        answer_json([asdict(trial) for trial in trials])
    else:
        for trial in trials:
            typer.echo(f"{trial.line}: {trial.before}")
            for made in trial.after or (() if trial.fault else ("dropped",)):
                typer.echo(f"   -> {made}")
            if trial.fault:
                typer.echo(f"   !! dead letter: {trial.fault}")
    raise typer.Exit(1 if any(trial.fault for trial in trials) else 0)


async def _letters(
    settings: Settings, partition: str | None, reason: str | None, *, every: bool = False, limit: int | None = None
) -> list[StoredLetter]:
    async with _archive(settings) as archive:
        found = [letter async for letter in archive.letters() if _wanted(letter, partition, reason, every=every)]
        return found[:limit]


async def _redrive(settings: Settings, partition: str | None, reason: str | None, rate: int) -> Redriven:
    guarded = settings.model_copy(update={"cosmos_write_mode": "guarded", "cosmos_write": True})
    endpoints = AzureEndpoints(guarded)
    try:
        sink = await endpoints.open_sink()
        if isinstance(sink, DryRunSink):
            raise SetupFault("a dry run redrives nothing")
        decoder = Decoder(options.documents(guarded), sink.definition, guarded=True)
        writing = asyncio.create_task(sink.run())
        try:
            async with _archive(settings) as archive:
                with Progress("letters sent again", None) as progress:
                    return await redrive(
                        archive,
                        sink,
                        decoder,
                        rate=rate,
                        wanted=lambda letter: _wanted(letter, partition, reason, every=False),
                        progress=lambda _: progress.advance(1),
                    )
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
    finally:
        await endpoints.close()


@contextlib.asynccontextmanager
async def _archive(settings: Settings) -> AsyncIterator[LetterArchive]:
    async with DefaultAzureCredential() as identity, options.dead_letters(settings, identity) as container:
        yield LetterArchive(container)


def _wanted(letter: StoredLetter, partition: str | None, reason: str | None, *, every: bool) -> bool:
    return (
        (every or not (letter.redriven or letter.duplicate))
        and partition in (None, letter.partition)
        and (reason is None or reason.lower() in letter.reason.lower())
    )
