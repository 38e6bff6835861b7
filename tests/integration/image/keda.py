"""KEDA's azure-eventhub scaler, re-written from its documentation and source: how far it thinks a group is behind.

The metadata is what bicep/modules/app.bicep gives it. Strategies: "" reads `<group>/<partition>` and its JSON body
(EventProcessorHost's layout), `blobMetadata` reads `<namespace>/<hub>/<group in lower case>/checkpoint/<partition>` and
its metadata (the current SDKs' layout). Nothing else is lower-cased, which is why the template does it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient

INT64 = 2**63 - 1
STALE = 10_000
"""stalePartitionInfoThreshold: a checkpoint that is ahead by less is taken for one that outran the hub's answer."""


@dataclass(frozen=True, slots=True)
class Partition:
    """What the hub says of a partition; -1 = it never had an event."""

    first_sequence: int
    last_sequence: int


def lag(
    metadata: Mapping[str, str], container: ContainerClient, partitions: Mapping[str, Partition], host_suffix: str
) -> int:
    """Events that are not processed, before KEDA caps them. One partition that fails fails all."""
    return sum(
        _behind(_checkpoint(metadata, container, name, host_suffix), partition)
        for name, partition in partitions.items()
    )


def metric(unprocessed: int, metadata: Mapping[str, str], partitions: int) -> int:
    """What the autoscaler sees: about one threshold for each partition at most (KEDA compares whole thresholds)."""
    threshold = int(metadata["unprocessedEventThreshold"])
    return partitions * threshold if unprocessed // threshold > partitions else unprocessed


def replicas(value: int, metadata: Mapping[str, str], most: int) -> int:
    """How many replicas the autoscaler then wants."""
    return max(1, min(most, -(-value // int(metadata["unprocessedEventThreshold"]))))


def _behind(checkpoint: int | None, partition: Partition) -> int:
    first, last = partition.first_sequence, partition.last_sequence
    if last == -1:
        return 0
    if checkpoint is None:
        return 0 if first == last != 0 else last - first + 1
    behind = last - checkpoint if checkpoint <= last else INT64 - checkpoint + last
    return 0 if behind > INT64 - STALE else behind


def _checkpoint(
    metadata: Mapping[str, str], container: ContainerClient, partition: str, host_suffix: str
) -> int | None:
    group = metadata["consumerGroup"]
    try:
        if metadata["checkpointStrategy"] == "blobMetadata":
            host = f"{metadata['eventHubNamespace']}{host_suffix}"
            name = f"{host}/{metadata['eventHubName']}/{group.lower()}/checkpoint/{partition}"
            return int(container.get_blob_client(name).get_blob_properties().metadata["sequencenumber"])
        body = json.loads(container.get_blob_client(f"{group}/{partition}").download_blob().readall())
        return int(body.get("SequenceNumber") or body.get("sequence_number") or 0)
    except ResourceNotFoundError:
        return None
