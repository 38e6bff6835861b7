"""Events as rows: the one schema that every source gives and every job reads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import types as T  # noqa: N812 - as all of Spark's documentation has it

from service.source.events import Event

PROPERTY: Final = T.StructType(
    [
        T.StructField("number", T.LongType()),
        T.StructField("real", T.DoubleType()),
        T.StructField("text", T.StringType()),
        T.StructField("bytes", T.BinaryType()),
    ]
)
"""A property's value: one of the four kinds that Capture knows; none of them where it is null."""

EVENTS: Final = T.StructType(
    [
        T.StructField("incarnation", T.LongType(), nullable=False),
        T.StructField("partition", T.StringType(), nullable=False),
        T.StructField("sequence", T.LongType(), nullable=False),
        T.StructField("offset", T.StringType()),
        T.StructField("enqueued", T.LongType(), nullable=False),
        T.StructField("properties", T.MapType(T.StringType(), PROPERTY)),
        T.StructField("content_type", T.StringType()),
        T.StructField("content_encoding", T.StringType()),
        T.StructField("body_kind", T.StringType(), nullable=False),
        T.StructField("body", T.BinaryType()),
    ]
)
"""`enqueued` is in ms. `body_kind` is not `data` where an event had no data section: it becomes a dead letter."""

FAULT: Final = "fault"
"""The `body_kind` of a row that is no event: its offset names the file, its body says what is wrong."""
NAMES: Final = tuple(EVENTS.fieldNames())
_PROPERTY_ARROW: Final = pa.struct(
    [("number", pa.int64()), ("real", pa.float64()), ("text", pa.string()), ("bytes", pa.binary())]
)
ARROW: Final = pa.schema(
    [
        pa.field("incarnation", pa.int64(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("offset", pa.string()),
        pa.field("enqueued", pa.int64(), nullable=False),
        pa.field("properties", pa.map_(pa.string(), _PROPERTY_ARROW)),
        pa.field("content_type", pa.string()),
        pa.field("content_encoding", pa.string()),
        pa.field("body_kind", pa.string(), nullable=False),
        pa.field("body", pa.binary()),
    ]
)
"""The same for Arrow."""


def is_fault(event: Event) -> bool:
    """Whether the row is no event, but says what is wrong with a file."""
    return str(event.body_kind) == FAULT


def to_arrow(incarnation: int, partition: str, events: Sequence[Event]) -> pa.RecordBatch:
    """Events of one partition as a batch of rows."""
    columns = [
        [incarnation] * len(events),
        [partition] * len(events),
        [event.sequence for event in events],
        [event.offset for event in events],
        [event.enqueued_ms for event in events],
        [_properties(event.properties) for event in events],
        [event.content_type for event in events],
        [event.content_encoding for event in events],
        [event.body_kind for event in events],
        [event.body for event in events],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def from_arrow(batch: pa.RecordBatch) -> Iterator[tuple[int, str, Event]]:
    """Incarnation, partition and event of each row. Properties are as azure-eventhub gives them to the service: names
    and texts in bytes; so a transform sees the same in both.
    """
    columns = [batch.column(name).to_pylist() for name in NAMES]
    for incarnation, partition, sequence, offset, enqueued, properties, kind, encoding, body_kind, body in zip(
        *columns, strict=True
    ):
        named = {name.encode(): _value(value) for name, value in properties} if properties else {}
        yield (
            incarnation,
            partition,
            Event(sequence, offset or "", enqueued, body or b"", named, body_kind, kind, encoding),
        )


def _properties(properties: Mapping[Any, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(_text(name), property_row(value)) for name, value in properties.items()]


def property_row(value: object) -> dict[str, Any]:
    """A value as the row's struct has it."""
    match value:
        case None:
            return {}
        case int() if not isinstance(value, bool) and -(2**63) <= value < 2**63:
            return {"number": value}
        case float():
            return {"real": value}
        case bytes():
            try:
                return {"text": value.decode()}
            except UnicodeDecodeError:
                return {"bytes": value}
        case _:
            return {"text": str(value)}


def _value(row: Mapping[str, Any]) -> object:
    for name in ("number", "real", "bytes"):
        if row[name] is not None:
            return row[name]
    return row["text"].encode() if row["text"] is not None else None


def _text(name: object) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
