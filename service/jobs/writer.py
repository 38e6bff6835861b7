"""The task that writes: records in Arrow batches, through the service's own sink, into Cosmos.

Several requests are in flight per task, also across batches. Outcomes are given back as they come; a task ends only
when each of its records is committed, superseded, left alone or dead-lettered, durably.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]
from azure.identity.aio import DefaultAzureCredential
from pyspark.sql import DataFrame

from service import options
from service.clock import uptime
from service.config import Settings
from service.errors import SetupFault
from service.jobs.events import from_arrow, is_fault
from service.jobs.ledger import Allowance, Ledger, open_ledger
from service.jobs.outcomes import LEFT_ALONE, LEFT_OUT, OUTCOMES, outcome_batch
from service.jobs.records import Decoding
from service.jobs.unstamped import Watched
from service.sink.cosmos import CosmosContainer
from service.sink.dead_letters import BlobDeadLetters
from service.sink.options import SinkOptions
from service.sink.outcome import Outcome
from service.sink.record import Record
from service.sink.sink import Sink, open_sink
from service.source.events import Event, PartitionId
from service.source.leases import Checkpoint, Ownership

T = TypeVar("T")
_CHUNK_RECORDS = 100
"""What is asked of the budget at a time: one full request."""
_FAULT_SECONDS = 30.0
"""A set-up fault that stands so long ends the job."""
_BATCH_WAIT_SECONDS = 0.2
"""Records come by the thousand, so a batch that is not full by then is the last of its range."""


@dataclass(frozen=True, slots=True)
class Writing:
    """All that a task needs to write."""

    settings: Settings
    decoding: Decoding
    ledger: Ledger | None
    in_flight: int = 2000


def write(records: DataFrame, writing: Writing) -> DataFrame:
    """Write wide records; gives rows of OUTCOMES."""

    def write_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _Loop() as loop:
            task = _WriteTask(writing)
            try:
                for batch in batches:
                    yield loop.run(task.write(batch))
                last = loop.run(task.finish())
                if last.num_rows:
                    yield last
            finally:
                loop.run(task.close())

    return records.mapInArrow(write_batches, OUTCOMES)


def job_options(given: SinkOptions) -> SinkOptions:
    """The service's own, but always guarded; what it may spend, the ledger says."""
    batch = replace(given.batch, wait_seconds=_BATCH_WAIT_SECONDS)
    return replace(given, batch=batch, guarded=True, leave_unstamped=True, ru_limit=0.0)


class _Loop:
    """An event loop that stands still between batches."""

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


class _Row:
    """One record on its way: the sink's Item."""

    __slots__ = ("_task", "document", "event", "ownership", "taken_at")

    def __init__(self, task: "_WriteTask", event: Event, ownership: Ownership, record: Record, taken_at: float) -> None:
        self._task = task
        self.event = event
        self.ownership = ownership
        self.document = record.document
        self.taken_at = taken_at

    def settle(self, outcome: Outcome) -> None:
        self._task.settled(self, outcome)


class _WriteTask:
    """A sink, opened with the first batch."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._decoder = writing.decoding.decoder()
        self._parts = AsyncExitStack()
        self._sink: Sink | None = None
        self._running: asyncio.Task[None] | None = None
        self._watched: Watched
        self._allowance = Allowance(None)
        self._owners: dict[tuple[int, str], Ownership] = {}
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._open = 0
        self._ru = 0.0
        self._sound_at = float("inf")
        self._progress = asyncio.Event()

    async def write(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Hand a batch to the sink; gives what was settled meanwhile."""
        sink = self._sink or await self._begin()
        rows = zip(
            from_arrow(batch), batch.column("index").to_pylist(), batch.column("reason").to_pylist(), strict=True
        )
        submitted = 0
        for (incarnation, partition, event), index, reason in rows:
            if is_fault(event):
                self._counts["", LEFT_OUT, f"{event.offset}\n{reason}"] += 1
                continue
            if submitted % _CHUNK_RECORDS == 0:
                await self._until(self._writing.in_flight - _CHUNK_RECORDS)
                await self._allowance.take(_CHUNK_RECORDS, self._open, sink.statistics().ru)
            owner = self._owner(incarnation, partition)
            record = self._decoder.decode(event, owner.hub, PartitionId(partition))[index]
            self._open += 1
            submitted += 1
            sink.submit(_Row(self, event, owner, record, asyncio.get_running_loop().time()), [replace(record)])
        self._allowance.unused((-submitted) % _CHUNK_RECORDS)
        return self._outcomes(sink.statistics().ru)

    async def finish(self) -> pa.RecordBatch:
        """Durable on return. What was leased and not needed goes back."""
        if self._sink is not None:
            self._sink.flush()
            await self._until(0)
            await self._allowance.give_back(self._sink.statistics().ru)
        return self._outcomes(self._sink.statistics().ru if self._sink is not None else 0.0)

    async def close(self) -> None:
        """Close everything, whatever state it is in."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._parts.aclose()

    def settled(self, row: _Row, outcome: Outcome) -> None:
        """A record is completed."""
        word = outcome.value
        if outcome is Outcome.SUPERSEDED and row.document in self._watched.unstamped:
            word = LEFT_ALONE
        self._counts[row.ownership.partition, word, ""] += 1
        self._open -= 1
        self._progress.set()

    async def _until(self, most: int) -> None:
        """Wait until no more than so many are on their way. Raises what ended the sink."""
        while self._open > most:
            self._progress.clear()
            waiting = asyncio.ensure_future(self._progress.wait())
            assert self._running is not None  # noqa: S101 - set with the sink
            await asyncio.wait({waiting, self._running}, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if self._running.done():
                self._running.result()
            self._check_set_up()

    def _check_set_up(self) -> None:
        """The sink waits for ever until a person mends the set-up; a job ends, and is run again then."""
        now = asyncio.get_running_loop().time()
        fault = self._sink.statistics().fault if self._sink is not None else None
        if fault is None:
            self._sound_at = now
        elif now - self._sound_at > _FAULT_SECONDS:
            raise SetupFault(fault)

    def _outcomes(self, ru: float) -> pa.RecordBatch:
        counts, self._counts = self._counts, Counter()
        spent, self._ru = ru - self._ru, ru
        return outcome_batch(counts, spent)

    def _owner(self, incarnation: int, partition: str) -> Ownership:
        owner = self._owners.get((incarnation, partition))
        if owner is None:
            hub = self._writing.decoding.of(incarnation)
            # Nobody can take a job's partition away: guarded writes are what keeps it from doing harm.
            owner = Ownership(hub, PartitionId(partition), 0, None, float("inf"), uptime, _no_checkpoint)
            self._owners[incarnation, partition] = owner
        return owner

    async def _begin(self) -> Sink:
        settings = self._writing.settings
        identity = await self._parts.enter_async_context(DefaultAzureCredential())
        container = CosmosContainer(options.cosmos(settings, identity))
        self._parts.push_async_callback(container.close)
        letters = await self._parts.enter_async_context(options.dead_letters(settings, identity))
        self._watched = Watched(container, self._writing.decoding.definition, settings.document_stamp)
        if self._writing.ledger is not None:
            self._allowance = await open_ledger(self._writing.ledger, settings, self._parts)
        wanted = job_options(options.sink(settings))
        sink = self._sink = await open_sink(self._watched, BlobDeadLetters(letters), wanted)
        self._running = asyncio.create_task(sink.run())
        self._sound_at = asyncio.get_running_loop().time()
        return sink


async def _no_checkpoint(_: Checkpoint) -> None:
    raise AssertionError("a job never writes a checkpoint")
