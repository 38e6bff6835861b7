"""What a checkpoint blob of the current SDKs' layout says: metadata of theirs, a body of ours."""

from collections.abc import Mapping
from typing import Any

import orjson

from service.errors import SetupFault
from service.source.blobs import Blob
from service.source.leases import Checkpoint
from service.source.store import NOTHING_STORED, Stored

OWNER = "ownerid"
"""In the metadata of an ownership blob, as the SDKs have it; the next two are in that of a checkpoint blob."""
SEQUENCE, OFFSET = "sequencenumber", "offset"
OURS = "sluice_owner"
"""There too: the host of ours that wrote it."""


def stored_in(blob: Blob) -> Stored:
    """The metadata says how far; the body adds to it only if it is of the same sequence."""
    sequence = blob.metadata.get(SEQUENCE)
    if sequence is None:
        return NOTHING_STORED
    if not sequence.removeprefix("-").isdecimal():
        # .NET's processor can be told to write an offset alone. To start anew because of it would be worse.
        raise SetupFault(
            f"the checkpoint {blob.name} has no sequence number but {sequence[:40]!r}; let its owner write one, or "
            "move it with `sluice checkpoints set`"
        )
    body = body_of(blob)
    done_ahead = body.get("done_ahead") if body.get("sequence") == int(sequence) else None
    return Stored(Checkpoint(int(sequence), blob.metadata.get(OFFSET) or None, done_ahead), body.get("incarnation"))


def body_of(blob: Blob) -> Mapping[str, Any]:
    """Ours, or nothing: the SDKs leave the body empty."""
    try:
        body = orjson.loads(blob.body)
    except orjson.JSONDecodeError:
        return {}
    return body if isinstance(body, dict) else {}


def encode(stored: Stored, generation: int, owner: str) -> bytes:
    """The body that goes with a checkpoint."""
    checkpoint = stored.checkpoint
    return orjson.dumps(
        {
            "generation": generation,
            "owner": owner,
            "incarnation": stored.incarnation,
            "sequence": checkpoint.sequence if checkpoint else None,
            "done_ahead": checkpoint.done_ahead if checkpoint else None,
        }
    )
