"""Where leases and checkpoints lie in the container, in each of the two layouts."""

from service.source.events import Hub, PartitionId


def lease_prefix(hub: Hub) -> str:
    """EventProcessorHost's folder: the group as it is written, neither namespace nor hub."""
    return f"{hub.group}/"


def lease_name(hub: Hub, partition: PartitionId) -> str:
    """Its one blob per partition."""
    return f"{hub.group}/{partition}"


def folders(hub: Hub) -> tuple[str, ...]:
    """The folders in which processors of the current SDKs may keep this group's blobs; the first is ours by right.

    Most write everything in lower case, Go each name as it was given. Java and .NET leave out the port of an emulator.
    """
    namespaces = dict.fromkeys((hub.namespace.lower(), hub.namespace.lower().partition(":")[0]))
    names = dict.fromkeys((f"{hub.name}/{hub.group}/".lower(), f"{hub.name}/{hub.group}/"))
    return tuple(f"{namespace}/{name}" for namespace in namespaces for name in names)


def ownership_name(folder: str, partition: PartitionId) -> str:
    """Who owns the partition."""
    return f"{folder}ownership/{partition}"


def checkpoint_name(folder: str, partition: PartitionId) -> str:
    """How far it is done."""
    return f"{folder}checkpoint/{partition}"
