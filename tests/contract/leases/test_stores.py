"""What every store of leases must do: one suite over memory, lease blobs and ownership blobs."""

import time
import uuid
from dataclasses import replace

import pytest

from service.errors import LeaseLost
from service.source.blob_leases import BlobLeases
from service.source.blob_ownership import BlobOwnership
from service.source.connect import connect_blobs
from service.source.events import Hub, PartitionId
from service.source.leases import Checkpoint
from service.source.memory_leases import MemoryLeases, MemoryStorage

HUB = Hub("ns.servicebus.windows.net", "records", "$Default", 1_700_000_000_123)
P0, P1 = PartitionId("0"), PartitionId("1")


class Storage:
    """One account and many stores on it, as each host has its own."""

    def __init__(self, kind, connection_string):
        self.kind = kind
        self._connection_string = connection_string
        self._container = f"leases-{uuid.uuid4().hex[:12]}"
        self._memory = MemoryStorage(time.monotonic, 15.0)
        self.stores = []

    async def store(self, hub=HUB):
        if self.kind == "memory":
            store = MemoryLeases(self._memory)
        else:
            blobs = connect_blobs(self._container, connection_string=self._connection_string)
            store = BlobLeases(blobs, 15) if self.kind == "lease blobs" else BlobOwnership(blobs, 15)
        self.stores.append(store)
        await store.prepare(hub)
        return store

    @property
    def epochs_rise(self):
        return self.kind != "ownership blobs"


@pytest.fixture(params=["memory", "lease blobs", "ownership blobs"])
async def storage(request):
    azurite = "" if request.param == "memory" else request.getfixturevalue("azurite")
    storage = Storage(request.param, azurite)
    yield storage
    for store in storage.stores:
        await store.close()


async def _take(store, host, partition=P0):
    (row,) = await store.list([partition])
    return await store.acquire(row, host)


async def test_a_partition_that_nobody_knows_is_free_and_has_nothing_stored(storage):
    store = await storage.store()
    rows = await store.list([P0, P1])
    assert [(row.partition, row.owner, row.live) for row in rows] == [(P0, "", False), (P1, "", False)]
    assert await store.read(P0) is None
    holding = await store.acquire(rows[0], "a")
    assert holding.stored.checkpoint is None


async def test_an_acquired_partition_is_listed_as_its_owners(storage):
    store = await storage.store()
    await _take(store, "a")
    (row,) = await (await storage.store()).list([P0])
    assert (row.owner, row.live, row.wanted_by) == ("a", True, "")


async def test_of_two_that_saw_it_free_one_wins(storage):
    one, two = await storage.store(), await storage.store()
    (seen_by_one,), (seen_by_two,) = await one.list([P0]), await two.list([P0])
    await one.acquire(seen_by_one, "a")
    with pytest.raises(LeaseLost):
        await two.acquire(seen_by_two, "b")


async def test_each_acquisition_raises_the_epoch(storage):
    store = await storage.store()
    epochs = [(await _take(store, host)).epoch for host in "abc"]
    assert epochs == ([1, 2, 3] if storage.epochs_rise else [0, 0, 0])


async def test_a_checkpoint_comes_back_whole(storage):
    store = await storage.store()
    holding = await _take(store, "a")
    checkpoint = Checkpoint(41, "8589", "opaque+/=é")
    await holding.write(checkpoint)
    stored = await (await storage.store()).read(P0)
    assert (stored.checkpoint, stored.incarnation) == (checkpoint, HUB.incarnation)
    assert (await _take(store, "b")).stored == stored


async def test_a_lower_checkpoint_changes_nothing_unless_it_is_meant_to(storage):
    store = await storage.store()
    holding = await _take(store, "a")
    await holding.write(Checkpoint(10, "100"))
    await holding.write(Checkpoint(9, "90"))
    assert (await store.read(P0)).checkpoint == Checkpoint(10, "100")
    await holding.write(Checkpoint(9, "90"), back=True)
    assert (await store.read(P0)).checkpoint == Checkpoint(9, "90")


async def test_a_late_checkpoint_by_a_former_owner_is_refused(storage):
    one, two = await storage.store(), await storage.store()
    former = await _take(one, "a")
    await former.write(Checkpoint(5, "50"))
    present = await _take(two, "b")
    with pytest.raises(LeaseLost):
        await former.write(Checkpoint(6, "60"))
    with pytest.raises(LeaseLost):
        await former.renew()
    await present.write(Checkpoint(7, "70"))
    with pytest.raises(LeaseLost):
        await former.write(Checkpoint(8, "80"))
    assert (await one.read(P0)).checkpoint == Checkpoint(7, "70")


async def test_a_former_owner_of_the_same_host_is_fenced_too(storage):
    if storage.kind == "ownership blobs":
        return  # there the owner's name is the fence; a host never holds a partition twice
    store = await storage.store()
    former = await _take(store, "a")
    await _take(store, "a")
    with pytest.raises(LeaseLost):
        await former.write(Checkpoint(6, "60"))


async def test_the_victims_checkpoint_between_our_look_and_our_taking_survives(storage):
    one, two = await storage.store(), await storage.store()
    victim = await _take(one, "a")
    await victim.write(Checkpoint(5, "50"))
    (row,) = await two.list([P0])
    await victim.write(Checkpoint(9, "90"))
    if storage.kind == "lease blobs":
        row = replace(row, live=True)
    thief = await two.acquire(row, "b")
    assert thief.stored.checkpoint == Checkpoint(9, "90")


async def test_renewing_keeps_it_and_does_not_disturb_checkpoints(storage):
    store = await storage.store()
    holding = await _take(store, "a")
    for sequence in range(3):
        await holding.renew()
        await holding.write(Checkpoint(sequence, str(sequence)))
    assert (await store.list([P0]))[0].owner == "a"


async def test_what_is_released_is_free_at_once_and_keeps_its_checkpoint(storage):
    store = await storage.store()
    holding = await _take(store, "a")
    await holding.write(Checkpoint(5, "50"))
    await holding.release()
    (row,) = await store.list([P0])
    assert (row.live, row.wanted_by) == (False, "")
    with pytest.raises(LeaseLost):
        await holding.write(Checkpoint(6, "60"))
    assert (await _take(store, "b")).stored.checkpoint == Checkpoint(5, "50")


async def test_who_asks_is_seen_by_the_owner_and_survives_its_checkpoints(storage):
    one, two = await storage.store(), await storage.store()
    owner = await _take(one, "a")
    await owner.write(Checkpoint(5, "50"))
    (row,) = await two.list([P0])
    assert row.asks
    await two.ask(row, "b")
    await owner.write(Checkpoint(6, "60"))
    (row,) = await one.list([P0])
    assert (row.owner, row.wanted_by, row.wanted_seconds < 5) == ("a", "b", True)


async def test_what_is_handed_over_is_reserved_and_counts_as_moved_once_taken(storage):
    one, two = await storage.store(), await storage.store()
    owner = await _take(one, "a")
    await owner.write(Checkpoint(5, "50"))
    assert (await one.list([P0]))[0].moved_seconds is None
    await owner.release(to="b")
    (row,) = await two.list([P0])
    assert (row.live, row.wanted_by) == (False, "b")
    taken = await two.acquire(row, "b")
    await taken.write(Checkpoint(6, "60"))
    (row,) = await two.list([P0])
    assert row.moved_seconds is not None
    assert row.moved_seconds < 5
    assert row.wanted_by == ""


async def test_an_epoch_raised_is_durable_and_the_holding_goes_on(storage):
    store = await storage.store()
    holding = await _take(store, "a")
    await holding.raise_epoch(41)
    await holding.write(Checkpoint(5, "50"))
    assert holding.epoch == (42 if storage.epochs_rise else 0)
    assert (await _take(store, "b")).epoch == (43 if storage.epochs_rise else 0)


async def test_partitions_do_not_disturb_each_other(storage):
    store = await storage.store()
    zero, one = await _take(store, "a", P0), await _take(store, "b", P1)
    await zero.write(Checkpoint(1, "10"))
    await one.write(Checkpoint(2, "20"))
    assert (await store.read(P0)).checkpoint.sequence == 1
    assert (await store.read(P1)).checkpoint.sequence == 2


@pytest.mark.proof
async def test_what_is_not_renewed_runs_out_and_can_be_renewed_while_nobody_took_it(storage):
    import asyncio

    store = await storage.store()
    holding = await _take(store, "a")
    for _ in range(100):
        await asyncio.sleep(0.5)
        (row,) = await store.list([P0])
        if not row.live:
            break
    assert not row.live
    await holding.renew()
    await holding.write(Checkpoint(5, "50"))
    (row,) = await store.list([P0])
    assert (row.owner, row.live) == ("a", True)
