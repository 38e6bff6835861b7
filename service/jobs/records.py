"""From events to records: the service's own decoder, run by Spark's tasks.

Every record keeps its place, so that of the records of a document the latest can be chosen by the guard order. Wide
records carry their event along, to be decoded again by whoever writes them; narrow ones carry a hash instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812 - as above

from service.jobs.canonical import document_hash
from service.jobs.events import EVENTS, FAULT, from_arrow, is_fault
from service.sink.record import Decoder, DocumentOptions, Operation, Record
from service.sink.routing import PartitionKeyDefinition
from service.source.events import Event, Hub, PartitionId

_RECORD: Final = [
    T.StructField("index", T.IntegerType(), nullable=False),
    T.StructField("operation", T.StringType(), nullable=False),
    T.StructField("key", T.StringType(), nullable=False),
    T.StructField("id", T.StringType(), nullable=False),
    T.StructField("stamped", T.LongType(), nullable=False),
    T.StructField("expires", T.LongType()),
    T.StructField("reason", T.StringType()),
]
_PLACE: Final = [EVENTS[name] for name in ("incarnation", "partition", "sequence", "enqueued")]
WIDE: Final = T.StructType([*EVENTS.fields, *_RECORD])
"""A record with its event. `key` is the partition key as JSON; `stamped` the seconds in its stamp; `expires` when its
TTL runs out, in seconds since 1970."""
NARROW: Final = T.StructType([*_PLACE, *_RECORD, T.StructField("hash", T.StringType())])
"""A record with the hash of its document."""
WRITES: Final = (Operation.UPSERT.value, Operation.DELETE.value)
_RECORD_ARROW: Final = (pa.int32(), pa.string(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string())


@dataclass(frozen=True, slots=True)
class Decoding:
    """All that a task needs to make records as the service does."""

    documents: DocumentOptions
    definition: PartitionKeyDefinition
    namespace: str
    hub: str
    group: str
    default_ttl: int | None = None
    """The container's; None: documents do not expire, whatever they say."""

    def decoder(self) -> Decoder:
        """Guarded, since jobs always write so."""
        return Decoder(self.documents, self.definition, guarded=True)

    def of(self, incarnation: int) -> Hub:
        """The hub in one of its lives."""
        return Hub(self.namespace, self.hub, self.group, incarnation)


def with_records(events: DataFrame, decoding: Decoding, *, narrow: bool) -> DataFrame:
    """One row per record; a poison or fault row stands for a document of its own."""

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _DecodeTask(decoding, narrow=narrow)
        for batch in batches:
            yield task.decode(batch)

    return events.mapInArrow(decode, NARROW if narrow else WIDE)


def latest(records: DataFrame, tasks: int) -> DataFrame:
    """The latest record of each document, by the guard order: within a partition the sequence alone decides, between
    partitions incarnation, time and partition do. Rows of one document come out in one of `tasks` partitions.
    """
    document = ["key", "id"]
    within = Window.partitionBy(*document, "incarnation", "partition").orderBy(F.desc("sequence"), F.desc("index"))
    between = Window.partitionBy(*document).orderBy(F.desc("incarnation"), F.desc("stamped"), F.desc("partition"))
    return (
        records.repartition(tasks, *document)
        .withColumn("rank", F.row_number().over(within))
        .where("rank = 1")
        .withColumn("rank", F.row_number().over(between))
        .where("rank = 1")
        .drop("rank")
    )


class _DecodeTask:
    """One task's decoder, and the columns it fills."""

    def __init__(self, decoding: Decoding, *, narrow: bool) -> None:
        self._decoding = decoding
        self._decoder = decoding.decoder()
        self._narrow = narrow
        self._hubs: dict[int, Hub] = {}

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows: list[int] = []
        columns: tuple[list[Any], ...] = tuple([] for _ in range(len(_RECORD) + 1))
        for number, (incarnation, partition, event) in enumerate(from_arrow(batch)):
            for values in self._records(incarnation, partition, event):
                rows.append(number)
                for column, value in zip(columns, values, strict=True):
                    column.append(value)
        kept = [field.name for field in _PLACE] if self._narrow else EVENTS.fieldNames()
        taken = batch.select(kept).take(pa.array(rows, pa.int64()))
        added = [pa.array(values, kind) for values, kind in zip(columns, (*_RECORD_ARROW, pa.string()), strict=True)]
        names = [field.name for field in _RECORD] + (["hash"] if self._narrow else [])
        arrays = [*taken.columns, *(added if self._narrow else added[:-1])]
        return pa.RecordBatch.from_arrays(arrays, names=[*kept, *names])

    def _records(self, incarnation: int, partition: str, event: Event) -> Iterator[tuple[Any, ...]]:
        if is_fault(event):
            yield 0, FAULT, "", event.offset, 0, None, event.body.decode(), None
            return
        hub = self._hubs.get(incarnation)
        if hub is None:
            hub = self._hubs[incarnation] = self._decoding.of(incarnation)
        for record in self._decoder.decode(event, hub, PartitionId(partition)):
            yield self._row(record, partition, event)

    def _row(self, record: Record, partition: str, event: Event) -> tuple[Any, ...]:
        seconds = event.enqueued_ms // 1000
        if record.stamp is None:  # poison or dropped: no document, so one of its own
            own = f"{partition}/{event.sequence}/{record.index}"
            return record.index, record.operation.value, "", own, seconds, None, record.reason or None, None
        key = orjson.loads(record.key)
        expires = hashed = None
        if record.operation is Operation.UPSERT and (self._narrow or self._decoding.default_ttl is not None):
            document = orjson.loads(record.body)
            expires = self._expires(document, seconds)
            hashed = document_hash(document, self._decoding.documents.stamp) if self._narrow else None
        return record.index, record.operation.value, key, record.id, record.stamp.enqueued, expires, None, hashed

    def _expires(self, document: dict[str, Any], seconds: int) -> int | None:
        """By the time it was enqueued: Cosmos counts from the write, which was not before."""
        if self._decoding.default_ttl is None:
            return None
        ttl = document.get("ttl", self._decoding.default_ttl)
        return seconds + ttl if type(ttl) is int and ttl > 0 else None
