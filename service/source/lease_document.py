"""The JSON in a lease blob: lease and checkpoint of a partition in one, as EventProcessorHost wrote it.

The names are .NET's, which KEDA reads too; the spelling of the JavaScript EventProcessorHost is read as well. What we
add stands under one name of its own, so programs that know only the old names keep working.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.source.events import Hub, PartitionId
from service.source.leases import Checkpoint
from service.source.store import NOTHING_STORED, Stored

_OURS = "Sluice"
_START_OF_STREAM = "-1"
_NOTHING_READ = -1
"""Without a checkpoint. KEDA subtracts it from the newest sequence: 0, or no field, which counts as 0, would hide the
first event. The old programs look at the sequence only where there is an offset."""


@dataclass(frozen=True, slots=True)
class LeaseDocument:
    """One lease blob's body."""

    partition: PartitionId
    owner: str = ""
    token: str = ""
    """The id of the blob lease, so that another host can take it over by changing it."""
    epoch: int = 0
    stored: Stored = NOTHING_STORED
    namespace: str = ""
    hub: str = ""
    """Empty, as `namespace`: written by a program that does not say which hub it read."""

    def encode(self) -> bytes:
        """As it lies in the blob."""
        checkpoint = self.stored.checkpoint
        return json.dumps(
            {
                "PartitionId": self.partition,
                "Owner": self.owner,
                "Token": self.token,
                "Epoch": self.epoch,
                "Offset": checkpoint.offset if checkpoint else None,
                "SequenceNumber": checkpoint.sequence if checkpoint else _NOTHING_READ,
                _OURS: {
                    "Namespace": self.namespace,
                    "Hub": self.hub,
                    "Incarnation": self.stored.incarnation,
                    "Checkpoint": checkpoint is not None,
                    "DoneAhead": checkpoint.done_ahead if checkpoint else None,
                },
            }
        ).encode()

    def is_of(self, hub: Hub) -> bool:
        """Whether it may be this hub's: it is, or does not say."""
        return not self.hub or (self.namespace, self.hub) == (hub.namespace, hub.name.lower())


def decode(partition: PartitionId, body: bytes) -> LeaseDocument:
    """Read either spelling; an empty or unreadable body is a lease that nobody ever held."""
    try:
        fields = {key.lower(): value for key, value in json.loads(body).items()}
    except (ValueError, AttributeError):
        return LeaseDocument(partition)
    ours = fields.get(_OURS.lower()) or {}
    return LeaseDocument(
        partition,
        owner=fields.get("owner") or "",
        token=fields.get("token") or "",
        epoch=int(fields.get("epoch") or 0),
        stored=Stored(_checkpoint(fields, ours), ours.get("Incarnation")),
        namespace=ours.get("Namespace") or "",
        hub=ours.get("Hub") or "",
    )


def _checkpoint(fields: Mapping[str, Any], ours: Mapping[str, Any]) -> Checkpoint | None:
    """None where no checkpoint was ever written: the old programs then have no offset, or the start of the stream's."""
    offset = fields.get("offset")
    offset = None if offset in (None, "") else str(offset)
    if not ours.get("Checkpoint", offset not in (None, _START_OF_STREAM)):
        return None
    return Checkpoint(int(fields.get("sequencenumber") or 0), offset, ours.get("DoneAhead"))
