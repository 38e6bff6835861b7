"""Ownership as the current SDKs keep it: two small blobs per partition, claimed and fenced by their ETags.

For sharing a consumer group with their processors, so their rules hold: owner level 0, `ownerid` in the ownership
blob's metadata, a claim is a conditional write, an ownership not renewed for a while has ended, and the checkpoint is
metadata of a blob of its own, which they write without any condition.

What we add lies in the checkpoint blob's body, which their writes leave alone: how often the partition was claimed by
us, the hub's life, and the done-ahead set with the sequence it belongs to. Each claim writes that body anew, so the
ETag a former owner of ours knows is void and its late checkpoint is refused. Hints that may get lost (who asks for it,
when it moved) stand in the checkpoint blob's metadata, where one listing shows them.

SDKs do not agree on the folder. Ours is the one that was written to last, and when a processor of another SDK turns up
in another one, we let go of everything and join it there.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from weakref import WeakSet

import structlog

from service.errors import LeaseLost, Retry
from service.source.blobs import Blob, Blobs, Conflict
from service.source.events import Hub, PartitionId
from service.source.foreign import refuse_foreign
from service.source.layout import checkpoint_name, folders, ownership_name
from service.source.leases import Checkpoint
from service.source.ownership_document import OFFSET, OURS, OWNER, SEQUENCE, body_of, encode, stored_in
from service.source.peers import folder_of_peers, latest_folder
from service.source.store import NOTHING_STORED, Lease, Stored

_MOVED, _WANTED, _WANTED_AT = "sluice_moved", "sluice_wanted", "sluice_wanted_at"
_TRIES = 4
_log = structlog.get_logger()
_UNKNOWN_OFFSET = ""


class BlobOwnership:
    """A `LeaseStore` of ownership and checkpoint blobs. `adopt`: start even beside lease blobs of the same group."""

    def __init__(self, blobs: Blobs, expiry_seconds: float = 120.0, *, adopt: bool = False) -> None:
        self._blobs = blobs
        self._adopt = adopt
        self._expiry_seconds = expiry_seconds
        self._hub = Hub("", "", "", 0)
        self._folder = ""
        self._holdings: WeakSet[OwnershipHolding] = WeakSet()

    async def prepare(self, hub: Hub) -> None:
        """Make the container, and refuse a first start beside lease blobs. Another hub's blobs have other names."""
        self._hub = hub
        await self._blobs.make()
        if not self._adopt:
            await refuse_foreign(self._blobs, hub, "ownership")
        self._folder = await latest_folder(self._blobs, hub)

    async def list(self, partitions: Sequence[PartitionId]) -> Sequence[Lease]:
        """One listing gives both kinds of blobs; where nobody but us is in it, another is looked for."""
        table = await self._table(partitions)
        if any(lease.live and not lease.asks for lease in table):
            return table
        joined = await folder_of_peers(self._blobs, self._hub, self._folder, self._expiry_seconds)
        if joined is None:
            return table
        _log.warning("another SDK's processor keeps its blobs in another folder: joining it there", folder=joined)
        self._folder = joined
        for holding in self._holdings:
            holding.leave(joined)
        return await self._table(partitions)

    async def _table(self, partitions: Sequence[PartitionId]) -> Sequence[Lease]:
        folder = self._folder
        blobs = {blob.name: blob for blob in await self._blobs.list(folder)}
        return [
            self._lease(each, blobs.get(ownership_name(folder, each)), blobs.get(checkpoint_name(folder, each)))
            for each in partitions
        ]

    async def acquire(self, lease: Lease, host: str) -> "OwnershipHolding":
        """Claim over exactly the listed version, then make the former owner's ETag of the checkpoint void."""
        name, claim = ownership_name(self._folder, lease.partition), {OWNER: host}
        try:
            if lease.version:
                etag, _ = await self._blobs.set_metadata(name, claim, etag=lease.version)
            else:
                # An upload, since storage may let two first claims by metadata both succeed.
                etag = await self._blobs.put(name, b"", claim, etag=None)
        except Conflict as conflict:
            raise LeaseLost(lease.partition, f"another host was faster ({conflict.code})") from None
        holding = OwnershipHolding(self._blobs, self._hub, self._folder, lease.partition, host, etag)
        self._holdings.add(holding)
        await holding.enter(moved=lease.live or lease.wanted_by == host)
        await holding.confirm()
        return holding

    async def ask(self, lease: Lease, host: str) -> None:
        """Leave our name in the checkpoint blob's metadata."""
        name = checkpoint_name(self._folder, lease.partition)
        blob = await self._blobs.get(name)
        if blob is not None:
            hint = {_WANTED: host, _WANTED_AT: str(int(self._blobs.now))}
            with contextlib.suppress(Conflict):  # it changed under us: look again at the next scan
                await self._blobs.set_metadata(name, dict(blob.metadata) | hint, etag=blob.etag)

    async def read(self, partition: PartitionId) -> Stored | None:
        """What the checkpoint blob says."""
        blob = await self._blobs.get(checkpoint_name(self._folder, partition))
        return stored_in(blob) if blob else None

    async def close(self) -> None:
        """Give back connections."""
        await self._blobs.close()

    def _lease(self, partition: PartitionId, owned: Blob | None, checkpoint: Blob | None) -> Lease:
        now = self._blobs.now
        owner = owned.metadata.get(OWNER, "") if owned else ""
        age = now - owned.modified.timestamp() if owned and owned.modified else 0.0
        hints: Mapping[str, str] = checkpoint.metadata if checkpoint else {}
        moved = hints.get(_MOVED)
        return Lease(
            partition,
            owner,
            bool(owner) and age < self._expiry_seconds,
            0,
            owned.etag if owned else "",
            now - float(moved) if moved else None,
            hints.get(_WANTED, ""),
            now - float(hints.get(_WANTED_AT) or now),
            asks=bool(owner) and hints.get(OURS) == owner,
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """The checkpoint blob as we last saw or wrote it."""

    stored: Stored = NOTHING_STORED
    generation: int = 0
    etag: str | None = None
    moved: str = ""
    wanted: str = ""
    wanted_at: str = ""


class OwnershipHolding:
    """One claim: the ETags of the two blobs."""

    epoch = 0
    """The SDKs' processors read with owner level 0; a higher one would lock them out."""

    def __init__(self, blobs: Blobs, hub: Hub, folder: str, partition: PartitionId, host: str, etag: str) -> None:
        self._blobs = blobs
        self._hub = hub
        self._folder = folder
        self._left_for = ""
        self._host = host
        self._etag = etag
        self._place = _Place()
        self._released = False
        self.partition = partition

    @property
    def stored(self) -> Stored:
        """As read after claiming, then as written by us."""
        return self._place.stored

    @property
    def wanted_by(self) -> str:
        """Who asks, as seen by our writes."""
        return self._place.wanted

    async def enter(self, *, moved: bool) -> None:
        """Read the checkpoint and write it back with the next generation, over exactly what was read."""
        for _ in range(_TRIES):
            place = await self._look()
            if place.stored.checkpoint is None:
                place = replace(await self._look_elsewhere(), etag=place.etag)
            place = replace(place, generation=place.generation + 1, wanted="", wanted_at="")
            if moved:
                place = replace(place, moved=str(int(self._blobs.now)))
            self._place = place
            if place.stored.checkpoint is None:
                return  # there is nothing to fence: the first checkpoint must be written as new
            with contextlib.suppress(Conflict):
                self._place = replace(place, etag=await self._put(place))
                return
        raise Retry(f"partition {self.partition}: its checkpoint changes all the time")

    async def confirm(self) -> None:
        """After entering: a host that claimed it meanwhile may have entered before us, and our writes would stand."""
        blob = await self._blobs.get(ownership_name(self._folder, self.partition))
        owner = blob.metadata.get(OWNER, "") if blob else ""
        if owner != self._host:
            raise LeaseLost(self.partition, f"{owner or 'nobody'} claimed it meanwhile")

    def leave(self, folder: str) -> None:
        """The others are in that folder: what is held here is held no longer."""
        self._left_for = folder

    async def renew(self) -> None:
        """Claim it again, over the version we wrote."""
        self._check_left()
        name = ownership_name(self._folder, self.partition)
        for _ in range(_TRIES):
            try:
                self._etag, _ = await self._blobs.set_metadata(name, {OWNER: self._host}, etag=self._etag)
            except Conflict as conflict:
                # Either another host's claim, or our own whose answer was lost.
                await self._still_ours(conflict)
            else:
                return
        raise Retry(f"partition {self.partition}: its ownership changes all the time")

    async def write(self, checkpoint: Checkpoint, *, back: bool = False) -> None:
        """Over the version we know. Where another wrote meanwhile: if it is still ours, and lower, write over that."""
        if self._released:
            raise LeaseLost(self.partition, "it was let go")
        self._check_left()
        for _ in range(_TRIES):
            old = self.stored.checkpoint
            if old is not None and checkpoint.sequence < old.sequence and not back:
                return
            place = replace(self._place, stored=Stored(checkpoint, self._hub.incarnation))
            try:
                self._place = replace(place, etag=await self._put(place))
            except Conflict as conflict:
                await self._still_ours(conflict)
                self._place = replace(await self._look(), generation=self._place.generation)
            else:
                return
        raise Retry(f"partition {self.partition}: its checkpoint changes all the time")

    async def raise_epoch(self, above: int) -> None:
        """Never: see `epoch`. Attaching again at the same level is enough."""

    async def release(self, to: str = "") -> None:
        """Empty the owner. For whom it is meant is left as a hint before."""
        self._released = True
        if to and self._place.stored.checkpoint is not None:
            place = replace(self._place, wanted=to, wanted_at=str(int(self._blobs.now)))
            with contextlib.suppress(Conflict):
                self._place = replace(place, etag=await self._put(place))
        for _ in range(_TRIES):
            try:
                await self._blobs.set_metadata(
                    ownership_name(self._folder, self.partition), {OWNER: ""}, etag=self._etag
                )
            except Conflict as conflict:
                await self._still_ours(conflict)
            else:
                return

    async def _still_ours(self, conflict: Conflict) -> None:
        """Read the ownership; adopt its ETag if it is ours, else LeaseLost."""
        blob = await self._blobs.get(ownership_name(self._folder, self.partition))
        owner = blob.metadata.get(OWNER, "") if blob else ""
        if blob is None or owner != self._host:
            raise LeaseLost(self.partition, f"{owner or 'nobody'} has it now ({conflict.code})")
        self._etag = blob.etag

    def _check_left(self) -> None:
        if self._left_for:
            raise LeaseLost(self.partition, f"the group's blobs are in {self._left_for} now")

    async def _look_elsewhere(self) -> _Place:
        """A checkpoint that was written before the folder changed: to be written here as new."""
        for folder in folders(self._hub):
            blob = await self._blobs.get(checkpoint_name(folder, self.partition)) if folder != self._folder else None
            if blob is not None and (stored := stored_in(blob)).checkpoint is not None:
                return _Place(stored)
        return _Place()

    async def _look(self) -> _Place:
        blob = await self._blobs.get(checkpoint_name(self._folder, self.partition))
        if blob is None:
            return _Place()
        return _Place(
            stored_in(blob),
            body_of(blob).get("generation") or 0,
            blob.etag,
            blob.metadata.get(_MOVED, ""),
            blob.metadata.get(_WANTED, ""),
            blob.metadata.get(_WANTED_AT, ""),
        )

    async def _put(self, place: _Place) -> str:
        checkpoint = place.stored.checkpoint
        assert checkpoint is not None  # noqa: S101 - a blob without a sequence would break KEDA and the SDKs
        metadata = {
            SEQUENCE: str(checkpoint.sequence),
            OFFSET: checkpoint.offset or _UNKNOWN_OFFSET,
            OURS: self._host,
        }
        hints = {_MOVED: place.moved, _WANTED: place.wanted, _WANTED_AT: place.wanted_at}
        name = checkpoint_name(self._folder, self.partition)
        metadata |= {key: value for key, value in hints.items() if value}
        return await self._blobs.put(
            name, encode(place.stored, place.generation, self._host), metadata, etag=place.etag
        )
