"""What Cosmos asks of a document before it takes it: its id, its partition key, its size.

Found out before sending, so that each dead letter has a reason that a person can act on.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import orjson

from service.sink.routing import EffectiveKey, KeyValue, PartitionKeyDefinition, effective_key

# "Azure Cosmos DB service quotas": item size, length of ids, and what ids may not contain
# (azure-cosmos adds tab, line ends and a space at the end; batches skip its checks, so they are made here).
MAX_DOCUMENT_BYTES: Final = 2 * 1024 * 1024
MAX_ID_BYTES: Final = 1023
BAD_IN_ID: Final = re.compile(r"[/\\?#\t\r\n]").search  # a second branch, for the space, would treble its time
MISSING: Final = object()
"""What `value_at` gives where nothing stands."""


class Undecodable(Exception):
    """There is no record in this; the message is the reason for the dead letter."""


class KeyReader:
    """Takes the partition key out of a document."""

    def __init__(self, definition: PartitionKeyDefinition) -> None:
        self.definition: Final = definition
        simple = len(definition.paths) == 1 and len(definition.paths[0]) == 1
        self._name = definition.paths[0][0] if simple else None
        self._always_fits = definition.max_bytes // 4  # characters: none has more than four bytes
        self._wire: dict[str, tuple[bytes, EffectiveKey]] = {}

    def read(self, document: dict[str, Any]) -> tuple[bytes, EffectiveKey]:
        """The key as it goes over the wire, and its effective key. Raises Undecodable."""
        if self._name is not None:
            value = document.get(self._name, MISSING)
            if type(value) is str:
                return self._wire.get(value) or self._remember(value)
        paths = self.definition.paths
        return self._whole([self._checked(value_at(document, path), path) for path in paths])

    def _remember(self, value: str) -> tuple[bytes, EffectiveKey]:
        # Keys come again and again, and making one anew takes as long as all else that is done to decode a record.
        # Emptied rather than trimmed: no bookkeeping while it is used, and a hub with more keys than fit gains nothing
        # from either.
        if len(self._wire) >= 50_000:
            self._wire.clear()
        found = self._wire[value] = self._whole([self._checked(value, self.definition.paths[0])])
        return found

    def _whole(self, values: Sequence[KeyValue]) -> tuple[bytes, EffectiveKey]:
        wire = orjson.dumps(orjson.dumps(values).decode())
        return wire, effective_key(self.definition.kind, values)

    def _checked(self, value: Any, path: Sequence[str]) -> KeyValue:  # noqa: ANN401 - whatever the JSON held
        if isinstance(value, str):
            if len(value) > self._always_fits and len(value.encode()) > self.definition.max_bytes:
                most = self.definition.max_bytes
                raise Undecodable(f"the partition key {_written(path)} is longer than {most} bytes")
            return value
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            # Cosmos has doubles only: 1 and 1.0 are one key, and must be one document here as well.
            number = float(value)
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
        if value is MISSING:
            raise Undecodable(f"the partition key {_written(path)} is missing")
        raise Undecodable(
            f"the partition key {_written(path)} is an {'object' if isinstance(value, dict) else 'array'}"
        )


def _written(path: Sequence[str]) -> str:
    return "/" + "/".join(path)


def value_at(document: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """What stands at a path, or a marker that nothing does."""
    for name in path:
        if not isinstance(document, dict) or name not in document:
            return MISSING
        document = document[name]
    return document


def check_id(value: Any, path: str) -> str:  # noqa: ANN401 - JSON in
    """The id, if Cosmos would take it. Raises Undecodable."""
    if type(value) is str:
        if BAD_IN_ID(value) or value.endswith(" "):
            raise Undecodable(
                f"the id {path} has a character that Cosmos does not allow (/ \\ ? # tab, line end, space at the end)"
            )
        if not value:
            raise Undecodable(f"the id {path} is empty")
        if len(value) > 255 and len(value.encode()) > MAX_ID_BYTES:
            raise Undecodable(f"the id {path} is longer than {MAX_ID_BYTES} bytes")
        return value
    if value is MISSING:
        raise Undecodable(f"the id {path} is missing")
    raise Undecodable(f"the id {path} is not a string")


def raise_too_large(body: bytes) -> NoReturn:
    """The document is larger than Cosmos takes."""
    raise Undecodable(f"the document has {len(body)} bytes; Cosmos takes at most {MAX_DOCUMENT_BYTES}")
