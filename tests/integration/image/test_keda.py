"""With the rule of the template, KEDA reckons the true lag from the blobs that the service wrote, in both modes."""

import re
from urllib.parse import urlparse

import pytest
from azure.storage.blob import ContainerClient
from dotenv import dotenv_values

from service.source.blob_leases import BlobLeases
from service.source.blob_ownership import BlobOwnership
from service.source.connect import connect_blobs
from service.source.events import Hub, PartitionId
from service.source.leases import Checkpoint
from tests.bicep.conftest import BICEP
from tests.bicep.dialect import at, parse, properties, text
from tests.integration.image import keda
from tests.support.stack import until

RECORDS = 2_000
SLOWLY = 20
"""Records per second of the run that is stopped half-way: the whole would take 100 s, however busy the machine is."""
GROUP = "Mixed-Case"
"""With capitals: in lease mode they are in the blob's name, in ownership mode they must not be."""


def rule_of_the_template(**given: str) -> dict[str, str]:
    """The scale rule's metadata for these parameters of modules/app.bicep."""
    app = parse((BICEP / "modules/app.bicep").read_text()).of("resource")["app"].body
    custom = at(app, "properties", "template", "scale", "rules", "0", "custom")
    return {name: value_of(text(node), given) for name, node in properties(at(custom, "metadata")).items()}


def value_of(written: str, given: dict[str, str]) -> str:
    if choice := re.fullmatch(r"(\w+) == '(\w*)' \? '(\w*)' : '(\w*)'", written):
        name, value, yes, no = choice.groups()
        return yes if given[name] == value else no
    if lower := re.fullmatch(r"toLower\((\w+)\)", written):
        return given[lower.group(1)].lower()
    if plain := re.fullmatch(r"(?:string\()?(\w+)\)?", written):
        return given[plain.group(1)]
    return written.strip("'")


class Scaler:
    """KEDA with the template's rule, looking at a local stack."""

    def __init__(self, stack, mode, threshold=1000):
        self.stack = stack
        settings = dotenv_values(stack.env_file, interpolate=False)
        endpoint = next(part for part in settings["EVENTHUB_CONNSTRING"].split(";") if part.startswith("Endpoint="))
        self.rule = rule_of_the_template(
            eventHubNamespace=urlparse(endpoint.removeprefix("Endpoint=")).netloc.upper(),
            eventHubName=settings["EVENTHUB_NAME"].upper(),
            consumerGroup=GROUP,
            storageAccountName="devstoreaccount1",
            blobContainer=settings["BLOB_CONTAINER"],
            leaseMode=mode,
            unprocessedEventThreshold=str(threshold),
        )
        self._blobs = settings["BLOB_CONNSTRING"], settings["BLOB_CONTAINER"]

    def lag(self):
        partitions = {
            partition.id: keda.Partition(partition.log.first, partition.log.last)
            for partition in self.stack.hub.partitions
        }
        with ContainerClient.from_connection_string(*self._blobs) as container:
            return keda.lag(self.rule, container, partitions, host_suffix="")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("mode", ["lease", "ownership"])
def test_keda_sees_the_true_lag(make_stack, sluice, preload, mode):
    stack = make_stack(partitions=4)
    scaler = Scaler(stack, mode)
    stack.hub.consumer_groups[GROUP.lower()] = GROUP
    preload(stack, RECORDS)
    assert scaler.lag() == RECORDS
    settings = {"LEASE_MODE": mode, "EVENTHUB_CONSUMERGROUP": GROUP, "CHECKPOINT_INTERVAL": "500ms"}
    first = sluice("run", "--env-file", str(stack.env_file), EVENTHUB_RATELIMIT=SLOWLY, **settings)
    until(lambda: len(stack.documents()) >= 60, 90, "some documents", every=0.1, process=first)
    assert first.stop() == 0, first.output()[-2000:]
    committed = len(stack.documents())
    assert 60 <= committed < RECORDS
    assert scaler.lag() == RECORDS - committed
    second = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: len(stack.documents()) == RECORDS, 120, "all documents", every=0.3, process=second)
    until(lambda: scaler.lag() == 0, 60, "lag 0", every=0.3, process=second)
    assert second.stop() == 0


async def test_a_claim_alone_hides_no_event(azurite, blob_container_name):
    """Between the claim and the first checkpoint: a lease blob has no sequence yet, an ownership no checkpoint blob."""
    hub = Hub("ns", "records", GROUP, 1)
    full, one = keda.Partition(0, 99), keda.Partition(0, 0)
    for mode, kind in (("lease", BlobLeases), ("ownership", BlobOwnership)):
        rule = rule_of_the_template(
            eventHubNamespace=hub.namespace,
            eventHubName=hub.name,
            consumerGroup=hub.group,
            storageAccountName="devstoreaccount1",
            blobContainer=blob_container_name,
            leaseMode=mode,
            unprocessedEventThreshold="64",
        )
        store = kind(connect_blobs(blob_container_name, connection_string=azurite), 15, adopt=True)
        await store.prepare(hub)
        (row,) = await store.list([PartitionId("0")])
        holding = await store.acquire(row, "host")
        with ContainerClient.from_connection_string(azurite, blob_container_name) as container:
            for partition in (full, one):
                assert keda.lag(rule, container, {"0": partition}, "") == partition.last_sequence + 1, mode
            await holding.write(Checkpoint(-1, "-1"))  # as the processor does before it reads
            assert keda.lag(rule, container, {"0": full}, "") == 100, mode
            await holding.write(Checkpoint(49, "4900"))
            assert keda.lag(rule, container, {"0": full}, "") == 50, mode
        await store.close()


@pytest.mark.parametrize(
    ("checkpoint", "partition", "behind"),
    [
        (None, keda.Partition(0, -1), 0),
        (None, keda.Partition(0, 99), 100),
        (None, keda.Partition(50, 99), 50),
        (None, keda.Partition(7, 7), 0),
        (-1, keda.Partition(0, 99), 100),
        (99, keda.Partition(0, 99), 0),
        (40, keda.Partition(0, 99), 59),
        (150, keda.Partition(0, 99), 0),
        (20_150, keda.Partition(0, 99), keda.INT64 - 20_150 + 99),
    ],
)
def test_kedas_arithmetic_of_one_partition(checkpoint, partition, behind):
    assert keda._behind(checkpoint, partition) == behind


def test_a_caught_up_replica_does_not_call_for_another_one():
    """The template's threshold: what a replica is behind between two checkpoints is less than one replica's worth."""
    for rate, interval in ((10, 5), (500, 5), (2000, 5), (2000, 30)):
        rule = {"unprocessedEventThreshold": str(max(64, rate * (interval + 5)))}
        assert keda.replicas(keda.metric(rate * (interval + 2), rule, 16), rule, 16) == 1
        assert keda.replicas(keda.metric(10**9, rule, 16), rule, 16) == 16


def test_the_threshold_is_the_one_of_the_template():
    variables = parse((BICEP / "main.bicep").read_text()).of("variable")
    assert text(variables["scaleThreshold"].value) == "max(64, replicaRate * (checkpointIntervalSeconds + 5))"
