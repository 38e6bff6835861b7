"""A container that notes which documents have no stamp: backfill leaves them alone, and has to say so."""

from collections.abc import Sequence
from typing import Any, Final

from service.sink.container import Container, Result, SingleOperation
from service.sink.document_rules import KeyReader, Undecodable
from service.sink.routing import PartitionKeyDefinition
from service.sink.stamp import Stamp


class Watched:
    """The container itself, but for a look at each document that was read."""

    def __init__(self, container: Container, definition: PartitionKeyDefinition, stamp: str) -> None:
        self._container = container
        self._keys = KeyReader(definition)
        self._stamp = stamp
        self.unstamped: Final[set[tuple[bytes, str]]] = set()
        """Documents without a stamp."""

    async def describe(self) -> PartitionKeyDefinition:
        """As the container does."""
        return await self._container.describe()

    async def read_ranges(self) -> Sequence[tuple[str, str, str]]:
        """As the container does."""
        return await self._container.read_ranges()

    async def send_bulk(self, range_id: str, payload: bytes, *, minimal: bool) -> Sequence[Result]:
        """As the container does."""
        results = await self._container.send_bulk(range_id, payload, minimal=minimal)
        for result in results:
            self._look(result.get("resourceBody"))
        return results

    async def send_single(self, operation: SingleOperation) -> Result:
        """As the container does."""
        result = await self._container.send_single(operation)
        self._look(result.get("resourceBody"))
        return result

    def _look(self, document: Any) -> None:  # noqa: ANN401 - whatever came back
        if not isinstance(document, dict) or Stamp.parse(document.get(self._stamp)) is not None:
            return
        try:
            self.unstamped.add((self._keys.read(document)[0], str(document.get("id"))))
        except Undecodable:
            return  # the answer to a write that was asked for in few words
