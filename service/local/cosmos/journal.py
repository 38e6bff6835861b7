"""Where the changes of a container go so that they outlive the process; by itself nowhere."""

from service.local.cosmos.documents import Document, Key


class Journal:
    """Keeps nothing: an account in memory."""

    def put(self, document: Document) -> None:
        """A document was written."""

    def delete(self, name: Key) -> None:
        """A document was removed."""

    def changed(self) -> None:
        """The properties, ranges or throughput of the container have changed."""

    def close(self) -> None:
        """Nothing more will come."""
