"""HTTP/2 by prior knowledge, refused in its own words: some clients try it first, and fall back only when told so."""

from collections.abc import Callable
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY = 0x1, 0x3, 0x4, 0x6, 0x7
_ACK: Final = 0x1
_HTTP_1_1_REQUIRED: Final = 0xD  # RFC 9113, 7
_HEAD_BYTES: Final = 9
_MAX_FRAME_BYTES: Final = 16_384  # the most that a client may send before we allow more (RFC 9113, 6.5.2)


class Http2Refusal:
    """A connection that speaks HTTP/2: each request is reset with HTTP_1_1_REQUIRED."""

    def __init__(self, write: Callable[[bytes], None], close: Callable[[], None]) -> None:
        self._write = write
        self._close = close
        self._unread = bytearray()
        self._skip = len(PREFACE)
        write(_frame(_SETTINGS))

    def feed(self, data: bytes) -> None:
        """Take what the client sends."""
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._unread += data[skipped:]
        while len(self._unread) >= _HEAD_BYTES:
            length = int.from_bytes(self._unread[:3], "big")
            if length > _MAX_FRAME_BYTES:
                self._close()
                return
            if len(self._unread) < _HEAD_BYTES + length:
                return
            kind, flags = self._unread[3], self._unread[4]
            stream = int.from_bytes(self._unread[5:9], "big")
            body = bytes(self._unread[_HEAD_BYTES : _HEAD_BYTES + length])
            del self._unread[: _HEAD_BYTES + length]
            self._answer(kind, flags, stream, body)

    def _answer(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if kind == _HEADERS:
            self._write(_frame(_RST_STREAM, stream=stream, body=_HTTP_1_1_REQUIRED.to_bytes(4, "big")))
        elif kind == _SETTINGS and not flags & _ACK:
            self._write(_frame(_SETTINGS, flags=_ACK))
        elif kind == _PING and not flags & _ACK:
            self._write(_frame(_PING, flags=_ACK, body=body))
        elif kind == _GOAWAY:
            self._close()


def _frame(kind: int, *, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body
