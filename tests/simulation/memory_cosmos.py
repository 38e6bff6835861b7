"""A Cosmos container in memory, behind the sink's own protocol: ranges, throttling, splits, and faults by chance."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson

from service.errors import SetupFault
from service.sink.container import Refused, Result, SingleOperation
from service.sink.outcomes import Step
from service.sink.routing import PartitionKeyDefinition, RangeMap, effective_key

CHARGE = 6.0
READ_CHARGE = 1.0


@dataclass
class Trouble:
    """How often something goes wrong, as chances between 0 and 1."""

    throttle_operation: float = 0.0
    throttle_request: float = 0.0
    retry_with: float = 0.0
    """449 for one operation."""
    server_error: float = 0.0
    """503 for a whole request."""
    lost_before: float = 0.0
    """No answer, and no effect."""
    lost_after: float = 0.0
    """No answer, after the write: the ambiguous timeout."""
    short_answer: float = 0.0
    """Fewer answers than operations, after the write."""
    foreign_write: float = 0.0
    """Guarded writes: someone else changes the document first, so that its ETag is another (412)."""
    delay_seconds: tuple[float, float] = (0.005, 0.02)
    retry_after_ms: int = 20


@dataclass(frozen=True)
class Write:
    """One operation that had its effect."""

    at: float
    step: str
    key: str
    id: str
    body: Any


@dataclass
class Budget:
    """What a range sells: by whole seconds as the service does, or as a bucket that fills all the time."""

    rate: float = 0.0
    bucket: bool = False
    spent: float = 0.0
    at: float = 0.0

    def wait_ms(self, now: float) -> int:
        if not self.rate:
            return 0
        if self.bucket:
            self.spent = max(0.0, self.spent - (now - self.at) * self.rate)
            self.at = now
            return 0 if self.spent < self.rate else max(1, int((self.spent - self.rate) / self.rate * 1000) + 1)
        window = int(now)
        if window > self.at:
            self.spent = max(0.0, self.spent - self.rate * (window - self.at))
            self.at = window
        return 0 if self.spent < self.rate else max(1, int((window + 1 - now) * 1000) + 1)


@dataclass
class MemoryContainer:
    """One container."""

    random: Random
    ranges: int = 4
    throughput: float = 0.0
    bucket: bool = False
    trouble: Trouble = field(default_factory=Trouble)
    definition: PartitionKeyDefinition = field(default_factory=lambda: PartitionKeyDefinition.of("/key"))
    poison_ids: set[str] = field(default_factory=set)
    """A bulk request that holds one of these is refused as a whole (400)."""

    def __post_init__(self) -> None:
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        self.log: list[Write] = []
        self.answers: Counter[int] = Counter()
        self.requests = 0
        self.flying: Counter[tuple[str, str]] = Counter()
        self.overlaps: list[tuple[str, str]] = []
        """Documents that had two operations in flight at a time: must stay empty."""
        self.set_up_fault: Refused | None = None
        self.no_bulk = False
        self._etag = 0
        self._generation = 0
        self.split(self.ranges)

    def split(self, ranges: int) -> None:
        """From now on there are so many ranges, with new ids."""
        self.ranges = ranges
        self._generation += 1
        bounds = ["", *(f"{(number << 126) // ranges:032X}" for number in range(1, ranges)), "FF"]
        self._ranges = [(f"{self._generation}.{n}", bounds[n], bounds[n + 1]) for n in range(ranges)]
        self._map = RangeMap(self.definition, self._ranges)
        self._budgets = {name: Budget(self.throughput / ranges, self.bucket) for name, _, _ in self._ranges}

    async def describe(self) -> PartitionKeyDefinition:
        await self._delay()
        if self.set_up_fault is not None:
            raise SetupFault(str(self.set_up_fault))
        return self.definition

    async def read_ranges(self) -> list[tuple[str, str, str]]:
        await self._delay()
        return list(self._ranges)

    async def send_bulk(self, range_id: str, payload: bytes, *, minimal: bool) -> list[Result]:
        operations = orjson.loads(payload)
        assert 0 < len(operations) <= 100
        documents = [_document(operation) for operation in operations]
        self._take_off(documents)
        try:
            await self._delay()
            self._refuse(range_id, operations)
            answers = [self._answer(range_id, operation) for operation in operations]
            await self._delay()
        finally:
            self._land(documents)
        return self._deliver(answers)

    async def send_single(self, operation: SingleOperation) -> Result:
        words: dict[str, Any] = {
            "operationType": operation.step.value,
            "id": operation.id,
            "ifMatch": operation.etag or None,
        }
        words["partitionKey"] = orjson.loads(operation.key)
        if operation.step not in {Step.READ, Step.DELETE}:
            words["resourceBody"] = orjson.loads(operation.body)
        document = _document(words)
        self._take_off([document])
        try:
            await self._delay()
            self._refuse(None, [words])
            if operation.id in self.poison_ids:
                return {"statusCode": 400, "subStatusCode": 0}
            key = effective_key(self.definition.kind, orjson.loads(words["partitionKey"]))
            answer = self._answer(self._map.find(key), words)
        finally:
            self._land([document])
        return self._deliver([answer])[0]

    def _refuse(self, range_id: str | None, operations: list[dict[str, Any]]) -> None:
        self.requests += 1
        chance, trouble = self.random.random, self.trouble
        if self.set_up_fault is not None:
            raise self.set_up_fault
        if range_id is not None and self.no_bulk:
            raise Refused("what is a batch?", 400)
        if range_id is not None and range_id not in self._budgets:
            raise Refused("gone", 410, 1002)
        if range_id is not None and any(_document(operation)[1] in self.poison_ids for operation in operations):
            raise Refused("one of them is bad", 400)
        if chance() < trouble.throttle_request:
            self.answers[429] += len(operations)
            raise Refused("too fast", 429, 3200, trouble.retry_after_ms / 1000)
        if chance() < trouble.server_error:
            raise Refused("unavailable", 503)
        if chance() < trouble.lost_before:
            raise Refused("connection reset")

    def _deliver(self, answers: list[Result]) -> list[Result]:
        if self.random.random() < self.trouble.lost_after:
            raise Refused("connection reset")
        if len(answers) > 1 and self.random.random() < self.trouble.short_answer:
            return answers[:-1]
        for answer in answers:
            self.answers[answer["statusCode"]] += 1
        return answers

    def _answer(self, range_id: str, operation: dict[str, Any]) -> Result:
        now = asyncio.get_running_loop().time()
        if self.random.random() < self.trouble.throttle_operation:
            return {"statusCode": 429, "subStatusCode": 3200, "retryAfterMilliseconds": self.trouble.retry_after_ms}
        if self.random.random() < self.trouble.retry_with:
            return {"statusCode": 449, "subStatusCode": 0}
        budget = self._budgets.get(range_id)
        if budget is not None and (wait := budget.wait_ms(now)):
            return {"statusCode": 429, "subStatusCode": 3200, "retryAfterMilliseconds": wait}
        document = _document(operation)
        if range_id is not None and budget is not None:
            key = effective_key(self.definition.kind, orjson.loads(document[0]))
            assert self._map.find(key) == range_id, "sent to the wrong range"
        answer = self._carry_out(now, document, operation)
        if budget is not None:
            budget.spent += answer["requestCharge"]
        return answer

    def _carry_out(self, now: float, document: tuple[str, str], operation: dict[str, Any]) -> Result:
        kind, found = operation["operationType"], self.documents.get(document)
        if found is not None and kind == "Replace" and self.random.random() < self.trouble.foreign_write:
            found["_etag"] = self._new_etag()
        if kind in {"Read", "Replace", "Delete"} and found is None:
            return {"statusCode": 404, "requestCharge": READ_CHARGE}
        if kind == "Read":
            return {
                "statusCode": 200,
                "requestCharge": READ_CHARGE,
                "eTag": found["_etag"],
                "resourceBody": dict(found),
            }
        if kind == "Create" and found is not None:
            return {"statusCode": 409, "requestCharge": READ_CHARGE}
        if operation.get("ifMatch") and found is not None and operation["ifMatch"] != found["_etag"]:
            return {"statusCode": 412, "requestCharge": READ_CHARGE}
        self.log.append(Write(now, kind, *document, operation.get("resourceBody")))
        if kind == "Delete":
            del self.documents[document]
            return {"statusCode": 204, "requestCharge": CHARGE}
        etag = self._new_etag()
        self.documents[document] = {**operation["resourceBody"], "_etag": etag}
        return {"statusCode": 201 if found is None else 200, "requestCharge": CHARGE, "eTag": etag}

    def _new_etag(self) -> str:
        self._etag += 1
        return f'"{self._etag:x}"'

    def _take_off(self, documents: list[tuple[str, str]]) -> None:
        for document in documents:
            self.flying[document] += 1
            if self.flying[document] > 1:
                self.overlaps.append(document)

    def _land(self, documents: list[tuple[str, str]]) -> None:
        self.flying.subtract(documents)

    async def _delay(self) -> None:
        await asyncio.sleep(self.random.uniform(*self.trouble.delay_seconds) / 2)


def _document(operation: dict[str, Any]) -> tuple[str, str]:
    return operation["partitionKey"], operation.get("id") or operation["resourceBody"]["id"]
