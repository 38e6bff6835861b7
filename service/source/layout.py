"""Where leases and checkpoints lie in the container, in each of the two layouts."""

from service.source.events import Hub, PartitionId


def lease_prefix(hub: Hub) -> str:
    """EventProcessorHost's folder: the group as it is written, neither namespace nor hub."""
    return f"{hub.group}/"


def lease_name(hub: Hub, partition: PartitionId) -> str:
    """Its one blob per partition."""
    return f"{hub.group}/{partition}"


def group_prefix(hub: Hub) -> str:
    """The current SDKs' folder, wholly lower case."""
    return f"{hub.namespace}/{hub.name}/{hub.group}/".lower()


def ownership_name(hub: Hub, partition: PartitionId) -> str:
    """Who owns the partition."""
    return f"{group_prefix(hub)}ownership/{partition}"


def checkpoint_name(hub: Hub, partition: PartitionId) -> str:
    """How far it is done."""
    return f"{group_prefix(hub)}checkpoint/{partition}"
