"""A hub's retained range as events: one task per partition, each in a consumer group of the job's own."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from service import options
from service.config import Settings
from service.errors import Retry
from service.jobs.events import EVENTS, to_arrow
from service.jobs.live import Live
from service.jobs.plan import RangePart
from service.jobs.sources.by_file import Faulty, fault_rows
from service.source.connect import connect_hub
from service.source.event_hubs import EventHubs
from service.source.events import Event, PartitionId
from service.source.hub import After
from service.source.receiver import EventHubReceiver

_GUESSED_EVENT_BYTES = 1024
"""A hub does not say how large its events are; a unit's size is guessed by this."""
_IDLE_ROUNDS = 5
"""After so many waits without an event the partition is asked whether any is left."""
_TRIES = 5


@dataclass(frozen=True, slots=True)
class HubReader:
    """Reads ranges of sequences."""

    settings: Settings
    group: str
    incarnation: int

    def read(self, spark: SparkSession, ranges: Sequence[RangePart]) -> DataFrame:
        """The events of the ranges, one task for each."""
        reader = self

        def read_numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from reader._read(ranges[number])

        if not ranges:
            return fault_rows(spark, [])
        return spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(read_numbers, EVENTS)

    def _read(self, part: RangePart) -> Iterator[pa.RecordBatch]:
        with asyncio.Runner() as runner:
            reading = _Reading(self, part)
            try:
                while events := runner.run(reading.more()):
                    yield to_arrow(self.incarnation, part.partition, events)
            finally:
                runner.run(reading.close())
            if reading.fault:
                yield to_arrow(0, "", [reading.fault.event()])

    def connect(self) -> EventHubs:
        """The hub, read for the job's own group."""
        address = replace(options.hub(self.settings), group=self.group)
        return connect_hub(address, options.receiver(self.settings))


class _Reading:
    """One range on its way: reopened behind the last event that came, until its end is reached."""

    def __init__(self, reader: HubReader, part: RangePart) -> None:
        self._part = part
        self._client = reader.connect()
        self._at = part.first - 1
        self._receiver = self._open()
        self._tries = self._idle = 0
        self.fault: Faulty | None = None

    async def more(self) -> list[Event]:
        """The next events; none at the end of the range."""
        while self._at < self._part.last:
            try:
                events = list(await self._receiver.receive())
            except Retry as fault:
                await self._receiver.close()
                self._tries += 1
                if self._tries > _TRIES:
                    raise
                await asyncio.sleep(fault.after_seconds or 1.0)
                self._receiver = self._open()
                continue
            if not events:
                if await self._is_over():
                    return []
                continue
            self._idle = self._tries = 0
            self._at = events[-1].sequence
            wanted = [event for event in events if self._part.first <= event.sequence <= self._part.last]
            if wanted:
                return wanted
        return []

    async def _is_over(self) -> bool:
        self._idle += 1
        if self._idle < _IDLE_ROUNDS:
            return False
        description = await self._client.describe_partition(PartitionId(self._part.partition))
        if description.first_kept > self._at + 1:
            taken = min(description.first_kept, self._part.last + 1) - self._at - 1
            self.fault = Faulty(
                f"partition {self._part.partition}", f"retention has taken {taken} events before they were read"
            )
        return description.last >= self._at

    def _open(self) -> EventHubReceiver:
        return self._client.receiver(PartitionId(self._part.partition), 0, After(self._at))

    async def close(self) -> None:
        await self._receiver.close()
        await self._client.close()


def ranges_of(live: Live, bounds: dict[str, int], first: int = 0, most: int = -1) -> tuple[RangePart, ...]:
    """What is retained of each partition, from `first` up to its bound, and not beyond `most` unless that is -1."""
    found = []
    for name, partition in live.partitions.items():
        begin = max(first, partition.first_kept)
        last = min(partition.last, bounds.get(name, partition.last), most if most >= 0 else partition.last)
        if begin <= last:
            found.append(RangePart(name, begin, last, (last - begin + 1) * _GUESSED_EVENT_BYTES))
    return tuple(found)
