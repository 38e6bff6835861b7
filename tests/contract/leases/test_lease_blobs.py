"""Lease blobs in particular: races inside an acquisition, lost answers, and what other programs see."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import ContainerSasPermissions, generate_container_sas
from azure.storage.blob.aio import ContainerClient

from service.errors import BadSettings, LeaseLost, Retry, SetupFault
from service.local.azurite import ACCOUNT, ACCOUNT_KEY
from service.source.blob_leases import BlobLeases
from service.source.blob_ownership import BlobOwnership
from service.source.blobs import Blobs
from service.source.connect import connect_blobs
from service.source.events import Hub, PartitionId
from service.source.leases import Checkpoint

HUB = Hub("ns.servicebus.windows.net", "Records", "$Default", 1_700_000_000_123)
P0 = PartitionId("0")


class Interrupted:
    """A container where something happens before or after the named call, once."""

    def __init__(self, blobs, call, *, before=None, after=None):
        self._blobs, self._call, self._before, self._after = blobs, call, before, after

    def __getattr__(self, name):
        found = getattr(self._blobs, name)
        if name != self._call or not (self._before or self._after):
            return found

        async def interrupted(*args, **kwargs):
            before, after, self._before, self._after = self._before, self._after, None, None
            if before:
                await before()
            result = await found(*args, **kwargs)
            if after:
                raise after
            return result

        return interrupted


@pytest.fixture
async def container(azurite, blob_container_name):
    made = []

    def make() -> Blobs:
        made.append(connect_blobs(blob_container_name, connection_string=azurite))
        return made[-1]

    yield make
    for blobs in made:
        await blobs.close()


async def _store(blobs, kind=BlobLeases):
    store = kind(blobs, 15)
    await store.prepare(HUB)
    return store


async def _take(store, host):
    (row,) = await store.list([P0])
    return await store.acquire(row, host)


async def test_the_victims_checkpoint_between_our_read_and_our_change_of_the_lease_survives(container):
    victim = await _take(await _store(container()), "a")
    await victim.write(Checkpoint(5, "50"))
    blobs = Interrupted(container(), "change_lease", before=lambda: victim.write(Checkpoint(9, "90")))
    thief = await _take(await _store(blobs), "b")
    assert thief.stored.checkpoint == Checkpoint(9, "90")
    assert (thief.epoch, victim.epoch) == (2, 1)


async def test_the_owners_checkpoint_right_after_an_ask_keeps_the_ask(container):
    owner = await _take(await _store(container()), "a")
    asker = await _store(Interrupted(container(), "set_metadata", before=lambda: owner.write(Checkpoint(5, "50"))))
    (row,) = await asker.list([P0])
    await asker.ask(row, "b")  # the blob changed under it: no harm
    await asker.ask(row, "b")
    await owner.write(Checkpoint(6, "60"))
    assert owner.wanted_by == "b"


@pytest.mark.parametrize("call", ["acquire_lease", "get", "put"])
async def test_an_acquisition_whose_answer_was_lost_is_completed_by_asking_again(container, call):
    first = await _take(await _store(container()), "a")
    await first.write(Checkpoint(5, "50"))
    await first.release()
    store = await _store(Interrupted(container(), call, after=Retry("the answer was lost")))
    with pytest.raises(Retry):
        await _take(store, "b")
    holding = await _take(store, "b")
    assert holding.epoch > first.epoch
    await holding.write(Checkpoint(6, "60"))
    assert (await store.list([P0]))[0].owner == "b"


@pytest.mark.parametrize("call", ["change_lease", "renew_lease", "put"])
async def test_a_take_over_whose_answer_was_lost_is_completed_by_asking_again(container, call):
    victim = await _take(await _store(container()), "a")
    await victim.write(Checkpoint(5, "50"))
    store = await _store(Interrupted(container(), call, after=Retry("the answer was lost")))
    with pytest.raises(Retry):
        await _take(store, "b")
    holding = await _take(store, "b")
    assert (holding.epoch > victim.epoch, holding.stored.checkpoint) == (True, Checkpoint(5, "50"))


@pytest.mark.parametrize("kind", [BlobLeases, BlobOwnership])
async def test_a_checkpoint_whose_answer_was_lost_can_be_followed_by_the_next(container, kind):
    blobs = Interrupted(container(), "put")
    store = await _store(blobs, kind)
    holding = await _take(store, "a")
    await holding.write(Checkpoint(5, "50"))
    blobs._after = Retry("the answer was lost")
    with pytest.raises(Retry):
        await holding.write(Checkpoint(6, "60"))
    await holding.write(Checkpoint(7, "70"))
    assert (await store.read(P0)).checkpoint == Checkpoint(7, "70")


async def test_a_renewal_of_an_ownership_whose_answer_was_lost_is_no_loss(container):
    blobs = Interrupted(container(), "set_metadata")
    holding = await _take(await _store(blobs, BlobOwnership), "a")
    blobs._after = Retry("the answer was lost")
    with pytest.raises(Retry):
        await holding.renew()
    await holding.renew()


async def test_autoscalers_find_the_checkpoint_of_either_layout(container):
    for kind, sequence in ((BlobLeases, 5), (BlobOwnership, 7)):
        store = kind(container(), 15, adopt=True)
        await store.prepare(HUB)
        await (await _take(store, "a")).write(Checkpoint(sequence, str(sequence)))
    blobs = container()
    lease = await blobs.get("$Default/0")
    assert json.loads(lease.body)["SequenceNumber"] == 5
    assert json.loads(lease.body)["PartitionId"] == "0"
    assert lease.metadata["owninghost"] == "a"
    place = "ns.servicebus.windows.net/records/$default"
    assert (await blobs.get(f"{place}/checkpoint/0")).metadata["sequencenumber"] == "7"
    assert (await blobs.get(f"{place}/ownership/0")).metadata["ownerid"] == "a"


async def test_the_sdks_unfenced_checkpoint_is_adopted_and_never_gone_below(container):
    store = await _store(container(), BlobOwnership)
    holding = await _take(store, "a")
    await holding.write(Checkpoint(5, "50", "ahead"))
    blobs = container()
    name = "ns.servicebus.windows.net/records/$default/checkpoint/0"
    before = await blobs.get(name)
    await blobs.set_metadata(name, {"sequencenumber": "9", "offset": "90"}, etag=before.etag)
    stored = await store.read(P0)
    assert stored.checkpoint == Checkpoint(9, "90")  # the done-ahead set is of another sequence: dropped
    await holding.write(Checkpoint(6, "60"))
    assert (await store.read(P0)).checkpoint == Checkpoint(9, "90")
    await holding.write(Checkpoint(10, "100"))
    assert (await store.read(P0)).checkpoint == Checkpoint(10, "100")


async def test_an_identity_that_may_not_make_the_container_but_finds_it_is_no_fault(azurite, container):
    await container().make()
    name = container().container
    token = generate_container_sas(
        ACCOUNT,
        name,
        account_key=ACCOUNT_KEY,
        permission=ContainerSasPermissions(read=True, write=True, list=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    url = next(part for part in azurite.split(";") if part.startswith("BlobEndpoint=")).removeprefix("BlobEndpoint=")
    limited = Blobs(ContainerClient(url, name, credential=token, retry_total=0))
    await limited.make()
    await limited.close()
    elsewhere = Blobs(ContainerClient(url, "another", credential=token, retry_total=0))
    with pytest.raises(SetupFault, match="Storage Blob Data Contributor"):
        await elsewhere.make()
    await elsewhere.close()


async def test_a_blob_of_another_hub_is_refused_and_not_kept_leased(container):
    await (await _take(await _store(container()), "a")).release()
    other = BlobLeases(container(), 15)
    other._hub = Hub("other.servicebus.windows.net", "Records", "$Default", 1)
    with pytest.raises(BadSettings, match="belongs to the hub"):
        await other.prepare(other._hub)
    with pytest.raises(BadSettings, match="belongs to the hub"):
        await _take(other, "b")
    assert not (await (await _store(container())).list([P0]))[0].live


async def test_a_container_that_was_deleted_is_made_again_and_its_holders_know_they_lost(azurite, container):
    store = await _store(container())
    holding = await _take(store, "a")
    await holding.write(Checkpoint(5, "50"))
    client = ContainerClient.from_connection_string(azurite, container().container)
    await client.delete_container()
    await client.close()
    with pytest.raises(LeaseLost):
        await holding.write(Checkpoint(6, "60"))
    with pytest.raises(LeaseLost):
        await holding.renew()
    again = await _take(store, "b")
    assert (again.epoch, again.stored.checkpoint) == (1, None)
