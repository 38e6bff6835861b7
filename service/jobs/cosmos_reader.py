"""Documents of Cosmos as rows: stamp, hash and ETag of each; by feed range in parallel, by change feed, or singly."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import pyarrow as pa  # type: ignore[import-untyped]
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError
from azure.identity.aio import DefaultAzureCredential
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - as all of Spark's documentation has it

from service import options
from service.config import Settings
from service.jobs.canonical import document_hash
from service.sink.document_rules import KeyReader, Undecodable
from service.sink.routing import PartitionKeyDefinition
from service.sink.stamp import Stamp

STAMP: Final = T.StructType(
    [
        T.StructField("incarnation", T.LongType()),
        T.StructField("partition", T.StringType()),
        T.StructField("sequence", T.LongType()),
        T.StructField("index", T.LongType()),
        T.StructField("enqueued", T.LongType()),
    ]
)
STAMP_ARROW: Final = pa.struct(
    [
        ("incarnation", pa.int64()),
        ("partition", pa.string()),
        ("sequence", pa.int64()),
        ("index", pa.int64()),
        ("enqueued", pa.int64()),
    ]
)
DOCUMENTS: Final = T.StructType(
    [
        T.StructField("key", T.StringType(), nullable=False),
        T.StructField("id", T.StringType(), nullable=False),
        T.StructField("found_stamp", STAMP),
        T.StructField("found_hash", T.StringType(), nullable=False),
        T.StructField("etag", T.StringType(), nullable=False),
        T.StructField("ru", T.DoubleType(), nullable=False),
    ]
)
"""A document; `ru` is its share of what its page cost."""
_KINDS: Final = (pa.string(), pa.string(), STAMP_ARROW, pa.string(), pa.string(), pa.float64())
_PAGE_ITEMS: Final = 1000
_ALL: Final = "SELECT * FROM c"
_THROTTLED: Final = 429


@dataclass(frozen=True, slots=True)
class CosmosReader:
    """Reads the container of the settings. Goes to tasks by pickling."""

    settings: Settings
    definition: PartitionKeyDefinition
    changed_since_ms: int | None = None
    """Only what has changed since, by change feed."""

    def ranges(self) -> list[dict[str, Any]]:
        """The feed ranges as they are now: they cover everything, also where one is split while it is read."""
        return asyncio.run(self._ranges())

    def read(self, spark: SparkSession, ranges: Sequence[dict[str, Any]]) -> DataFrame:
        """Rows of DOCUMENTS, one task per range."""
        reader = self

        def read_numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from reader._read_range(ranges[number])

        return spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(read_numbers, DOCUMENTS)

    def _read_range(self, feed_range: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """The loop stands still while Spark takes a page."""
        with asyncio.Runner() as runner:
            pages = self._pages(feed_range)
            while (page := runner.run(_next(pages))) is not None:
                yield self._rows(*page)

    async def _pages(self, feed_range: dict[str, Any]) -> AsyncIterator[tuple[list[dict[str, Any]], float]]:
        charges: list[float] = []

        def hear(headers: Any, *_: Any) -> None:  # noqa: ANN401 - the SDK's own
            charges.append(float(headers.get("x-ms-request-charge") or 0.0))

        async with self._open() as container:
            found: Any  # the SDK's pager
            if self.changed_since_ms is None:
                found = container.query_items(
                    _ALL, feed_range=feed_range, max_item_count=_PAGE_ITEMS, response_hook=hear
                )
            else:
                since = datetime.fromtimestamp(self.changed_since_ms / 1000, UTC)
                found = container.query_items_change_feed(
                    feed_range=feed_range, start_time=since, max_item_count=_PAGE_ITEMS, response_hook=hear
                )
            async for page in found.by_page():
                documents = [document async for document in page]
                yield documents, sum(charges)
                charges.clear()

    def _rows(self, documents: Sequence[dict[str, Any]], ru: float) -> pa.RecordBatch:
        each = ru / max(1, len(documents))
        rows = [(*describe(document, self.definition, self.settings.document_stamp), each) for document in documents]
        columns = list(zip(*rows, strict=True)) or [()] * len(_KINDS)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, _KINDS, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=DOCUMENTS.fieldNames())

    async def _ranges(self) -> list[dict[str, Any]]:
        async with self._open() as container:
            return [each async for each in container.read_feed_ranges(force_refresh=True)]

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[ContainerProxy]:
        """The SDK's own retries stay on: nothing here depends on who waits for a throttled page."""
        async with DefaultAzureCredential() as identity:
            access = options.cosmos(self.settings, identity)
            async with CosmosClient(access.endpoint, access.credential, retry_throttle_total=100) as client:
                yield client.get_database_client(access.database).get_container_client(access.container)

    async def read_each(
        self, documents: Sequence[tuple[str, str]], in_flight: int = 32
    ) -> list[tuple[dict[str, Any] | None, float]]:
        """Documents by key (as JSON) and id, with what each cost: None where there is none."""
        gate = asyncio.Semaphore(in_flight)
        async with self._open() as container, asyncio.TaskGroup() as group:
            tasks = [group.create_task(_read_one(container, gate, key, name)) for key, name in documents]
        return [task.result() for task in tasks]


async def _read_one(
    container: ContainerProxy, gate: asyncio.Semaphore, key: str, name: str
) -> tuple[dict[str, Any] | None, float]:
    values = orjson.loads(key)
    async with gate:
        try:
            found = await container.read_item(name, values[0] if len(values) == 1 else values)
        except CosmosHttpResponseError as fault:
            if fault.status_code == 404:
                return None, 1.0
            raise
    return dict(found), float(found.get_response_headers().get("x-ms-request-charge") or 0.0)


async def _next(pages: AsyncIterator[Any]) -> Any:  # noqa: ANN401 - whatever comes
    return await anext(pages, None)


def describe(
    document: dict[str, Any], definition: PartitionKeyDefinition, stamp_name: str
) -> tuple[str, str, dict[str, Any] | None, str, str]:
    """Key, id, stamp, hash and ETag of a document."""
    try:
        key = orjson.loads(KeyReader(definition).read(document)[0])
    except Undecodable:
        key = "[]"  # a document without a partition key: no record can be meant for it
    stamp = Stamp.parse(document.get(stamp_name))
    fields = None
    if stamp is not None:
        fields = {name: getattr(stamp, name) for name in STAMP.fieldNames()}
    return key, str(document["id"]), fields, document_hash(document, stamp_name), str(document.get("_etag", ""))
