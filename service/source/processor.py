"""The host: holds its share of the partitions and reads each through a pump.

Two loops run beside the pumps. One looks at the table of leases and does what `balance` says; the other asks the hub
how far each partition has got, so that the lag is known. Storage or the hub being away ends nothing: what is held is
kept as long as its lease holds, the fault is said once, and both are tried again for ever.
"""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import structlog

from service.clock import Clock
from service.errors import Fatal, LeaseLost, Retry, SetupFault
from service.source.balance import Plan, Policy, Strategy, balance
from service.source.events import Hub, PartitionId
from service.source.faults import Faults, backoff
from service.source.handler import HandlerFactory
from service.source.hub import HubClient, HubDescription
from service.source.leases import CloseReason
from service.source.position import PositionPolicy
from service.source.pump import Pump
from service.source.statistics import PartitionStatistics, ProcessorStatistics
from service.source.store import Lease, LeaseStore
from service.source.surroundings import PumpOptions, Surroundings

_log = structlog.get_logger()
_RELEASE_SECONDS = 2.0
"""Kept back from a deadline for letting the leases go."""
_CLEAN_UP_SECONDS = 6.0
_MEASURE_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class ProcessorOptions:
    """How a host balances, keeps and reads its partitions."""

    strategy: Strategy = Strategy.GREEDY
    max_partitions: int = 0
    lease_seconds: float = 30.0
    renew_seconds: float = 10.0
    dwell_seconds: float = 30.0
    handover_seconds: float = 12.0
    """How long an owner has to hand over after it was asked. It looks every `renew_seconds`, then drains."""
    scan_seconds: float = 0.0
    """The time between two looks at the leases while all is at rest; 0 = with each renewal, at most 10 s."""
    soon_seconds: float = 1.0
    """The time to the next look while partitions are on the move."""
    stall_seconds: float = 30.0
    as_the_sdks: bool = False
    empty_calls: bool = False
    failing_seconds: float = 10.0
    """How long the other partitions may drain when one ends the process."""
    position: PositionPolicy = PositionPolicy()  # noqa: RUF009 - frozen

    @property
    def rest_seconds(self) -> float:
        """The time between two looks while all is at rest."""
        return self.scan_seconds or min(self.renew_seconds, 10.0)

    @property
    def policy(self) -> Policy:
        """The part for `balance`."""
        return Policy(
            self.strategy, self.max_partitions, self.dwell_seconds, self.handover_seconds, as_the_sdks=self.as_the_sdks
        )

    @property
    def pump(self) -> PumpOptions:
        """The part for each pump."""
        return PumpOptions(self.lease_seconds, self.renew_seconds, self.stall_seconds, self.empty_calls, self.position)


class Processor:
    """One host. `host` must be unlike any other's, also unlike its own of an earlier start."""

    def __init__(
        self,
        client: HubClient,
        store: LeaseStore,
        make_handler: HandlerFactory,
        options: ProcessorOptions,
        *,
        host: str,
        namespace: str,
        hub_name: str,
        group: str,
        clock: Clock,
        random: Random,
    ) -> None:
        self._client = client
        self._store = store
        self._make_handler = make_handler
        self._options = options
        self._host = host
        self._name = (namespace, hub_name, group)
        self._clock = clock
        self._random = random
        self._faults = Faults(host)
        self._log = _log.bind(host=host)
        self._pumps: dict[PartitionId, Pump] = {}
        self._partitions: Sequence[PartitionId] = ()
        self._free_since: dict[PartitionId, float] = {}
        self._taken = self._lost = self._handed_over = self._scans = 0
        self._stopping = asyncio.Event()
        self._look = asyncio.Event()
        """Look at the table sooner than planned."""
        self._finished = asyncio.Event()
        self._deadline = 0.0
        self._fatal: Fatal | None = None
        self._around: Surroundings | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._cleaning: set[asyncio.Task[None]] = set()
        """Receivers that are being closed, which takes the SDK a second that nobody should wait for."""

    async def run(self) -> None:
        """Work until `stop` is called. Raises only Fatal."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                working = tasks.create_task(self._work())
                await self._stopping.wait()
                working.cancel()
                for pump in self._pumps.values():
                    pump.close(CloseReason.SHUTDOWN, self._drain_deadline())
        finally:
            if self._cleaning:
                await asyncio.wait(self._cleaning, timeout=_CLEAN_UP_SECONDS)
            self._finished.set()
        if self._fatal is not None:
            raise self._fatal

    async def stop(self, deadline: float) -> None:
        """Take nothing more, drain and release what is held, by `deadline` in the event loop's time."""
        self._deadline = deadline if not self._stopping.is_set() else min(self._deadline, deadline)
        self._stopping.set()
        await self._finished.wait()

    def statistics(self) -> ProcessorStatistics:
        """As of now."""
        return ProcessorStatistics(
            host=self._host,
            partitions=tuple(_statistics(self._pumps[each]) for each in sorted(self._pumps, key=_by_number)),
            partitions_in_hub=len(self._partitions),
            taken=self._taken,
            lost=self._lost,
            handed_over=self._handed_over,
            scans=self._scans,
            storage_fault=self._faults.standing("storage"),
            hub_fault=self._faults.standing("hub") or self._faults.standing("receiver"),
            last_fault=self._faults.last,
        )

    async def _work(self) -> None:
        """Get to know the hub and the store, then scan and measure."""
        hub = await self._introduce()
        self._around = Surroundings(
            hub,
            self._client,
            self._make_handler,
            self._options.pump,
            self._clock,
            self._random,
            self._faults,
            self._clean_up,
        )
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self._scan_for_ever())
            loops.create_task(self._measure_for_ever())

    async def _introduce(self) -> Hub:
        """The hub with its incarnation, and the store made ready, for as long as that takes."""
        attempt = 0
        namespace, name, group = self._name
        while True:
            asked = "hub"
            try:
                description = await self._describe()
                asked = "storage"
                hub = Hub(namespace.lower(), name, group, description.created_ms)
                await self._store.prepare(hub)
            except Fatal as fatal:
                self._fail(fatal)
                await asyncio.Event().wait()
            except (Retry, SetupFault) as error:
                self._faults.raised(asked, error)
            else:
                self._faults.cleared("storage")
                return hub
            await asyncio.sleep(backoff(attempt, self._random.random()))
            attempt += 1

    async def _describe(self) -> HubDescription:
        description = await self._client.describe()
        self._faults.cleared("hub")
        self._partitions = description.partitions
        return description

    async def _scan_for_ever(self) -> None:
        attempt = 0
        while True:
            try:
                settled = await self._scan()
            except (Retry, SetupFault) as error:
                # What is held stays held: the pumps renew by themselves.
                self._faults.raised("storage", error)
                wait = backoff(attempt, self._random.random(), most=self._options.rest_seconds)
                attempt += 1
            except Exception as error:  # noqa: BLE001 - a blob nobody can read must not end what is read
                self._log.exception("looking at the leases failed; it is tried again", fault=type(error).__name__)
                wait = self._options.rest_seconds
            else:
                attempt = 0
                wait = self._options.rest_seconds if settled else self._options.soon_seconds
                wait *= 0.9 + 0.2 * self._random.random()
            self._look.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._look.wait()
            except TimeoutError:
                pass

    async def _scan(self) -> bool:
        """Look once and act; whether all is at rest."""
        self._scans += 1
        table = await self._store.list(self._partitions)
        self._faults.cleared("storage")
        self._hand_over(table)
        plan = balance(
            table,
            self._host,
            self._options.policy,
            self._random,
            left_over=self._left_over(table),
            avoid=frozenset(self._pumps),
        )
        orphans = tuple(
            lease for lease in table if lease.live and lease.owner == self._host and lease.partition not in self._pumps
        )
        async with asyncio.TaskGroup() as tasks:
            for lease in (*plan.take, *plan.steal, *orphans):
                tasks.create_task(self._acquire(lease))
            for lease in plan.ask:
                tasks.create_task(self._ask(lease))
        return self._at_rest(plan, table)

    def _at_rest(self, plan: Plan, table: Sequence[Lease]) -> bool:
        waiting = any(lease.wanted_by == self._host and lease.owner != self._host for lease in table)
        return plan.settled and not waiting

    def _hand_over(self, table: Sequence[Lease]) -> None:
        """Start closing what another host asked for."""
        for lease in table:
            pump = self._pumps.get(lease.partition)
            asked = lease.wanted_by if lease.live and lease.owner == self._host else ""
            if pump and not pump.closing and asked not in ("", self._host):
                pump.wanted_by = asked
                limit = min(self._options.handover_seconds - lease.wanted_seconds, self._options.handover_seconds / 2)
                pump.close(CloseReason.HANDED_OVER, _now() + max(1.0, limit))

    def _left_over(self, table: Sequence[Lease]) -> frozenset[PartitionId]:
        """Partitions that nobody took for so long that whoever has room should."""
        now = self._clock()
        free = {lease.partition for lease in table if not lease.live}
        self._free_since = {each: self._free_since.get(each, now) for each in free}
        patience = 3 * self._options.renew_seconds
        return frozenset(each for each, since in self._free_since.items() if now - since > patience)

    async def _acquire(self, lease: Lease) -> None:
        """Take one partition and start its pump."""
        sent = self._clock()
        try:
            holding = await self._store.acquire(lease, self._host)
        except LeaseLost:
            return  # another host was faster
        except (Retry, SetupFault) as error:
            self._faults.raised("storage", error)
            return
        except Fatal as fatal:
            self._fail(fatal)
            return
        assert self._around is not None  # noqa: S101 - set before any scan
        assert self._tasks is not None  # noqa: S101 - as above
        self._taken += 1
        # Taken away from a live owner, which may go on until its own deadline before it hears of it. (The SDKs'
        # processors take partitions so all the time, and stop when their receiver is cut off.)
        forced = lease.live and lease.owner not in ("", self._host) and not self._options.as_the_sdks
        not_before = self._clock() + self._options.lease_seconds if forced else -math.inf
        pump = Pump(self._around, holding, sent, not_before)
        self._pumps[lease.partition] = pump
        self._log.info("partition taken", partition=lease.partition, epoch=holding.epoch, from_host=lease.owner)
        if self._stopping.is_set():
            pump.close(CloseReason.SHUTDOWN, self._drain_deadline())
        self._tasks.create_task(self._run(pump))

    async def _ask(self, lease: Lease) -> None:
        try:
            await self._store.ask(lease, self._host)
        except (Retry, SetupFault) as error:
            self._faults.raised("storage", error)

    async def _run(self, pump: Pump) -> None:
        """A pump from its start to the release of its lease."""
        reason = CloseReason.ERROR
        try:
            reason = await pump.run()
        except Fatal as fatal:
            self._fail(fatal)
        finally:
            if reason is CloseReason.LOST:
                self._lost += 1
            elif reason is CloseReason.HANDED_OVER:
                self._handed_over += 1
            await self._release(pump, reason)
            self._pumps.pop(pump.holding.partition, None)
            self._look.set()

    async def _release(self, pump: Pump, reason: CloseReason) -> None:
        if reason is CloseReason.LOST:
            return
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await pump.holding.release(pump.wanted_by if reason is CloseReason.HANDED_OVER else "")
        except (LeaseLost, Retry, SetupFault, TimeoutError):
            self._log.info("a lease was not released and will run out", partition=pump.holding.partition)

    async def _measure_for_ever(self) -> None:
        """Ask the hub how far each held partition has got, each about once per renewal; also for new partitions."""
        while True:
            await asyncio.sleep(self._options.renew_seconds * (0.9 + 0.2 * self._random.random()))
            gate = asyncio.Semaphore(_MEASURE_AT_ONCE)
            try:
                self._same_life(await self._describe())
                async with asyncio.TaskGroup() as tasks:
                    for pump in self._pumps.values():
                        tasks.create_task(self._measure(pump, gate))
            except* (Retry, SetupFault) as group:
                self._faults.raised("hub", group.exceptions[0])  # type: ignore[arg-type]

    def _same_life(self, description: HubDescription) -> None:
        """A hub made anew under our eyes: nothing we hold fits it. A new start settles what to do about it."""
        assert self._around is not None  # noqa: S101 - set before any measuring
        if description.created_ms != self._around.hub.incarnation:
            self._fail(
                Fatal(f"the hub {self._around.hub.name} was deleted and made again while it was read; start again")
            )

    async def _measure(self, pump: Pump, gate: asyncio.Semaphore) -> None:
        async with gate:
            partition = await self._client.describe_partition(pump.holding.partition)
        pump.measured(partition)

    def _fail(self, fatal: Fatal) -> None:
        """One partition ends the process: let the others drain, then raise it."""
        if self._fatal is None:
            self._fatal = fatal
        if not self._stopping.is_set():
            self._deadline = _now() + self._options.failing_seconds
            self._stopping.set()

    def _drain_deadline(self) -> float:
        """The handlers' part of the deadline: the rest is for releasing the leases."""
        now = _now()
        return max(self._deadline - _RELEASE_SECONDS, now + (self._deadline - now) / 2)

    def _clean_up(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)


def _statistics(pump: Pump) -> PartitionStatistics:
    ownership = pump.ownership
    return PartitionStatistics(
        id=pump.holding.partition,
        epoch=pump.holding.epoch,
        checkpoint=pump.last_written,
        last_enqueued=ownership.last_enqueued,
        reopened=pump.reopened,
        skipped=pump.skipped,
        minutes_to_loss=pump.edge.minutes_to(pump.last_written.sequence + 1) if pump.last_written else None,
        paused=not ownership.holds(),
    )


def _by_number(partition: PartitionId) -> tuple[int, str]:
    return (int(partition) if partition.isdecimal() else -1, partition)


def _now() -> float:
    return asyncio.get_running_loop().time()
