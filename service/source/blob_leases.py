"""Leases as EventProcessorHost kept them: one blob per partition, leased, with the checkpoint inside.

The blob lease's id is the fence. Each acquisition has a new one, and storage refuses any write that does not carry
the current one, so a former owner's late checkpoint cannot land. A live lease is taken over by changing its id, which
stands in the blob. After either, the blob is read again: from then on nobody else can write it, so the checkpoint read
is the last one. Only then is it written, with the epoch raised, over exactly the version that was read; only after
that may reading begin.

A host that wants a live partition asks by writing its name into the blob's metadata, with the owner's lease id.
The owner's next write sees the changed ETag, reads who asks, and keeps it.
"""

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.errors import BadSettings, LeaseLost, Retry
from service.source.blobs import Blob, Blobs, Conflict
from service.source.events import Hub, PartitionId
from service.source.foreign import refuse_foreign
from service.source.layout import lease_name, lease_prefix
from service.source.lease_document import LeaseDocument, decode
from service.source.leases import Checkpoint
from service.source.store import Lease, Stored

_OWNER = "OWNINGHOST"
_EPOCH, _MOVED, _WANTED, _WANTED_AT = "sluice_epoch", "sluice_moved", "sluice_wanted", "sluice_wanted_at"
_TRIES = 4
"""A write can only meet our own renewals' and another host's asks, so it succeeds after a few."""


class BlobLeases:
    """A `LeaseStore` of leased blobs. `adopt`: take also what is another hub's, and start beside the other layout."""

    def __init__(self, blobs: Blobs, lease_seconds: float = 30.0, *, adopt: bool = False) -> None:
        self._blobs = blobs
        self._adopt = adopt
        self._lease_seconds = round(lease_seconds)
        self._hub = Hub("", "", "", 0)
        self._proposed: dict[PartitionId, str] = {}
        """Lease ids sent and not heard of: sent again, so that an acquisition whose answer was lost is ours."""

    async def prepare(self, hub: Hub) -> None:
        """Make the container; refuse blobs that are another hub's, and a first start beside the other layout."""
        self._hub = hub
        await self._blobs.make()
        if self._adopt:
            return
        await refuse_foreign(self._blobs, hub, "lease")
        for blob in await self._blobs.list(lease_prefix(hub)):
            if (whose := blob.metadata.get("sluice_hub")) and whose != _whose(hub):
                raise _of_another_hub(blob.name, whose, hub)

    async def list(self, partitions: Sequence[PartitionId]) -> Sequence[Lease]:
        """One listing; the leases' state is storage's own."""
        blobs = {blob.name: blob for blob in await self._blobs.list(lease_prefix(self._hub))}
        return [self._lease(partition, blobs.get(lease_name(self._hub, partition))) for partition in partitions]

    async def acquire(self, lease: Lease, host: str) -> "BlobHolding":
        """Lease the blob or take its lease over, read it, write it with the epoch raised."""
        partition, name = lease.partition, lease_name(self._hub, lease.partition)
        token = self._proposed.setdefault(partition, str(uuid.uuid4()))
        try:
            if not lease.version:
                await self._create(partition)
            if lease.live:
                await self._take_over(name, token)
            else:
                await self._blobs.acquire_lease(name, token, self._lease_seconds)
            holding = await self._enter(lease, host, token)
        except Conflict as conflict:
            self._proposed.pop(partition, None)
            raise LeaseLost(partition, f"another host was faster ({conflict.code})") from None
        except BadSettings:
            self._proposed.pop(partition, None)
            raise
        self._proposed.pop(partition, None)
        return holding

    async def ask(self, lease: Lease, host: str) -> None:
        """Write our name into the metadata with the owner's lease id; whoever asked first stands."""
        name = lease_name(self._hub, lease.partition)
        blob = await self._blobs.get(name)
        if blob is None or (blob.metadata.get(_WANTED) and not _forgotten(blob, self._blobs.now)):
            return
        token = decode(lease.partition, blob.body).token
        asking = _capitalised(blob.metadata) | {_WANTED: host, _WANTED_AT: str(int(self._blobs.now))}
        with contextlib.suppress(Conflict):  # it changed under us: look again at the next scan
            await self._blobs.set_metadata(name, asking, etag=blob.etag, lease=token or None)

    async def read(self, partition: PartitionId) -> Stored | None:
        """What is in the blob."""
        blob = await self._blobs.get(lease_name(self._hub, partition))
        return decode(partition, blob.body).stored if blob else None

    async def close(self) -> None:
        """Give back connections."""
        await self._blobs.close()

    async def _create(self, partition: PartitionId) -> None:
        document = LeaseDocument(partition, namespace=self._hub.namespace, hub=self._hub.name.lower())
        with contextlib.suppress(Conflict):  # another host made it
            await self._blobs.put(lease_name(self._hub, partition), document.encode(), {_OWNER: ""}, etag=None)

    async def _take_over(self, name: str, token: str) -> None:
        """Change the live lease's id to ours. Its running time stays, so it is renewed at once."""
        blob = await self._blobs.get(name)
        theirs = decode(PartitionId(""), blob.body).token if blob else ""
        if not theirs:
            raise Conflict("LeaseIdUnknown")
        await self._blobs.change_lease(name, theirs, token)
        await self._blobs.renew_lease(name, token)

    async def _enter(self, lease: Lease, host: str, token: str) -> "BlobHolding":
        """Read what the last owner left, and write ourselves in."""
        name = lease_name(self._hub, lease.partition)
        blob = await self._blobs.get(name)
        if blob is None:
            raise Conflict("BlobNotFound")
        document = decode(lease.partition, blob.body)
        if not document.is_of(self._hub) and not self._adopt:
            await self._blobs.release_lease(name, token)
            raise _of_another_hub(name, f"{document.namespace}/{document.hub}", self._hub)
        moved = str(int(self._blobs.now)) if lease.live or blob.metadata.get(_WANTED) == host else ""
        entered = replace(
            document,
            owner=host,
            token=token,
            epoch=document.epoch + 1,
            namespace=self._hub.namespace,
            hub=self._hub.name.lower(),
        )
        holding = BlobHolding(self._blobs, self._hub, entered, blob.etag, moved or blob.metadata.get(_MOVED, ""))
        await holding.enter()
        return holding

    def _lease(self, partition: PartitionId, blob: Blob | None) -> Lease:
        if blob is None:
            return Lease(partition)
        now, metadata = self._blobs.now, blob.metadata
        moved = metadata.get(_MOVED)
        # Where the answer to our own acquisition was lost the lease may be ours: asking again with its id will tell.
        live = blob.leased and partition not in self._proposed
        return Lease(
            partition,
            metadata.get(_OWNER.lower(), "") or ("unknown" if live else ""),
            live,
            int(metadata.get(_EPOCH) or -1),
            blob.etag,
            now - float(moved) if moved else None,
            metadata.get(_WANTED, ""),
            now - float(metadata.get(_WANTED_AT) or now),
        )


class BlobHolding:
    """One acquisition: a lease id, and the blob as we last wrote it."""

    def __init__(self, blobs: Blobs, hub: Hub, document: LeaseDocument, etag: str, moved: str) -> None:
        self._blobs = blobs
        self._hub = hub
        self._document = document
        self._etag = etag
        self._moved = moved
        self._wanted: tuple[str, str] = ("", "")
        self._name = lease_name(hub, document.partition)

    @property
    def partition(self) -> PartitionId:
        """The partition held."""
        return self._document.partition

    @property
    def epoch(self) -> int:
        """Raised by one at each acquisition."""
        return self._document.epoch

    @property
    def stored(self) -> Stored:
        """As read after acquiring, then as written by us."""
        return self._document.stored

    @property
    def wanted_by(self) -> str:
        """Who asks, as seen by our writes."""
        return self._wanted[0]

    async def enter(self) -> None:
        """The first write: over exactly what was read, or not at all."""
        self._etag = await self._put(self._document)

    async def renew(self) -> None:
        """With the id in memory, never the blob's."""
        try:
            await self._blobs.renew_lease(self._name, self._document.token)
        except Conflict as conflict:
            raise LeaseLost(self.partition, f"its lease is not ours any more ({conflict.code})") from None

    async def write(self, checkpoint: Checkpoint, *, back: bool = False) -> None:
        """Fenced by the lease id, never lower than what is there."""
        for _ in range(_TRIES):
            old = self.stored.checkpoint
            if old is not None and checkpoint.sequence < old.sequence and not back:
                return
            if await self._change(replace(self._document, stored=Stored(checkpoint, self._hub.incarnation))):
                return
        raise Retry(f"partition {self.partition}: its blob changes all the time")

    async def raise_epoch(self, above: int) -> None:
        """Write a higher epoch into the blob."""
        for _ in range(_TRIES):
            if await self._change(replace(self._document, epoch=max(self.epoch, above) + 1)):
                return
        raise Retry(f"partition {self.partition}: its blob changes all the time")

    async def release(self, to: str = "") -> None:
        """Empty the owner and the token, then end the lease."""
        token = self._document.token
        for _ in range(_TRIES):
            self._wanted = (to, str(int(self._blobs.now)))
            if await self._change(replace(self._document, owner="", token=""), lease=token):
                break
        try:
            await self._blobs.release_lease(self._name, token)
        except Conflict as conflict:
            raise LeaseLost(self.partition, conflict.code) from None

    async def _change(self, document: LeaseDocument, lease: str = "") -> bool:
        """Write it; False where the blob changed under us and was read again, so it is worth another try."""
        if not self._document.token:
            raise LeaseLost(self.partition, "it was let go")
        try:
            self._etag = await self._put(document, lease)
        except Conflict as conflict:
            await self._read_again(conflict.code)
            return False
        self._document = document
        return True

    async def _read_again(self, code: str) -> None:
        """Whose is it now? If still ours, take over what is there."""
        blob = await self._blobs.get(self._name)
        if blob is None:
            raise LeaseLost(self.partition, "its blob was deleted")
        there = decode(self.partition, blob.body)
        if there.token != self._document.token:
            raise LeaseLost(self.partition, f"{there.owner or 'nobody'} has it now ({code})")
        if not code.startswith("ConditionNotMet"):
            await self.renew()  # the lease ran out and nobody took it
        self._document = there
        self._etag = blob.etag
        self._wanted = (blob.metadata.get(_WANTED, ""), blob.metadata.get(_WANTED_AT, ""))

    async def _put(self, document: LeaseDocument, lease: str = "") -> str:
        """Write it over the version we know. A write wipes the metadata, so it goes along each time."""
        metadata = {_OWNER: document.owner, _EPOCH: str(document.epoch), "sluice_hub": _whose(self._hub)}
        if self._moved:
            metadata[_MOVED] = self._moved
        if self._wanted[0]:
            metadata[_WANTED], metadata[_WANTED_AT] = self._wanted
        return await self._blobs.put(
            self._name, document.encode(), metadata, etag=self._etag, lease=lease or document.token
        )


def _whose(hub: Hub) -> str:
    return f"{hub.namespace}/{hub.name.lower()}"


def _capitalised(metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata read, ready to be written: the old programs look for the owner in capitals."""
    return {_OWNER if key == _OWNER.lower() else key: value for key, value in metadata.items()}


def _forgotten(blob: Blob, now: float) -> bool:
    return now - float(blob.metadata.get(_WANTED_AT) or 0) > 60


def _of_another_hub(name: str, whose: str, hub: Hub) -> BadSettings:
    message = (
        f"the lease blob {name} belongs to the hub {whose}, not to {_whose(hub)}; use another BLOB_CONTAINER, or take "
        "its positions over with `sluice checkpoints import`"
    )
    return BadSettings([message])
