"""Resource ids (`_rid`): each holds those of its parents, so SDKs can tell a container from a document by length.

4 bytes for a database, 8 for a container, 16 for a document; base64 with `-` for `/` (azure.cosmos._base and the
ResourceId classes of the .NET and Java SDKs).
"""

from base64 import b64decode
from binascii import b2a_base64
from struct import Struct

_DATABASE = Struct(">I")
_CONTAINER = Struct(">II")


def database_rid(number: int) -> str:
    """The id of the database with that number."""
    return _text(_DATABASE.pack(number))


def container_rid(database: int, number: int) -> str:
    """The id of a container; its first bit is set, which tells it from a user."""
    return _text(_CONTAINER.pack(database, number | 0x80000000))


def container_number(rid: str) -> int:
    """The number that a container's id was made of."""
    return int.from_bytes(b64decode(rid.replace("-", "/"))[4:8], "big") & 0x7FFFFFFF


def offer_rid(number: int) -> str:
    """The id of an offer: short, since offers stand beside databases."""
    return _text(_DATABASE.pack(number)[1:])


def document_number(rid: str) -> int:
    """The number that a document's id was made of; ValueError if it is none."""
    raw = b64decode(rid.replace("-", "/"), validate=True)
    if len(raw) != 16:
        raise ValueError("not the id of a document")
    return int.from_bytes(raw[8:], "little")


class DocumentRids:
    """The ids of the documents of one container."""

    def __init__(self, database: int, container: int) -> None:
        self.prefix = _CONTAINER.pack(database, container | 0x80000000)

    def of(self, number: int) -> str:
        """The id of the document with that number."""
        return _text(self.prefix + number.to_bytes(8, "little"))


def _text(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).decode().replace("/", "-")
