"""The sender: takes batches off the lanes, sends them, and reads what came back.

It owns every retry. A record leaves it in one of three ways: settled, buried (a dead letter), or released (its
partition was lost); until then it is in a lane, waiting for its time, or on its way.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, Protocol

import structlog
from opentelemetry import trace

from service.sink.budget import Budget
from service.sink.container import Container, Refused, Result
from service.sink.guarded import Again, Guard
from service.sink.lane import NEVER, Lane
from service.sink.lanes import Lanes
from service.sink.operations import bulk_payload, single
from service.sink.options import SinkOptions
from service.sink.order import Entry
from service.sink.outcome import Outcome
from service.sink.outcomes import (
    NO_ANSWER,
    Step,
    Verdict,
    judge_operation,
    judge_request,
    may_mean_no_bulk,
    setup_text,
)
from service.sink.statistics import Counts

log = structlog.get_logger(__name__)

# One by one, a range may have as many requests in flight as a batch has records.
_SINGLE_IN_FLIGHT: Final = 100
# A range is only used up if more waits for it than this. A few updates of one document, each after the other, are slow
# for another reason, and what was accepted of them says nothing about what the range sells.
_PRESSING: Final = 10

_tracer = trace.get_tracer("sluice")


class Completions(Protocol):
    """Where records go that leave the sender."""

    def settle(self, entry: Entry, outcome: Outcome) -> None:
        """It is completed, durably."""

    def bury(self, entry: Entry, reason: str, status: int, sub_status: int) -> None:
        """It can never be committed."""

    def release(self, entry: Entry) -> None:
        """Its partition was lost."""

    def committed(self, entries: Sequence[Entry]) -> None:
        """These are committed, by one answer."""


class Sender:
    """Sends what is in the lanes. `stopped` holds everything back; `moved` and `refused_setup` report why it should."""

    def __init__(
        self,
        container: Container,
        lanes: Lanes,
        completions: Completions,
        options: SinkOptions,
        counts: Counts,
        *,
        random: Random,
        moved: Callable[[], None],
        set_up: Callable[[str | None], None],
    ) -> None:
        self._container = container
        self._lanes = lanes
        self._completions = completions
        self._options = options
        self._counts = counts
        self._random = random
        self._moved = moved
        self._set_up = set_up
        self._budget = Budget(options.ru_limit)
        self._guard: Guard | None = None
        if options.guarded:
            self._guard = Guard(options.stamp, leave_unstamped=options.leave_unstamped)
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._flying: dict[int, list[Entry]] = {}
        self.stopped = False
        self.hurried = False
        """Do not wait for batches to fill."""
        self.bulk = options.bulk != "off"

    def set_ru_limit(self, ru_per_second: float) -> None:
        """Another budget from now on. What waits to be paid by the old one is paid by it."""
        self._budget = Budget(ru_per_second)
        self.wake()

    def wake(self) -> None:
        """Something has changed: look again."""
        self._wake.set()

    def flying(self) -> Iterator[Entry]:
        """The records on their way."""
        for entries in self._flying.values():
            yield from entries

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Send until cancelled; each request is a task of `tasks`."""
        while True:
            self._wake.clear()
            next_at = self._dispatch(tasks)
            try:
                async with asyncio.timeout_at(None if next_at == NEVER else next_at):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _dispatch(self, tasks: asyncio.TaskGroup) -> float:
        """Send everything that may go. Gives when to look again."""
        now = self._loop.time()
        next_at = self._lanes.wake(now)
        if self.stopped:
            return next_at
        at_once = self.hurried or not self.bulk
        for lane in self._lanes.by_range.values():
            if not self.bulk:
                lane.concurrency.most = _SINGLE_IN_FLIGHT
            while (due := lane.due_at(now, at_once=at_once)) <= now:
                most = self._options.batch.max_records if self.bulk else 1
                entries = lane.take(self._budget.batch_limit(most, lane.pace.unit_cost))
                lane.in_flight += 1
                tasks.create_task(self._send(lane, entries, lane.pace.spend(len(entries), now)))
                self._flying[id(entries)] = entries
                self._counts.in_flight += len(entries)
                self._counts.waited_seconds += max(0.0, now - entries[0].taken_at)
            next_at = min(next_at, due)
        return next_at

    async def _send(self, lane: Lane, batch: list[Entry], expected: float) -> None:
        paid = 0.0
        budget = self._budget
        try:
            await budget.pay(expected)
            paid = expected
            entries = self._sendable(batch)
            results, refused = await self._request(lane, entries) if entries else ((), None)
            charge, charged = _charge(results)
            # First what it cost, then what it says: a refusal is judged by what was accepted before it.
            lane.pace.settle(expected, charge, charged)
            budget.settle(paid, charge)
            self._counts.ru += charge
            if refused is not None:
                await self._refused(lane, entries, refused)
            elif entries:
                self._answered(lane, entries, results)
        finally:
            lane.in_flight -= 1
            self._counts.in_flight -= len(batch)
            del self._flying[id(batch)]
            self._wake.set()

    def _sendable(self, batch: list[Entry]) -> list[Entry]:
        """What may be sent of the batch at this moment: its lease holds, and nothing known stands against it."""
        entries: list[Entry] = []
        ownership, holds = None, False
        for entry in batch:
            pending = entry.pending
            if pending.item.ownership is not ownership:
                ownership = pending.item.ownership
                holds = ownership.holds()
            if pending.dropped or not holds:
                if pending.dropped or ownership.lost:
                    self._completions.release(entry)
                else:
                    self._lanes.hold(entry, self._loop.time())
                continue
            if self._guard is not None and not entry.tries and (outcome := self._guard.prepare(entry)) is not None:
                self._completions.settle(entry, outcome)
                continue
            entry.tries += 1
            entries.append(entry)
        return entries

    async def _request(self, lane: Lane, entries: list[Entry]) -> tuple[Sequence[Result], Refused | None]:
        """An answer for each, or why the request failed as a whole."""
        self._counts.requests += 1
        try:
            async with asyncio.timeout(self._options.request_timeout_seconds):
                if not self.bulk and len(entries) == 1:
                    return [await self._container.send_single(single(entries[0]))], None
                minimal = self._guard is None or all(entry.step is not Step.READ for entry in entries)
                with _tracer.start_as_current_span("bulk", kind=trace.SpanKind.CLIENT) as span:
                    if span.is_recording():
                        span.set_attribute("db.system.name", "azure.cosmosdb")
                        span.set_attribute("db.operation.batch.size", len(entries))
                    results = await self._container.send_bulk(lane.range_id, bulk_payload(entries), minimal=minimal)
        except TimeoutError:
            return (), Refused("no answer in time")
        except Refused as refused:
            return (), refused
        if len(results) != len(entries):
            return (), Refused(f"{len(results)} answers for {len(entries)} operations", 200)
        return results, None

    # Answers to single operations.

    def _answered(self, lane: Lane, entries: Sequence[Entry], results: Sequence[Result]) -> None:
        """Read every operation's answer."""
        committed: list[Entry] = []
        others: list[tuple[Entry, Result]] = []
        plain = self._guard is None
        for entry, result in zip(entries, results, strict=True):
            status = result.get("statusCode")
            if plain and (status == 200 or status == 201):  # noqa: PLR1714 - a set would be built for each record
                committed.append(entry)
            else:
                others.append((entry, result))
        if committed:
            self._completions.committed(committed)
        accepted = len(committed)
        if others:
            accepted += self._answered_otherwise(lane, others)
        if accepted == len(entries):
            lane.concurrency.answered(lane.in_flight)
        if accepted:
            self._set_up(None)

    def _answered_otherwise(self, lane: Lane, answers: Sequence[tuple[Entry, Result]]) -> int:
        accepted = 0
        throttled: list[Entry] = []
        wait: float | None = None
        for entry, result in answers:
            status, sub_status = _status(result), result.get("subStatusCode") or 0
            verdict = judge_operation(entry.step, status, sub_status)
            outcome = self._outcome(entry, result, verdict)
            if verdict is not Verdict.THROTTLED:
                accepted += verdict in {Verdict.DONE, Verdict.CONFLICT}
            if outcome is not None:
                if outcome is Again.SEND:
                    self._lanes.add(entry)
                elif outcome is Again.DEAD:
                    self._completions.bury(entry, "another document has its unique key (409)", 409, 0)
                else:
                    self._completions.settle(entry, outcome)
                continue
            wait = _longer(wait, _retry_after(result))
            if verdict is Verdict.THROTTLED:
                throttled.append(entry)
            else:
                message = str(result.get("message") or "")
                self._again(lane, [entry], verdict, Refused(message, status, sub_status, _retry_after(result)))
        if throttled:
            self._throttled(lane, throttled, wait)
        return accepted

    def _outcome(self, entry: Entry, result: Result, verdict: Verdict) -> Outcome | Again | None:
        if verdict is Verdict.DONE:
            return Outcome.COMMITTED if self._guard is None else self._guard.answered(entry, result)
        if verdict is Verdict.CONFLICT and self._guard is not None:
            return self._guard.conflicted(entry)
        return None

    # Answers to whole requests.

    async def _refused(self, lane: Lane, entries: list[Entry], refused: Refused) -> None:
        verdict = judge_request(refused.status, refused.sub_status)
        if verdict is Verdict.THROTTLED:
            self._throttled(lane, entries, refused.retry_after_seconds)
        elif verdict is Verdict.SPLIT:
            await self._split(lane, entries, refused)
        else:
            self._again(lane, entries, verdict, refused)

    async def _split(self, lane: Lane, entries: list[Entry], refused: Refused) -> None:
        """Something in the request can never be done: halve it until what is at fault stands alone."""
        if len(entries) > 1:
            middle = len(entries) // 2
            lane.whole.extendleft((entries[middle:], entries[:middle]))
            self._counts.retried[refused.status] += len(entries)
            return
        entry = entries[0]
        # Is it this record? Or does the service not know the protocol, or is there no room for a large document beside
        # the words of the protocol? By itself the record gets its own answer.
        try:
            async with asyncio.timeout(self._options.request_timeout_seconds):
                result = await self._container.send_single(single(entry))
        except (Refused, TimeoutError):
            self._again(lane, entries, Verdict.RETRY, Refused("no answer"))
            return
        done = judge_operation(entry.step, _status(result)) in {Verdict.DONE, Verdict.CONFLICT}
        if done and self._options.bulk == "auto" and may_mean_no_bulk(refused.status):
            self._without_bulk(refused.status)
        self._answered(lane, entries, [result])

    def _without_bulk(self, status: int) -> None:
        if self.bulk:
            self.bulk = False
            log.error(
                "cosmos refuses bulk requests but takes single ones: from now on one request per record", status=status
            )

    # What is done about it.

    def _throttled(self, lane: Lane, entries: list[Entry], wait: float | None) -> None:
        now = self._loop.time()
        self._counts.retried[429] += len(entries)
        wait = self._options.retry_wait_seconds if wait is None else wait
        lane.not_before = max(lane.not_before, now + wait * self._jitter())
        if len(entries) + len(lane.ready) >= _PRESSING:
            lane.pace.refused(now, wait)
            lane.concurrency.refused(now)
        if self._is_there(lane):
            lane.put_back(entries)
        else:
            self._lanes.delay(entries, now)

    def _again(self, lane: Lane, entries: Sequence[Entry], verdict: Verdict, refused: Refused) -> None:
        now = self._loop.time()
        status, sub_status, wait = refused.status, refused.sub_status, refused.retry_after_seconds
        if verdict in {Verdict.DEAD, Verdict.CONFLICT, Verdict.SPLIT}:
            for entry in entries:
                self._bury(entry, refused)
            return
        self._counts.retried[status] += len(entries)
        if verdict is Verdict.MOVED:
            if self._is_there(lane):  # else the ranges have been read since it was sent
                self._moved()
            self._lanes.delay(entries, now)
        elif verdict is Verdict.SETUP:
            self._set_up(setup_text(status, sub_status))
            self._lanes.delay(entries, now)
        else:
            wait = self._options.retry_wait_seconds if wait is None else wait
            self._lanes.delay(entries, now + wait * self._jitter())

    def _bury(self, entry: Entry, refused: Refused) -> None:
        status, sub_status, message = refused.status, refused.sub_status, str(refused)
        reason = f"Cosmos refused it: {message or _REASONS.get((status, sub_status)) or _REASONS.get((status, 0), '')}"
        self._completions.bury(entry, f"{reason} ({status}/{sub_status})"[:1000], status, sub_status)

    def _is_there(self, lane: Lane) -> bool:
        return self._lanes.by_range.get(lane.range_id) is lane

    def _jitter(self) -> float:
        return 1.0 + 0.2 * self._random.random()  # never sooner than asked for, and not all at once


_REASONS: Final = {
    (400, 0): "it is not a document that Cosmos takes",
    (403, 1014): "its logical partition is full (20 GB)",
    (409, 0): "another document has its unique key",
    (413, 0): "it is too large",
}


def _charge(results: Sequence[Result]) -> tuple[float, int]:
    """What the operations cost together, and how many cost anything."""
    charges = [charge for result in results if (charge := result.get("requestCharge"))]
    return sum(charges), len(charges)


def _status(result: Result) -> int:
    status = result.get("statusCode")
    return status if isinstance(status, int) else NO_ANSWER


def _retry_after(result: Result) -> float | None:
    wait = result.get("retryAfterMilliseconds")
    return wait / 1000 if isinstance(wait, int | float) else None


def _longer(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)
