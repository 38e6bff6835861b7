"""One worker: source, flow and sink of one host wired together, from start to orderly end."""

import asyncio
import os
import socket
import uuid
from collections import deque
from collections.abc import Coroutine
from fractions import Fraction
from random import Random
from typing import Any

import structlog

from service import options
from service.clock import Clock, uptime
from service.config import Settings
from service.endpoints import AnySink, Endpoints
from service.errors import SetupFault
from service.flow.backlog import Backlog
from service.flow.checkpointer import Checkpointer
from service.flow.partition import Intake, PartitionFlow
from service.flow.slots import Slots
from service.ops.progress import progress_line
from service.ops.status import status
from service.ops.tasks import unfinished
from service.ops.telemetry import Telemetry
from service.sink.record import Decoder
from service.source.leases import Ownership
from service.source.processor import Processor

log = structlog.get_logger()

FATAL_SECONDS = 8.0
"""What is left for last checkpoints and for releasing the leases when the process ends because it must."""
LATE_SECONDS = 7.0
"""After a deadline, for closing receivers and for releases that hang; whatever is left then is a fault of ours."""
CANCEL_SECONDS = 2.0
"""For that to end which was cut off. With the two a container that has 60 s to end does so before it is killed."""
WHOLE = Fraction(1)
REPORT_SECONDS = 5.0
"""How often the progress line comes; also the time over which the rate is measured."""


class Worker:
    """One process of the replica: one host, one sink, one set of slots."""

    def __init__(
        self,
        settings: Settings,
        endpoints: Endpoints,
        *,
        share: Fraction = WHOLE,
        host: str = "",
        clock: Clock = uptime,
        random: Random | None = None,
    ) -> None:
        self._settings = settings
        self._endpoints = endpoints
        self._clock = clock
        self._random = random or Random()  # noqa: S311 - jitter
        self._share = share
        """Of the replica's rate and limits; the supervisor says which, where there are several workers."""
        self._rate_limit = settings.eventhub_ratelimit
        # Named anew at every start: a host that comes back is another host, with leases of its own.
        self.host = host or f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._flows: dict[str, PartitionFlow] = {}
        self._processor: Processor | None = None
        self._slots = Slots(self._allowed_rate())
        self._telemetry: Telemetry | None = None
        self._intake = Intake(closed=self._closed)
        self._backlog = Backlog(
            options.backlog(settings, share), lambda: (flow.worklist for flow in self._flows.values()), self._prefetched
        )
        self._checkpointer = Checkpointer(self._flows.values, settings.checkpoint_interval)
        self._receiver_bytes = options.RECEIVED_TIMES * options.prefetch_bytes(settings)
        self._sink: AnySink | None = None
        self._decoder: Decoder | None = None
        self._draining = False
        self._fault: str | None = "Cosmos has not been reached yet"
        # (time, records committed) about once a second, for the measured rate.
        self._samples: deque[tuple[float, int]] = deque([(self._began, 0)])

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until `stop` is set; then drain, checkpoint and release within SHUTDOWN_DEADLINE."""
        settings = self._settings
        try:
            sink = self._sink = await self._reach_cosmos(stop)
            if sink is None:
                return
            self._share_ru()
            namespace, hub_name = self._endpoints.hub_name
            processor = self._processor = Processor(
                self._endpoints.hub(),
                self._endpoints.leases(),
                self._flow_for,
                options.processor(settings),
                host=self.host,
                namespace=namespace,
                hub_name=hub_name,
                group=settings.eventhub_consumergroup,
                clock=self._clock,
                random=self._random,
            )
            beside = [sink.run(), self._checkpointer.run(), self._backlog.run(), self._report()]
            await self._until_stopped(processor, beside, stop)
        finally:
            await self._endpoints.close()

    async def _until_stopped(
        self, processor: Processor, beside: list[Coroutine[Any, Any, None]], stop: asyncio.Event
    ) -> None:
        """Run everything; at the end, however it came, the processor is stopped before what it needs."""
        reading = asyncio.create_task(processor.run(), name="processor")
        tasks = {asyncio.create_task(work) for work in beside}
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({reading, stopped, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            self._draining = True
            asked = stopped.done()
            log.info("stopping", why="asked to" if asked else "must end")
            await self._stop(processor, self._settings.shutdown_deadline if asked else FATAL_SECONDS)
            ended = [task for task in (*tasks, reading) if task.done()]
            self._say_progress()
            for task in ended:
                task.result()  # raises what ended it
        finally:
            everything: list[asyncio.Task[Any]] = [stopped, reading, *tasks]
            for each in everything:
                each.cancel()
            # What was cut off may miss this too; the end of the process cancels each task there is by itself.
            await asyncio.wait([asyncio.gather(*everything, return_exceptions=True)], timeout=CANCEL_SECONDS)

    async def _stop(self, processor: Processor, seconds: float) -> None:
        """Let it drain and release; what does not end by then, whatever it is, is cut off."""
        deadline = self._loop.time() + seconds
        try:
            async with asyncio.timeout_at(deadline + LATE_SECONDS):
                await processor.stop(deadline)
        except TimeoutError:
            log.error("not everything ended in time; the rest is cut off", unfinished=unfinished())

    async def _reach_cosmos(self, stop: asyncio.Event) -> AnySink | None:
        """Open the sink, however long it takes; None when told to stop before."""
        settings = self._settings
        waiting = asyncio.create_task(stop.wait())
        attempt = 0
        try:
            while not stop.is_set():
                try:
                    sink = await self._endpoints.open_sink()
                except SetupFault as fault:
                    if str(fault) != self._fault:
                        log.error("cosmos is not usable; trying again", fault=str(fault))
                    self._fault = str(fault)
                else:
                    self._fault = None
                    self._decoder = Decoder(
                        options.documents(settings), sink.definition, guarded=settings.cosmos_write_mode == "guarded"
                    )
                    return sink
                await asyncio.wait({waiting}, timeout=min(30.0, 0.5 * 2**attempt))
                attempt += 1
        finally:
            waiting.cancel()
        return None

    def _flow_for(self, ownership: Ownership) -> PartitionFlow:
        assert self._sink is not None  # noqa: S101 - the processor starts after it
        assert self._decoder is not None  # noqa: S101 - as above
        flow = PartitionFlow(ownership, self._decoder.decode, self._sink, self._slots, self._backlog, self._intake)
        self._flows[ownership.partition] = flow
        self._slots.set_rate(self._allowed_rate())
        return flow

    def _prefetched(self) -> int:
        """Bytes that the receivers may hold; never so many that the backlog itself has no room."""
        return min(len(self._flows) * self._receiver_bytes, self._backlog.limits.bytes // 2)

    def _closed(self, flow: PartitionFlow) -> None:
        if self._flows.get(flow.ownership.partition) is flow:
            del self._flows[flow.ownership.partition]
        self._slots.set_rate(self._allowed_rate())

    def _allowed_rate(self) -> Fraction | None:
        """The rate of this worker: all of it, its share of the replica, or its share of the fleet."""
        if not self._rate_limit:
            return None
        if self._settings.eventhub_ratelimit_scope == "replica":
            return self._rate_limit * self._share
        partitions = self._processor.statistics().partitions_in_hub if self._processor else 0
        owned = sum(1 for flow in self._flows.values() if flow.ownership.holds())
        return Fraction(self._rate_limit * owned, partitions) if partitions else Fraction(0)

    def watched_by(self, telemetry: Telemetry) -> None:
        """Keep these instruments fed."""
        self._telemetry = telemetry
        self._intake.completed = telemetry.completed

    def set_rate_limit(self, records_per_second: int) -> None:
        """Take another EVENTHUB_RATELIMIT from now on."""
        self._rate_limit = records_per_second
        self._slots.set_rate(self._allowed_rate())

    def set_share(self, share: Fraction) -> None:
        """Take another share of the replica's rate and limits from now on."""
        self._share = share
        self._slots.set_rate(self._allowed_rate())
        self._backlog.limits = options.backlog(self._settings, share)
        self._share_ru()

    def _share_ru(self) -> None:
        if self._sink is not None and self._settings.cosmos_rulimit:
            self._sink.set_ru_limit(self._ru_limit())

    def _ru_limit(self) -> float:
        """A worker's part of COSMOS_RULIMIT; one RU/s where it owns nothing, since 0 would mean no limit."""
        limit = self._settings.cosmos_rulimit
        return max(1.0, float(limit * self._share)) if limit else 0.0

    def not_ready(self) -> str | None:
        """Why no work should be expected of this worker; None when it may be."""
        if self._draining:
            return "draining"
        faults = self._faults()
        return faults[0] if faults else None

    def status(self) -> dict[str, Any]:
        """What `/status` says."""
        return status(
            host=self.host,
            seconds=self._loop.time() - self._began,
            intake=self._intake,
            backlog=self._backlog.statistics(),
            limits=self._backlog.limits,
            slots=self._slots.statistics(),
            flows=self._flows.values(),
            sink=self._sink.statistics() if self._sink else None,
            processor=self._processor.statistics() if self._processor else None,
            rate=self._rate(),
            ru_limit=self._ru_limit(),
            share=self._share,
            draining=self._draining,
            faults=self._faults(),
            checkpoints_failed=self._checkpointer.failed,
        )

    def _faults(self) -> list[str]:
        found = [self._fault]
        if self._sink is not None:
            found.append(self._sink.statistics().fault)
        if self._processor is not None:
            held = self._processor.statistics()
            found += [held.storage_fault, held.hub_fault]
        return [fault for fault in found if fault]

    def _rate(self) -> float:
        """Records committed per second, over about the last REPORT_SECONDS."""
        then, before = self._samples[0]
        seconds = self._loop.time() - then
        committed = self._sink.statistics().committed if self._sink else 0
        return (committed - before) / seconds if seconds > 0 else 0.0

    async def _report(self) -> None:
        """The progress line, and samples for the rate, until cancelled."""
        seconds = 0
        while True:
            await asyncio.sleep(1.0)
            seconds += 1
            committed = self._sink.statistics().committed if self._sink else 0
            self._slots.set_rate(self._allowed_rate())
            if self._telemetry is not None:
                self._telemetry.refresh()
            self._samples.append((self._loop.time(), committed))
            while len(self._samples) > REPORT_SECONDS:
                self._samples.popleft()
            if seconds % REPORT_SECONDS == 0:
                self._say_progress()

    def _say_progress(self) -> None:
        if self._sink is None:
            return
        done = self._sink.statistics()
        line = progress_line(
            successes=done.committed + done.superseded,
            failures=done.dead_lettered,
            retries=sum(done.retried.values()),
            seconds=self._loop.time() - self._began,
            ru=done.ru,
            backlog=self._backlog.statistics().items,
        )
        log.info(line)
