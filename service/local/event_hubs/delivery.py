"""Transfers to a client, packed by hand: the hot way of the server.

Every transfer is written with all eleven fields (see `service.amqp.performatives`), settled, and with one and the same
delivery tag. A message must have one (2.7.5; go-amqp fails without), but it needs to be unique only among
what is unsettled (2.6.12), and pyamqp keeps every tag that it has seen for the life of a link.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from service.amqp.performatives import MAX_UINT

if TYPE_CHECKING:
    from service.local.event_hubs.session import Session

_TRANSFER = struct.Struct(">I16sI11s")
TRANSFER_SIZE = _TRANSFER.size
pack_transfer = _TRANSFER.pack

_TAG = b"\xa0\x01\x00"
LAST = _TAG + b"\x43\x41\x42\x40\x40\x42\x42\x41"
"""Behind the delivery id: tag, format 0, settled, no more; no mode or state, not resumed or aborted, batchable."""
MORE = _TAG + b"\x43\x41\x41\x40\x40\x42\x42\x41"


def transfer_head(channel: int, handle: int) -> bytes:
    """What stands between a transfer's size and its delivery id."""
    # Data offset 2, type 0, channel; descriptor 0x14; a list of 11 fields in 22 octets; handle; a uint follows.
    return struct.pack(">BBH3sBBBBIB", 2, 0, channel, b"\x00\x53\x14", 0xC0, 22, 11, 0x70, handle, 0x70)


def transfer_frames(session: Session, handle: int, message: bytes) -> list[bytes]:
    """One message as one or several transfers, which take one delivery id."""
    room = session.connection.peer_max_frame_size - TRANSFER_SIZE
    head, delivery_id = transfer_head(session.channel, handle), session.next_delivery_id
    frames = []
    for start in range(0, len(message) or 1, room):
        piece = message[start : start + room]
        more = start + room < len(message)
        frames.append(pack_transfer(TRANSFER_SIZE + len(piece), head, delivery_id, MORE if more else LAST) + piece)
    session.next_delivery_id = (delivery_id + 1) & MAX_UINT
    return frames
