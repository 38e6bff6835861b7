"""One partition that this host holds: kept, read, and handed to its handler, until it is closed.

Two tasks work on it. One renews the lease. The other settles where to read, opens the handler and reads; what it reads
it hands over in order, each event once, and only while the lease surely holds. A handler that raises is closed and a
new one is opened from the last checkpoint after a back-off, under a new Ownership, so that completions of the old one
fall into nothing.
"""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from typing import Any

import structlog

from service.errors import Fatal, LeaseLost, Retry, SetupFault
from service.source.events import Event
from service.source.faults import backoff
from service.source.handler import PartitionHandler
from service.source.hub import After, PartitionDescription, Receiver, Stolen
from service.source.leases import Checkpoint, CloseReason, Ownership
from service.source.position import settle
from service.source.retention import RetentionEdge
from service.source.store import Holding
from service.source.surroundings import Surroundings

_log = structlog.get_logger()
_CLOSE_GRACE_SECONDS = 1.0


class Pump:
    """A held partition. `run` returns the reason it was closed for; raises only Fatal."""

    def __init__(self, around: Surroundings, holding: Holding, sent: float, not_before: float = -math.inf) -> None:
        self._around = around
        self._not_before = not_before
        """By the clock: no event is read before, since a former owner may still believe that it holds the lease."""
        self._options = around.options
        self.holding = holding
        self.last_written = holding.stored.checkpoint
        self.skipped = 0
        """Events that retention took before they were read."""
        self.reopened = 0
        self.wanted_by = ""
        """The host it is being handed over to."""
        self.edge = RetentionEdge()
        self._gone = False
        """The lease is another's. An Ownership also ends with its handler; this does not."""
        self._closing: asyncio.Future[tuple[CloseReason, float]] = asyncio.get_running_loop().create_future()
        self._renewed = asyncio.Event()
        self._lagging_since: float | None = None
        self._sequence = -1
        self._offset: str | None = None
        self._log = _log.bind(partition=holding.partition, epoch=holding.epoch)
        self.ownership = self._own(sent + self._options.lease_seconds)

    def close(self, reason: CloseReason, deadline: float) -> None:
        """Ask it to end; the first reason stands. For LOST nothing more is sent or written from this moment on."""
        if reason is CloseReason.LOST:
            self.ownership.lost = self._gone = True
            self._renewed.set()
        if not self._closing.done():
            self._closing.set_result((reason, deadline))

    @property
    def closing(self) -> bool:
        """Whether it was asked to end."""
        return self._closing.done()

    def measured(self, partition: PartitionDescription) -> None:
        """The hub told how far the partition has got."""
        self.ownership.last_enqueued = max(self.ownership.last_enqueued, partition.last)
        self.edge.measured(partition.first_kept, self._around.clock())

    async def run(self) -> CloseReason:
        """Keep and read it until it is closed."""
        keeper = asyncio.create_task(self._keep(), name=f"keep-{self.holding.partition}")
        try:
            await self._wait_for_former_owner()
            attempt = 0
            while not self._closing.done():
                started = self._around.clock()
                await self._live()
                # A handler that lived for a while failed anew, not again.
                attempt = 0 if self._around.clock() - started > 60 else attempt + 1
                await self._pause(attempt)
                if not self._closing.done():
                    self.ownership = self._own(self.ownership.deadline)
            return self._closing.result()[0]
        finally:
            self.ownership.lost = True
            for where in ("hub", "receiver", "storage"):
                self._around.faults.cleared(where, self.holding.partition)
            keeper.cancel()
            await asyncio.wait([keeper])

    async def _wait_for_former_owner(self) -> None:
        wait = self._not_before - self._around.clock()
        if wait > 0:
            self._log.warning("taken from a host that did not hand it over; reading waits for it", seconds=round(wait))
            await self._until_closing(self._sleep(wait))

    async def _live(self) -> None:
        """From settling where to read to the end of one handler. Whatever fails here fails this partition only."""
        try:
            if await self._until_closing(self._settle()):
                await self._serve()
        except LeaseLost as lost:
            self._lose(lost)
        except Fatal:
            raise
        except Exception as error:  # noqa: BLE001 - as the docstring says
            self._log.exception("the partition failed; it is opened again", fault=type(error).__name__)

    def _own(self, deadline: float) -> Ownership:
        around, holding = self._around, self.holding
        ownership: Ownership

        async def write(checkpoint: Checkpoint) -> None:
            await self._write(ownership, checkpoint)

        ownership = Ownership(
            around.hub, holding.partition, holding.epoch, holding.stored.checkpoint, deadline, around.clock, write
        )
        return ownership

    async def _settle(self) -> bool:
        """Find where to read, for as long as that takes."""
        attempt = 0
        while True:
            try:
                settled = await settle(self._around.client, self._around.hub, self.holding, self._options.position)
            except Stolen as stolen:
                await self._contest(stolen)
            except (Retry, SetupFault) as error:
                self._around.faults.raised("hub", error, self.holding.partition)
            else:
                break
            await self._sleep(backoff(attempt, self._around.random.random()))
            attempt += 1
        self._count_skipped(settled.skipped)
        self.ownership.start = self.last_written = settled.checkpoint
        self.ownership.last_enqueued = settled.last_enqueued
        self._sequence, self._offset = settled.checkpoint.sequence, settled.checkpoint.offset
        return True

    async def _serve(self) -> None:
        """One handler, from open to close."""
        ownership = self.ownership
        handler = self._around.make_handler(ownership)
        fatal: Fatal | None = None
        try:
            await self._until_closing(self._read(handler))
        except LeaseLost as lost:
            self._lose(lost)
        except Fatal as error:
            fatal = error
        except Exception as error:  # noqa: BLE001 - any handler's fault stops its partition only
            self._log.exception("the partition's handler failed; it is opened again", fault=type(error).__name__)
        except asyncio.CancelledError:
            ownership.lost = True
            raise
        reason, deadline = (CloseReason.ERROR, _now() + 5) if not self._closing.done() else self._closing.result()
        if fatal is not None:
            reason = CloseReason.ERROR
        if ownership.lost:
            reason = CloseReason.LOST
        ownership.lost = reason in (CloseReason.LOST, CloseReason.ERROR)
        await self._close(handler, reason, deadline)
        ownership.lost = True
        if fatal is not None:
            raise fatal

    async def _close(self, handler: PartitionHandler, reason: CloseReason, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline + _CLOSE_GRACE_SECONDS):
                await handler.close(reason, deadline)
        except TimeoutError:
            self._log.warning("the partition did not close in time; what was not checkpointed is read again")
        except (Retry, SetupFault, LeaseLost) as error:
            self._log.warning("the last checkpoint was not written; what it had added is read again", why=str(error))
        except Exception:  # noqa: BLE001 - as above
            self._log.exception("closing the partition failed; what was not checkpointed is read again")

    async def _read(self, handler: PartitionHandler) -> None:
        """Receive for ever, with a new receiver after each fault, each from our own position."""
        await handler.open()
        attempt = 0
        while True:
            after = After(self._sequence, self._offset)
            receiver = self._around.client.receiver(self.holding.partition, self.holding.epoch, after)
            before = self._sequence
            try:
                await self._drain(receiver, handler)
            except Stolen as stolen:
                await self._contest(stolen)
            except (Retry, SetupFault) as error:
                self._around.faults.raised("hub", error, self.holding.partition)
                await handler.error(error)
            finally:
                self._around.clean_up(receiver.close())
            attempt = 0 if self._sequence != before else attempt + 1
            await self._sleep(backoff(attempt, self._around.random.random()) if attempt else 0)

    async def _drain(self, receiver: Receiver, handler: PartitionHandler) -> None:
        """Hand over what the receiver brings; returns when it should be replaced."""
        self._lagging_since = None
        first = True
        while True:
            events = await receiver.receive()
            self._around.faults.cleared("hub", self.holding.partition)
            if events:
                if first and self._misplaced(events[0]):
                    self._offset = None  # by sequence this time
                    return
                first = False
                self._lagging_since = None
                self._around.faults.cleared("receiver", self.holding.partition)
                await self._deliver(events, handler)
                if receiver.misfetches:
                    return
            elif self._stalled():
                self.reopened += 1
                self.ownership.reopened = self.reopened
                self._around.faults.raised("receiver", self._silence(), self.holding.partition)
                return
            elif self._options.empty_calls:
                await _hand_over(handler, ())

    def _silence(self) -> SetupFault:
        """What is wrong while events wait in the hub and none come."""
        hub = self.ownership.hub
        return SetupFault(
            f"event hub {hub.name} has events and brings none of them to consumer group {hub.group}; another receiver "
            "is opened. If this goes on, look at what else reads the hub, and at the service's own state"
        )

    def _misplaced(self, event: Event) -> bool:
        """Whether the offset led beyond the sequence behind which it should lead, so events would be skipped."""
        return self._offset not in (None, "-1") and event.sequence > self._sequence + 1

    async def _deliver(self, events: Sequence[Event], handler: PartitionHandler) -> None:
        """Hand over what was not seen yet, while the lease surely holds."""
        if events[0].sequence <= self._sequence:
            events = [event for event in events if event.sequence > self._sequence]
            if not events:
                return
        while not self.ownership.holds():
            if self._gone:
                raise LeaseLost(self.holding.partition, "it was taken")
            self._renewed.clear()
            await self._renewed.wait()
        self._count_skipped(min(events[0].sequence, self.edge.first_kept) - self._sequence - 1)
        await _hand_over(handler, events)
        self._sequence, self._offset = events[-1].sequence, events[-1].offset
        self.ownership.last_enqueued = max(self.ownership.last_enqueued, self._sequence)

    def _count_skipped(self, events: int) -> None:
        if events > 0:
            self.skipped += events
            self._log.warning("retention took events before they were read", events=events)

    def _stalled(self) -> bool:
        """Whether events wait in the hub and none came for long. Only asked while the receiver is what we wait for."""
        now = self._around.clock()
        # What retention has taken waits no more.
        if self.ownership.last_enqueued < max(self._sequence + 1, self.edge.first_kept):
            self._lagging_since = None
            self._around.faults.cleared("receiver", self.holding.partition)
        elif self._lagging_since is None:
            self._lagging_since = now
        return self._lagging_since is not None and now - self._lagging_since > self._options.stall_seconds

    async def _contest(self, stolen: Stolen) -> None:
        """Another receiver is there. Without the lease the partition is lost; else our epoch goes above the other's."""
        await self._renew_surely()
        if self._gone:
            raise LeaseLost(self.holding.partition, "another host has it")
        try:
            await self.holding.raise_epoch(self.holding.epoch if stolen.epoch is None else stolen.epoch)
        except (Retry, SetupFault) as error:
            self._around.faults.raised("storage", error, self.holding.partition)
            return  # the next try is refused again, and comes back here
        self.ownership.epoch = self.holding.epoch
        self._log.warning(
            "a receiver outside these leases reads this partition; reading goes on with a higher epoch. If it comes "
            "back, give one of the two a consumer group of its own",
            epoch=self.holding.epoch,
        )

    async def _renew_surely(self) -> None:
        attempt = 0
        while not await self._renew():
            await self._sleep(backoff(attempt, self._around.random.random(), most=5.0))
            attempt += 1

    async def _keep(self) -> None:
        """Renew in time; after a failure much sooner."""
        attempt = 0
        wait = self._options.renew_seconds
        while not self._gone:
            await self._sleep(wait)
            if await self._renew():
                attempt, wait = 0, self._options.renew_seconds
            else:
                wait = min(backoff(attempt, self._around.random.random(), most=5.0), self._options.renew_seconds)
                attempt += 1

    async def _renew(self) -> bool:
        """One renewal; True when its outcome is known, be it that the partition is lost."""
        sent = self._around.clock()
        try:
            await self.holding.renew()
        except LeaseLost as lost:
            self._lose(lost)
            return True
        except (Retry, SetupFault) as error:
            self._around.faults.raised("storage", error, self.holding.partition)
            return False
        except Exception as error:  # noqa: BLE001 - the lease must be kept whatever happens
            self._log.exception("renewing the lease failed", fault=type(error).__name__)
            return False
        self._around.faults.cleared("storage", self.holding.partition)
        self.ownership.deadline = max(self.ownership.deadline, sent + self._options.lease_seconds)
        self._renewed.set()
        return True

    async def _write(self, ownership: Ownership, checkpoint: Checkpoint) -> None:
        """The Ownership's `write_checkpoint`."""
        if ownership.lost:
            raise LeaseLost(ownership.partition, "this ownership of it has ended")
        try:
            await self.holding.write(checkpoint)
        except LeaseLost as lost:
            self._lose(lost)
            raise
        except SetupFault as error:
            self._around.faults.raised("storage", error, self.holding.partition)
            raise Retry(str(error)) from None
        except Retry as error:
            self._around.faults.raised("storage", error, self.holding.partition)
            raise
        self.last_written = checkpoint

    def _lose(self, lost: LeaseLost) -> None:
        if not self._gone:
            self._log.warning("partition lost", why=str(lost))
        self.close(CloseReason.LOST, _now() + 5)

    async def _until_closing(self, work: Coroutine[Any, Any, Any]) -> bool:
        """Run it, but end it when the partition is to be closed. True if it ended by itself and well."""
        task = asyncio.create_task(work, name=f"read-{self.holding.partition}")
        try:
            await asyncio.wait([task, self._closing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if task.cancelled():
            return False
        return task.result() is not False

    async def _pause(self, attempt: int) -> None:
        """Wait before the next handler, unless it is to be closed."""
        if not self._closing.done():
            await asyncio.wait([self._closing], timeout=backoff(attempt, self._around.random.random()))

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _HandlerFailed(Exception):
    """A handler raised what looks like the receiver's fault. It may have taken some events: it must be closed."""


async def _hand_over(handler: PartitionHandler, events: Sequence[Event]) -> None:
    try:
        await handler.events(events)
    except (Retry, SetupFault, Stolen) as error:
        raise _HandlerFailed(str(error)) from error


def _now() -> float:
    return asyncio.get_running_loop().time()
