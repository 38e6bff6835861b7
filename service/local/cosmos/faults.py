"""Faults on demand: the next requests or operations fail, are dropped or are late, as a test asks."""

from dataclasses import dataclass
from typing import Final, Literal

from service.local.cosmos.errors import CosmosError, Throttled

Scope = Literal["request", "operation"]
Drop = Literal["before", "after"]
MAX_DELAY_SECONDS: Final = 600.0
MAX_ARMED: Final = 1000


@dataclass(slots=True)
class Fault:
    """One kind of trouble, for the next `count` requests or operations that fit."""

    count: int
    scope: Scope = "request"
    status: int = 0
    sub_status: int = 0
    retry_after_ms: int | None = None
    drop: Drop | None = None
    """Close the socket instead of an answer: before the request has any effect, or after it has had its full one."""
    delay_seconds: float = 0.0
    range_id: str | None = None
    operation: str | None = None
    """Only operations of this kind: Create, Upsert, Replace, Patch, Delete, Read, Batch, Query."""
    id: str | None = None
    """Only operations on the document of this id."""
    skip: int = 0
    """Let so many that fit pass first."""

    def fits(self, operation: str, range_id: str | None, document_id: str | None) -> bool:
        """Whether it is for this one."""
        return (
            (self.operation is None or self.operation == operation)
            and (self.range_id is None or self.range_id == range_id)
            and (self.id is None or self.id == document_id)
        )

    def error(self) -> CosmosError | None:
        """What the client gets, if this fault is an error."""
        if not self.status:
            return None
        if self.status == 429 and self.sub_status in {0, 3200}:
            return Throttled(self.retry_after_ms or 0)
        headers = {} if self.retry_after_ms is None else {"x-ms-retry-after-ms": str(self.retry_after_ms)}
        return CosmosError(self.status, "A fault was asked for.", self.sub_status, headers)


class Faults:
    """The faults that are armed. The first that fits is the one that happens, and is used up by one."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []
        self.happened = 0
        """How many have happened since the last `clear`."""

    def fail_next(
        self,
        count: int = 1,
        status: int = 503,
        sub_status: int = 0,
        *,
        scope: Scope = "request",
        retry_after_ms: int | None = None,
        operation: str | None = None,
        range_id: str | None = None,
        document_id: str | None = None,
        skip: int = 0,
    ) -> None:
        """Answer the next `count` with this status: whole requests, or single operations (also those in a batch)."""
        self.arm(
            Fault(count, scope, status, sub_status, retry_after_ms, None, 0.0, range_id, operation, document_id, skip)
        )

    def drop_next(
        self,
        count: int = 1,
        *,
        when: Drop = "before",
        operation: str | None = None,
        range_id: str | None = None,
        skip: int = 0,
    ) -> None:
        """Close the socket of the next `count` requests instead of answering, before or after the write."""
        self.arm(Fault(count, drop=when, operation=operation, range_id=range_id, skip=skip))

    def delay_next(
        self,
        count: int = 1,
        *,
        seconds: float,
        operation: str | None = None,
        range_id: str | None = None,
        skip: int = 0,
    ) -> None:
        """Answer the next `count` requests late; what they do happens before the wait."""
        bounded = min(seconds, MAX_DELAY_SECONDS)
        self.arm(Fault(count, delay_seconds=bounded, operation=operation, range_id=range_id, skip=skip))

    def arm(self, fault: Fault) -> None:
        """Add one."""
        if len(self._armed) >= MAX_ARMED:
            raise CosmosError(400, f"At most {MAX_ARMED} faults can be armed at a time.")
        self._armed.append(fault)

    def clear(self) -> None:
        """Disarm all."""
        self._armed.clear()
        self.happened = 0

    @property
    def armed(self) -> bool:
        """Whether any is left: the quick question on the hot path."""
        return bool(self._armed)

    @property
    def pending(self) -> list[Fault]:
        """Those that are left."""
        return list(self._armed)

    def take(
        self, scope: Scope, operation: str, range_id: str | None = None, document_id: str | None = None
    ) -> Fault | None:
        """The fault that happens to this one, if any."""
        for fault in self._armed:
            if fault.scope != scope or not fault.fits(operation, range_id, document_id):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.count -= 1
            if fault.count <= 0:
                self._armed.remove(fault)
            self.happened += 1
            return fault
        return None
