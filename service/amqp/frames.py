"""Frames (2.3): cutting a stream of bytes into them, and making them."""

import struct
from dataclasses import dataclass

from service.amqp.decode import decode
from service.amqp.errors import FramingError
from service.amqp.performatives import Performative, performative

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"

AMQP_FRAME, SASL_FRAME = 0, 1
MIN_MAX_FRAME_SIZE = 512
"""The least that a peer may set as its largest frame (2.3)."""

_HEADER = struct.Struct(">IBBH")
HEARTBEAT = _HEADER.pack(8, 2, AMQP_FRAME, 0)
"""An empty frame: it says only that this peer lives (2.4.5)."""


@dataclass(frozen=True, slots=True)
class ProtocolHeader:
    """The eight bytes that name a protocol before its first frame."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as it came; `body` is empty for a heart-beat."""

    kind: int
    channel: int
    body: bytes

    def open(self) -> tuple[Performative, bytes]:
        """The performative, and the payload behind it."""
        value, end = decode(self.body)
        return performative(value), self.body[end:]


class FrameReader:
    """Cuts bytes into headers and frames; holds at most one frame that is not whole yet.

    A protocol header is looked for at the start and again whenever `expect_header` is called, because after SASL the
    peer begins anew with the header of AMQP itself (5.1).
    """

    __slots__ = ("_buffer", "_header_next", "max_frame_size")

    def __init__(self, max_frame_size: int) -> None:
        self.max_frame_size = max_frame_size
        self._buffer = bytearray()
        self._header_next = True

    def feed(self, data: bytes) -> None:
        """Takes bytes as they come."""
        self._buffer += data

    def expect_header(self) -> None:
        """The next eight bytes are a protocol header."""
        self._header_next = True

    def next(self) -> ProtocolHeader | Frame | None:
        """The next whole header or frame, or None until there are more bytes; FramingError if there can be none."""
        buffer = self._buffer
        if len(buffer) < _HEADER.size:
            if self._header_next and not AMQP_HEADER.startswith(bytes(buffer[:4])):
                raise FramingError("The bytes are not a protocol header.")
            return None
        if self._header_next:
            self._header_next = False
            return ProtocolHeader(self._cut(_HEADER.size))
        size, data_offset, kind, channel = _HEADER.unpack_from(buffer)
        if size < _HEADER.size or size > self.max_frame_size:
            raise FramingError(f"A frame of {size} bytes; 8 to {self.max_frame_size} were agreed.")
        if data_offset < 2 or data_offset * 4 > size:
            raise FramingError(f"A data offset of {data_offset} in a frame of {size} bytes.")
        if kind not in (AMQP_FRAME, SASL_FRAME):
            raise FramingError(f"There is no frame type {kind}.")
        if len(buffer) < size:
            return None
        return Frame(kind, channel, self._cut(size)[data_offset * 4 :])

    def _cut(self, size: int) -> bytes:
        piece = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        return piece


def frame(channel: int, body: Performative, payload: bytes = b"") -> bytes:
    """An AMQP frame."""
    raw = body.encode()
    return _HEADER.pack(_HEADER.size + len(raw) + len(payload), 2, AMQP_FRAME, channel) + raw + payload


def sasl_frame(body: Performative) -> bytes:
    """A SASL frame."""
    raw = body.encode()
    return _HEADER.pack(_HEADER.size + len(raw), 2, SASL_FRAME, 0) + raw
