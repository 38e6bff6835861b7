"""The sink: takes records, keeps their order, writes them in bulk, and says of each what became of it.

Everything runs in one task group: a pump that sends what is due, a task per request (never per record), a writer of
dead letters, and a mender that reads the ranges again when they have moved and waits out set-up faults.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Final

import structlog

from service.errors import SetupFault
from service.sink.container import Container, Refused
from service.sink.dead_letters import DeadLetterBox
from service.sink.lanes import Lanes
from service.sink.letters import LetterDesk
from service.sink.options import SinkOptions
from service.sink.order import DocumentOrder, Entry, Pending, everything_behind
from service.sink.outcome import Item, Outcome
from service.sink.outcomes import Step
from service.sink.record import Operation, Record
from service.sink.routing import PartitionKeyDefinition
from service.sink.sender import Sender
from service.sink.statistics import Counts, SinkStatistics
from service.source.leases import Ownership

log = structlog.get_logger(__name__)

_MENDING_MOST_SECONDS: Final = 30.0
_DESCRIBE_SECONDS: Final = 60.0
# By name: looking up a member of an enumeration takes ten times as long, and this is done for every record.
_UPSERT: Final = Operation.UPSERT
_COMMITTED: Final = Outcome.COMMITTED


class Sink:
    """Writes records into one container. `run` must be running for anything to be written."""

    def __init__(
        self,
        container: Container,
        definition: PartitionKeyDefinition,
        ranges: Sequence[tuple[str, str, str]],
        letters: DeadLetterBox,
        options: SinkOptions | None = None,
        *,
        random: Random | None = None,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Made while a loop runs; `definition` and `ranges` are what `container` says now."""
        options = options or SinkOptions()
        self.definition: Final = definition
        self._container = container
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._random = random or Random()  # noqa: S311 - spreads retries, guards nothing
        self._counts = Counts()
        self._order = DocumentOrder()
        self._lanes = Lanes(definition, ranges, options.batch, self._loop.time())
        self._desk = LetterDesk(letters, self._settle_letter, options.flood, options.retry_wait_seconds, utc_now)
        self._sender = Sender(
            container,
            self._lanes,
            self,
            options,
            self._counts,
            random=self._random,
            moved=self._ranges_moved,
            set_up=self._note_set_up,
        )
        self._mend = asyncio.Event()
        self._fault: str | None = None
        self._describe = False
        """Whether mending has to begin with the container itself."""

    def submit(self, item: Item, records: Sequence[Record]) -> None:
        """Take an event's records, in the order of its partition. Never blocks."""
        pending = Pending(item)
        if len(records) == 1 and records[0].operation is _UPSERT:  # nearly all of them
            self._counts.open += 1
            entry = Entry(records[0], pending, item.taken_at)
            if self._order.admit_one(pending, entry) and self._lanes.add(entry):
                self._sender.wake()
            return
        self._submit_others(pending, records)

    def purge(self, ownership: Ownership) -> None:
        """Forget everything of a lost partition. What is on its way stays unsettled, whatever becomes of it."""
        active = {id(entry.pending): entry.pending for entry in (*self._lanes, *self._sender.flying(), *self._desk)}
        for pending in everything_behind(active.values()):
            if pending.item.ownership is ownership:
                self._drop(pending)
        removed = self._lanes.remove(_is_dropped) + self._desk.remove(_is_dropped)
        for entry in removed:
            self.release(entry)
        self._sender.wake()

    def flush(self) -> None:
        """The process is to end: wait no more for batches to fill, nor to see whether dead letters flood."""
        self._sender.hurried = True
        self._desk.hurry()
        self._sender.wake()

    def set_ru_limit(self, ru_per_second: float) -> None:
        """Spend at most this from now on; 0: no limit."""
        self._sender.set_ru_limit(ru_per_second)

    def statistics(self) -> SinkStatistics:
        """How it stands."""
        counts, outcomes = self._counts, self._counts.outcomes
        lanes = self._lanes.by_range
        return SinkStatistics(
            committed=outcomes[Outcome.COMMITTED],
            superseded=outcomes[Outcome.SUPERSEDED],
            dropped=outcomes[Outcome.DROPPED],
            dead_lettered=outcomes[Outcome.DEAD_LETTERED],
            reasons=dict(self._counts.reasons),
            retried=dict(counts.retried),
            requests=counts.requests,
            waited_seconds=counts.waited_seconds,
            ru=counts.ru,
            queued=max(0, counts.open - counts.in_flight),
            in_flight=counts.in_flight,
            ranges=len(lanes),
            paced={name: lane.pace.rate for name, lane in lanes.items() if lane.pace.rate is not None},
            bulk=self._sender.bulk,
            fault=self._fault or self._desk.fault,
        )

    async def run(self) -> None:
        """Write until cancelled. Raises DeadLetterFlood."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._desk.run())
                tasks.create_task(self._mender())
                await self._sender.run(tasks)
        except BaseExceptionGroup as group:
            raise _first(group) from None

    # Records that leave the sender.

    def committed(self, entries: Sequence[Entry]) -> None:
        """These are committed, by one answer."""
        complete = self._order.complete
        settled = 0
        for entry in entries:
            pending = entry.pending
            if not pending.dropped:
                settled += 1
                pending.item.settle(_COMMITTED)
            for freed in complete(entry):
                self._free(freed)
        self._counts.outcomes[Outcome.COMMITTED] += settled
        self._counts.open -= settled
        self._desk.good(settled)

    def settle(self, entry: Entry, outcome: Outcome) -> None:
        """It is completed, durably."""
        pending = entry.pending
        if not pending.dropped:
            self._counts.outcomes[outcome] += 1
            self._counts.open -= 1
            pending.item.settle(outcome)
        for freed in self._order.complete(entry):
            self._free(freed)
        if outcome is not Outcome.DEAD_LETTERED:
            self._desk.good(1)

    def bury(self, entry: Entry, reason: str, status: int, sub_status: int) -> None:
        """It can never be committed."""
        if entry.pending.dropped:
            self.release(entry)
        else:
            self._desk.add(entry, reason, status, sub_status)

    def release(self, entry: Entry) -> None:
        """Its partition was lost: let go what waited for it."""
        self._drop(entry.pending)
        for freed in self._order.complete(entry):
            self._free(freed)

    def _free(self, entry: Entry) -> None:
        if entry.pending.dropped:
            self.release(entry)
        elif self._lanes.add(entry):
            self._sender.wake()

    def _drop(self, pending: Pending) -> None:
        if not pending.dropped:
            pending.dropped = True
            self._counts.open -= pending.open

    def _settle_letter(self, entry: Entry) -> None:
        self._counts.buried(entry.record.reason)
        self.settle(entry, Outcome.DEAD_LETTERED)

    def _submit_others(self, pending: Pending, records: Sequence[Record]) -> None:
        item = pending.item
        wanted = [record for record in records if record.operation is not Operation.DROP]
        entries = [Entry(record, pending, item.taken_at, _STEPS[record.operation]) for record in wanted]
        self._counts.open += len(entries)
        writes = [entry for entry in entries if entry.record.operation is not Operation.POISON]
        pending.entries, pending.open = entries, len(entries)
        for entry in self._order.admit(pending, entries) if writes else ():
            self._lanes.add(entry)
        self._sender.wake()
        for _ in range(len(records) - len(wanted)):
            self._counts.outcomes[Outcome.DROPPED] += 1
            item.settle(Outcome.DROPPED)
        for entry in entries:
            if entry.record.operation is Operation.POISON:
                self._desk.add(entry, entry.record.reason, 0, 0)

    # Mending.

    def _ranges_moved(self) -> None:
        if not self._sender.stopped:
            log.info("cosmos ranges have moved; reading them again")
        self._sender.stopped = True
        self._mend.set()

    def _note_set_up(self, fault: str | None) -> None:
        if fault is None:
            if self._fault is not None and not self._sender.stopped:
                log.info("cosmos works again")
                self._fault = None
            return
        if self._fault is None:
            log.error("cosmos set-up fault", fault=fault)
        self._fault = fault
        self._describe = True
        self._sender.stopped = True
        self._mend.set()

    async def _mender(self) -> None:
        wait = self._options.retry_wait_seconds
        while True:
            await self._mend.wait()
            if self._fault is not None:
                await asyncio.sleep(wait)  # what was wrong a moment ago still is, and each look costs the service
                wait = min(wait * 1.5, _MENDING_MOST_SECONDS)
            else:
                wait = self._options.retry_wait_seconds
            self._mend.clear()
            try:
                async with asyncio.timeout(_DESCRIBE_SECONDS):
                    await self._look_again()
            except SetupFault as fault:
                if self._fault != str(fault):
                    log.error("cosmos set-up fault", fault=str(fault))
                self._fault = str(fault)
                self._describe = True
                self._mend.set()
            except (Refused, TimeoutError) as refused:
                log.warning("cosmos ranges cannot be read", fault=str(refused) or "no answer in time")
                await asyncio.sleep(self._options.retry_wait_seconds)
                self._mend.set()

    async def _look_again(self) -> None:
        if self._describe:
            definition = await self._container.describe()
            if definition != self.definition:
                raise SetupFault(
                    f"the container's partition key is {definition.text()} now, but this process began with"
                    f" {self.definition.text()}: restart it, so that records are read by the new one"
                )
        ranges = await self._container.read_ranges()
        if not self._describe and {one[0] for one in ranges} == self._lanes.by_range.keys():
            # The range said that it is moving, but where to is not known yet.
            await asyncio.sleep(self._options.retry_wait_seconds)
        self._lanes.reroute(ranges, self._loop.time())
        self._describe = False
        self._sender.stopped = False
        if not len(self._lanes):
            self._note_set_up(None)  # nothing waits that could show it
        self._sender.wake()


_STEPS: Final = {Operation.UPSERT: Step.UPSERT, Operation.DELETE: Step.DELETE, Operation.POISON: Step.UPSERT}


def _is_dropped(entry: Entry) -> bool:
    return entry.pending.dropped


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What stopped the sink, without the group around it."""
    fault = group.exceptions[0]
    return _first(fault) if isinstance(fault, BaseExceptionGroup) else fault


async def open_sink(
    container: Container, letters: DeadLetterBox, options: SinkOptions | None = None, *, random: Random | None = None
) -> Sink:
    """A sink for the container as it is now. Raises SetupFault if that is not there, or refuses; call again then."""
    definition = await container.describe()
    try:
        ranges = await container.read_ranges()
    except Refused as refused:
        raise SetupFault(f"the ranges of the Cosmos container cannot be read ({refused}); tried again") from refused
    return Sink(container, definition, ranges, letters, options, random=random)
