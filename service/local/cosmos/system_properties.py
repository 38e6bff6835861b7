"""What the server adds to the documents of a container: `_rid`, `_self`, `_etag`, `_attachments` and `_ts`."""

from typing import Final

from service.local.cosmos.resource_ids import DocumentRids

NAMES: Final = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts"})


class SystemProperties:
    """The system properties of one container's documents.

    They are joined to the JSON text when a document is read: most documents of a load test never are.
    """

    __slots__ = ("_link", "rid", "size")

    def __init__(self, rids: DocumentRids, self_link: str) -> None:
        self.rid = rids.of
        self._link = self_link
        self.size = len(self.joined(b"}", 1, 1, 1_000_000_000)) - 1
        """How many bytes they add."""

    def joined(self, text: bytes, number: int, version: int, timestamp: int) -> bytes:
        """A JSON object with its system properties; `version` is what the etag is made of."""
        rid = self.rid(number)
        mark = etag(version, timestamp).replace('"', '\\"')
        added = (
            f',"_rid":"{rid}","_self":"{self._link}docs/{rid}/","_etag":"{mark}",'
            f'"_attachments":"attachments/","_ts":{timestamp}}}'
        )
        return text[:-1] + added.encode()


def etag(version: int, timestamp: int) -> str:
    """The etag of a version of a document."""
    return f'"{version:08x}-0000-0000-0000-{timestamp:012x}"'


def etag_version(text: str) -> int:
    """The version that an etag was made of."""
    return int(text[1:].partition("-")[0], 16)
