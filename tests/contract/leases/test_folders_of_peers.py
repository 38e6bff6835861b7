"""Ownership beside processors of SDKs that keep their blobs in another folder than Python's and JavaScript's."""

import pytest

from service.errors import LeaseLost, SetupFault
from service.source.blob_ownership import BlobOwnership
from service.source.connect import connect_blobs
from service.source.events import Hub, PartitionId
from service.source.foreign import stored_by
from service.source.leases import Checkpoint

HUB = Hub("127.0.0.1:5000", "Records", "$Default", 1_700_000_000_123)
OURS, JAVAS, GOS = "127.0.0.1:5000/records/$default/", "127.0.0.1/records/$default/", "127.0.0.1:5000/Records/$Default/"
P0, P1 = PartitionId("0"), PartitionId("1")
OTHERS = pytest.mark.parametrize("theirs", [JAVAS, GOS], ids=["Java", "Go"])


@pytest.fixture
async def blobs(azurite, blob_container_name):
    blobs = connect_blobs(blob_container_name, connection_string=azurite)
    await blobs.make()
    yield blobs
    await blobs.close()


async def _store(blobs) -> BlobOwnership:
    store = BlobOwnership(blobs)
    await store.prepare(HUB)
    return store


async def _claim(blobs, folder, partition, owner="theirs"):
    await blobs.put(f"{folder}ownership/{partition}", b"", {"ownerid": owner}, etag=None)


async def _checkpoint(blobs, folder, partition, sequence):
    metadata = {"sequencenumber": str(sequence), "offset": f"{sequence}0"}
    await blobs.put(f"{folder}checkpoint/{partition}", b"", metadata, etag=None)


async def _take(store, host="ours"):
    row = (await store.list([P0, P1]))[0]
    return await store.acquire(row, host)


async def test_with_nobody_else_there_the_folder_is_that_of_most_sdks(blobs):
    holding = await _take(await _store(blobs))
    await holding.write(Checkpoint(5, "50"))
    assert {blob.name for blob in await blobs.list("")} == {f"{OURS}ownership/0", f"{OURS}checkpoint/0"}


@OTHERS
async def test_a_start_goes_on_from_the_checkpoint_that_another_sdk_left(blobs, theirs):
    await _claim(blobs, theirs, P0, owner="")
    await _checkpoint(blobs, theirs, P0, 7)
    holding = await _take(await _store(blobs))
    assert holding.stored.checkpoint == Checkpoint(7, "70")
    await holding.write(Checkpoint(8, "80"))
    assert (await blobs.get(f"{theirs}checkpoint/0")).metadata["sequencenumber"] == "8"
    assert not await blobs.list(OURS)
    assert await stored_by(blobs, HUB, "ownership") == {P0: holding.stored}


@OTHERS
async def test_a_processor_that_turns_up_in_another_folder_is_joined_there(blobs, theirs):
    store = await _store(blobs)
    holding = await _take(store)
    await holding.write(Checkpoint(5, "50"))
    await _claim(blobs, theirs, P0)
    await _claim(blobs, theirs, P1)
    await _checkpoint(blobs, theirs, P1, 7)
    table = await store.list([P0, P1])
    assert [(row.owner, row.live, row.asks) for row in table] == [("theirs", True, False)] * 2
    for late in (holding.renew(), holding.write(Checkpoint(6, "60"))):
        with pytest.raises(LeaseLost, match="are in"):
            await late
    taken = [await store.acquire(row, "ours") for row in table]
    # Partition 0 has no checkpoint there yet: what we had done is taken along.
    assert [one.stored.checkpoint for one in taken] == [Checkpoint(5, "50"), Checkpoint(7, "70")]
    assert (await blobs.get(f"{theirs}checkpoint/0")).metadata["sequencenumber"] == "5"


async def test_the_folder_stays_when_the_other_has_gone(blobs):
    store = await _store(blobs)
    await (await _take(store)).write(Checkpoint(5, "50"))
    await _claim(blobs, GOS, P0)
    joined = await _take(store)  # the last owner that was not ours
    await joined.write(Checkpoint(6, "60"))
    rows = await store.list([P0, P1])
    assert [(row.owner, row.asks) for row in rows] == [("ours", True), ("", False)]
    await joined.renew()
    assert (await blobs.get(f"{GOS}checkpoint/0")).metadata["sequencenumber"] == "6"


async def test_nobody_is_left_alone_for_the_sake_of_another(blobs):
    await _claim(blobs, OURS, P1, owner="python")
    store = await _store(blobs)
    holding = await _take(store)
    await _claim(blobs, GOS, P0, owner="go")
    assert [row.owner for row in await store.list([P0, P1])] == ["ours", "python"]
    await holding.renew()


async def test_a_checkpoint_without_a_sequence_is_reported_and_not_passed_over(blobs):
    await blobs.put(f"{OURS}checkpoint/0", b"", {"sequencenumber": "", "offset": "70"}, etag=None)
    with pytest.raises(SetupFault, match="no sequence number"):
        await _take(await _store(blobs))
