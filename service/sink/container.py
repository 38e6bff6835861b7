"""A Cosmos container as the sink needs it: narrow, so that a memory implementation can stand beside the real one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from service.sink.outcomes import NO_ANSWER, Step
from service.sink.routing import PartitionKeyDefinition

Result = Mapping[str, Any]
"""One operation's answer as the protocol has it: statusCode, subStatusCode, requestCharge, eTag,
retryAfterMilliseconds, resourceBody."""


class Refused(Exception):
    """A whole request was refused, or got no answer (status 0; it may have had its effect)."""

    def __init__(
        self, message: str, status: int = NO_ANSWER, sub_status: int = 0, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.sub_status = sub_status
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class SingleOperation:
    """One operation, where it goes by itself."""

    step: Step
    id: str
    key: bytes
    """A JSON array inside a JSON string."""
    body: bytes
    etag: str


class Container(Protocol):
    """One container. Every method may be cancelled; none retries by itself."""

    async def describe(self) -> PartitionKeyDefinition:
        """Ask the service for the container anew. Raises SetupFault, saying what to mend."""

    async def read_ranges(self) -> Sequence[tuple[str, str, str]]:
        """The ranges as they are now: id, lowest effective key, first key beyond. Raises Refused or SetupFault."""

    async def send_bulk(self, range_id: str, payload: bytes, *, minimal: bool) -> Sequence[Result]:
        """Send operations to one range. Gives their answers in order, whatever they say; raises Refused for all at
        once. `minimal`: documents need not be sent back.
        """

    async def send_single(self, operation: SingleOperation) -> Result:
        """Send one operation by itself. Gives its answer; raises Refused only if there was none."""
