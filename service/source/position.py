"""Where an acquired partition is read from: its checkpoint, if that still fits the hub, else its start.

`judge` is pure: it compares what is stored with what the hub has. `settle` acts on it, and leaves a durable checkpoint
behind in every case, so autoscalers and a second start see the same place.
"""

import asyncio
from dataclasses import dataclass
from enum import Enum

from service.errors import BadSettings, Retry
from service.source.events import Event, Hub, PartitionId
from service.source.hub import HubClient, PartitionDescription, ReadFrom
from service.source.leases import Checkpoint
from service.source.start import EARLIEST, LATEST, AtEdge, AtOffset, AtSequence, AtTime, Position, StartPosition
from service.source.store import Holding, Stored

_START_OF_STREAM = "-1"
"""The offset before all events, as all SDKs write it."""
_PEEK_SECONDS = 20.0


class OnGap(Enum):
    """CHECKPOINT_ON_GAP: retention took events behind the checkpoint before they were read."""

    WARN = "warn"
    """Count and report them, go on with the oldest that is left."""
    STOP = "stop"


class OnAhead(Enum):
    """CHECKPOINT_ON_AHEAD: the checkpoint is not of this life of the hub."""

    STOP = "stop"
    EARLIEST = "earliest"
    """Forget it and read the new hub from its first event."""
    LATEST = "latest"
    """Forget it and read what comes from now on."""


@dataclass(frozen=True, slots=True)
class PositionPolicy:
    """What to do about a partition without a checkpoint, and about one that does not fit."""

    start: StartPosition = StartPosition()  # noqa: RUF009 - frozen
    on_gap: OnGap = OnGap.WARN
    on_ahead: OnAhead = OnAhead.STOP


class Fit(Enum):
    """How a stored checkpoint fits the hub."""

    NONE = "there is none"
    FITS = "it fits"
    GAP = "retention has passed it"
    AHEAD = "it is not of this life of the hub"


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome: read behind this checkpoint."""

    checkpoint: Checkpoint
    last_enqueued: int
    skipped: int = 0
    """Events that retention took before they were read."""


def judge(stored: Stored, hub: Hub, partition: PartitionDescription) -> Fit:
    """How what is stored fits what the hub has. A hub of another life is ahead also when it is past the sequence."""
    if stored.checkpoint is None:
        return Fit.NONE
    if stored.incarnation not in (None, hub.incarnation) or stored.checkpoint.sequence > partition.last:
        return Fit.AHEAD
    return Fit.GAP if stored.checkpoint.sequence + 1 < partition.first_kept else Fit.FITS


async def settle(client: HubClient, hub: Hub, holding: Holding, policy: PositionPolicy) -> Settled:
    """Decide where to read, and make that durable. Raises BadSettings where the policy says stop."""
    name = holding.partition
    partition = await client.describe_partition(name)
    stored = holding.stored
    match judge(stored, hub, partition):
        case Fit.FITS:
            assert stored.checkpoint is not None  # noqa: S101 - judge said so
            return Settled(stored.checkpoint, partition.last)
        case Fit.NONE:
            checkpoint = await resolve(client, name, holding.epoch, policy.start.of(name), partition)
            await holding.write(checkpoint)
            return Settled(checkpoint, partition.last)
        case Fit.GAP:
            return await _pass_gap(hub, holding, policy, partition)
        case Fit.AHEAD:
            return await _start_again(client, hub, holding, policy, partition)


async def resolve(
    client: HubClient, partition: PartitionId, epoch: int, position: Position, description: PartitionDescription
) -> Checkpoint:
    """The checkpoint behind which reading starts with the event that `position` names."""
    first, last = description.first_kept, Checkpoint(description.last, description.last_offset)
    if description.empty or position == LATEST:
        return last if description.last >= 0 else Checkpoint(-1, _START_OF_STREAM)
    match position:
        case AtTime(enqueued_ms) if enqueued_ms > description.last_enqueued_ms:
            return last
        case AtSequence(sequence) if sequence > description.last:
            return last
        case AtSequence(sequence) if sequence > first:
            return await _before(client, partition, epoch, sequence)
        case AtTime() | AtOffset():
            event = await _peek(client, partition, epoch, position)
            if event is None:
                raise Retry(f"partition {partition}: no event came for its start position {position}")
            return await _before(client, partition, epoch, event.sequence) if event.sequence > first else _from(first)
        case AtEdge() | AtSequence():
            return _from(first)


def _from(first: int) -> Checkpoint:
    """Behind everything that retention took."""
    return Checkpoint(first - 1, _START_OF_STREAM)


async def _before(client: HubClient, partition: PartitionId, epoch: int, sequence: int) -> Checkpoint:
    """The checkpoint right before this sequence, with its offset if that event is there."""
    event = await _peek(client, partition, epoch, AtSequence(sequence - 1))
    return Checkpoint(sequence - 1, event.offset if event and event.sequence == sequence - 1 else None)


async def _peek(client: HubClient, partition: PartitionId, epoch: int, read_from: ReadFrom) -> Event | None:
    """The first event at a position."""
    receiver = client.receiver(partition, epoch, read_from)
    try:
        async with asyncio.timeout(_PEEK_SECONDS):
            while not (events := await receiver.receive()):
                pass
            return events[0]
    except TimeoutError:
        return None
    finally:
        await receiver.close()


async def _pass_gap(hub: Hub, holding: Holding, policy: PositionPolicy, partition: PartitionDescription) -> Settled:
    """Go on behind the gap. The checkpoint stays until something behind it is done, so the report can be repeated."""
    old = holding.stored.checkpoint
    assert old is not None  # noqa: S101 - there is no gap without one
    skipped = partition.first_kept - old.sequence - 1
    if policy.on_gap is OnGap.STOP:
        message = (
            f"partition {holding.partition} of {hub.name}: retention took {skipped} events behind the checkpoint "
            f"(sequence {old.sequence + 1} to {partition.first_kept - 1}) before they were read; set "
            "CHECKPOINT_ON_GAP=warn to go on with what is left, or load them with `sluice backfill`"
        )
        raise BadSettings([message])
    checkpoint = _from(partition.first_kept)
    await holding.write(checkpoint)
    return Settled(checkpoint, partition.last, skipped)


async def _start_again(
    client: HubClient, hub: Hub, holding: Holding, policy: PositionPolicy, partition: PartitionDescription
) -> Settled:
    """Forget a checkpoint of another life, if that is allowed."""
    old = holding.stored.checkpoint
    assert old is not None  # noqa: S101 - nothing is ahead without one
    if policy.on_ahead is OnAhead.STOP:
        message = (
            f"partition {holding.partition} of {hub.name}: the checkpoint (sequence {old.sequence}) is not of this "
            f"hub, whose newest event is {partition.last}; the hub was deleted and made again under its name, or "
            "BLOB_CONTAINER is of another one; set CHECKPOINT_ON_AHEAD=earliest or latest to start anew, or move it "
            "with `sluice checkpoints set`"
        )
        raise BadSettings([message])
    position = EARLIEST if policy.on_ahead is OnAhead.EARLIEST else LATEST
    checkpoint = await resolve(client, holding.partition, holding.epoch, position, partition)
    await holding.write(checkpoint, back=True)
    return Settled(checkpoint, partition.last)
