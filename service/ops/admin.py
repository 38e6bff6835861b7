"""What an operator does to leases and checkpoints, for `sluice leases` and `sluice checkpoints`.

Every change takes the partition's lease first, so it cannot race with a host: while another host holds it, it is
refused unless forced, and then that host loses the partition, exactly as to any other. Every change is logged with the
old and the new value. With `dry_run` nothing is taken or written, and what would be done is returned.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from service.errors import LeaseLost, Retry, SluiceError
from service.source.events import Hub, PartitionId
from service.source.hub import HubClient
from service.source.leases import Checkpoint
from service.source.position import resolve
from service.source.start import Position
from service.source.store import Holding, Lease, LeaseStore, Stored

_log = structlog.get_logger()


class Refused(SluiceError):
    """Another host holds the partition. Say `--force` to take it away."""


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A partition, who has it, and how far it is."""

    partition: PartitionId
    owner: str
    live: bool
    epoch: int
    wanted_by: str
    checkpoint: Checkpoint | None
    incarnation: int | None
    lag: int | None
    """Events not yet checkpointed; None where the hub was not asked."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing done, or to be done where it was a dry run."""

    partition: PartitionId
    what: str
    old: Checkpoint | None
    new: Checkpoint | None
    done: bool


class Admin:
    """One consumer group of one hub, as an operator sees it. Its store should be made with `adopt`."""

    def __init__(self, client: HubClient, store: LeaseStore, namespace: str, hub_name: str, group: str) -> None:
        self._client = client
        self._store = store
        self._name = (namespace.lower(), hub_name, group)
        self._host = f"admin-{uuid.uuid4().hex[:8]}"
        self._hub: Hub | None = None
        self._partitions: Sequence[PartitionId] = ()

    async def leases(self) -> Sequence[LeaseView]:
        """Every partition of the hub."""
        return [await self._view(lease) for lease in await self._table()]

    async def release(self, partitions: Sequence[str], *, force: bool, dry_run: bool) -> Sequence[Change]:
        """Free these partitions (all, where none is named), so that any host can take them at once."""
        changes = []
        for lease in await self._table(partitions):
            stored = await self._store.read(lease.partition)
            old = stored.checkpoint if stored else None
            if not lease.owner:
                continue
            holding = await self._take(lease, force=force, dry_run=dry_run)
            if holding is not None:
                await holding.release()
            changes.append(self._note(Change(lease.partition, f"released from {lease.owner}", old, old, not dry_run)))
        return changes

    async def set(
        self, partitions: Sequence[str], position: Position, *, force: bool, dry_run: bool
    ) -> Sequence[Change]:
        """Move the checkpoint so that the event `position` names is the next to be read. Forgets the done-ahead set."""
        changes = []
        for lease in await self._table(partitions):
            description = await self._client.describe_partition(lease.partition)
            stored = await self._store.read(lease.partition)
            holding = await self._take(lease, force=force, dry_run=dry_run)
            epoch = holding.epoch if holding else max(lease.epoch, 0)
            if holding is None and lease.live:
                raise Refused(f"partition {lease.partition}: looking up the position would disturb {lease.owner}")
            try:
                new = await resolve(self._client, lease.partition, epoch, position, description)
                if holding is not None:
                    await holding.write(new, back=True)
            finally:
                if holding is not None:
                    await holding.release()
            old = stored.checkpoint if stored else None
            changes.append(self._note(Change(lease.partition, "set", old, new, not dry_run)))
        return changes

    async def export(self) -> dict[str, Any]:
        """Every checkpoint, as a document that `import_` takes."""
        hub = await self._introduce()
        views = await self.leases()
        return {
            "namespace": hub.namespace,
            "hub": hub.name,
            "group": hub.group,
            "incarnation": hub.incarnation,
            "partitions": {
                view.partition: {
                    "sequence": view.checkpoint.sequence,
                    "offset": view.checkpoint.offset,
                    "done_ahead": view.checkpoint.done_ahead,
                    "incarnation": view.incarnation,
                }
                for view in views
                if view.checkpoint is not None
            },
        }

    async def import_(self, found: Mapping[PartitionId, Stored], *, force: bool, dry_run: bool) -> Sequence[Change]:
        """Write these checkpoints. One that cannot be of this hub is refused unless forced."""
        hub = await self._introduce()
        changes = []
        for lease in await self._table(list(found)):
            new = found[lease.partition].checkpoint
            if new is None:
                continue
            await self._check(hub, lease.partition, found[lease.partition], force=force)
            stored = await self._store.read(lease.partition)
            holding = await self._take(lease, force=force, dry_run=dry_run)
            if holding is not None:
                await holding.write(new, back=True)
                await holding.release()
            old = stored.checkpoint if stored else None
            changes.append(self._note(Change(lease.partition, "imported", old, new, not dry_run)))
        return changes

    async def _introduce(self) -> Hub:
        description = await self._client.describe()
        self._partitions = description.partitions
        if self._hub is None:
            self._hub = Hub(*self._name, description.created_ms)
            await self._store.prepare(self._hub)
        return self._hub

    async def _table(self, partitions: Sequence[str] = ()) -> Sequence[Lease]:
        await self._introduce()
        wrong = [each for each in partitions if each not in self._partitions]
        if wrong:
            raise Refused(f"the hub has no partition {', '.join(wrong)}; it has {', '.join(self._partitions)}")
        return await self._store.list([each for each in self._partitions if not partitions or each in partitions])

    async def _view(self, lease: Lease) -> LeaseView:
        stored = await self._store.read(lease.partition)
        checkpoint = stored.checkpoint if stored else None
        description = await self._client.describe_partition(lease.partition)
        behind = checkpoint.sequence if checkpoint else description.first_kept - 1
        return LeaseView(
            lease.partition,
            lease.owner,
            lease.live,
            lease.epoch,
            lease.wanted_by,
            checkpoint,
            stored.incarnation if stored else None,
            max(0, description.last - behind),
        )

    async def _take(self, lease: Lease, *, force: bool, dry_run: bool) -> Holding | None:
        """The partition, held by us; None in a dry run."""
        if lease.live and not force:
            raise Refused(
                f"partition {lease.partition} is held by {lease.owner}; stop it, or say --force to take it away"
            )
        if dry_run:
            return None
        try:
            return await self._store.acquire(lease, self._host)
        except LeaseLost as lost:
            raise Retry(f"{lost}; try again") from None

    async def _check(self, hub: Hub, partition: PartitionId, stored: Stored, *, force: bool) -> None:
        description = await self._client.describe_partition(partition)
        assert stored.checkpoint is not None  # noqa: S101 - checked by the caller
        of_another = stored.incarnation not in (None, hub.incarnation) or stored.checkpoint.sequence > description.last
        if of_another and not force:
            raise Refused(
                f"partition {partition}: the checkpoint (sequence {stored.checkpoint.sequence}) is not of this hub, "
                f"whose newest event is {description.last}; say --force to import it all the same"
            )

    def _note(self, change: Change) -> Change:
        log = _log.bind(partition=change.partition, by=self._host, old=_shown(change.old), new=_shown(change.new))
        log.info(f"checkpoint or lease {change.what}" if change.done else f"would be {change.what}")
        return change


def parse_export(document: Mapping[str, Any]) -> Mapping[PartitionId, Stored]:
    """The checkpoints of an exported document; ValueError where it is none."""
    try:
        return {
            PartitionId(partition): Stored(
                Checkpoint(int(entry["sequence"]), entry.get("offset"), entry.get("done_ahead")),
                entry.get("incarnation"),
            )
            for partition, entry in document["partitions"].items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no export of checkpoints: {error!r} is missing or wrong") from None


def _shown(checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    return None if checkpoint is None else {"sequence": checkpoint.sequence, "offset": checkpoint.offset}
