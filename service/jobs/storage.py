"""Files to read, in a folder or in blob storage: listed by the driver, opened by tasks."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import ContainerClient

from service.config import Settings
from service.jobs.faults import BadInput
from service.source.faults import of_storage

BLOB_SCHEME: Final = "blob://"
_HEAD_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file as listed."""

    name: str
    """Its whole path below the store."""
    size: int
    version: str
    """Changes when the file does: an ETag, or the time of the last change."""
    modified_ms: int


class Store(Protocol):
    """A place with files. Goes to tasks by pickling."""

    def list(self) -> list[FileInfo]:
        """All files, by name. Raises BadInput."""

    def head(self, name: str) -> bytes:
        """The first 64 KB."""

    def fetch(self, name: str, to: Path) -> None:
        """Copy it to a local file."""

    def local_path(self, name: str) -> str | None:
        """Where it lies on this machine, if it does."""

    def text(self) -> str:
        """For messages."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Files below a folder that driver and tasks both see."""

    root: str

    def list(self) -> list[FileInfo]:
        """All files below it, hidden ones left out."""
        root = Path(self.root)
        if not root.exists():
            raise BadInput(f"--path: there is no {root}. Give a folder, a file, or blob://container/prefix.")
        if root.is_file():
            return [self._info(root)]
        return [self._info(path) for path in sorted(_walk(root))]

    def _info(self, path: Path) -> FileInfo:
        status = path.stat()
        modified = status.st_mtime_ns
        return FileInfo(str(path), status.st_size, str(modified), modified // 1_000_000)

    def head(self, name: str) -> bytes:
        """The first 64 KB."""
        with _readable(name), Path(name).open("rb") as file:
            return file.read(_HEAD_BYTES)

    def fetch(self, name: str, to: Path) -> None:
        """A plain copy."""
        with _readable(name):
            shutil.copyfile(name, to)

    def local_path(self, name: str) -> str | None:
        """It is one."""
        return name

    def text(self) -> str:
        """For messages."""
        return self.root


def _walk(root: Path) -> Iterator[Path]:
    def refuse(fault: OSError) -> None:
        raise BadInput(f"--path: {fault.filename} may not be read: {fault.strerror}. Check its permissions.")

    for folder, folders, names in os.walk(root, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        yield from (Path(folder) / name for name in names if not name.startswith((".", "_")))


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except PermissionError as fault:
        raise BadInput(f"{name} may not be read: {fault.strerror}. Check its permissions.") from None


@dataclass(frozen=True, slots=True)
class Blobs:
    """Blobs of one container that begin with a prefix."""

    container: str
    prefix: str
    account_url: str = ""
    connection_string: str = field(default="", repr=False)

    def list(self) -> list[FileInfo]:
        """One listing; what is no file (folders of hierarchical namespaces) is left out."""
        with self._client() as client:
            found = [
                FileInfo(
                    str(blob.name), int(blob.size or 0), str(blob.etag), round(blob.last_modified.timestamp() * 1000)
                )
                for blob in client.list_blobs(name_starts_with=self.prefix)
                if not (blob.metadata or {}).get("hdi_isfolder")
            ]
        return sorted(found, key=lambda file: file.name)

    def head(self, name: str) -> bytes:
        """The first 64 KB, by a range."""
        with self._client() as client:
            return (
                client.download_blob(name, offset=0, length=_HEAD_BYTES).readall() if self._size(client, name) else b""
            )

    def _size(self, client: ContainerClient, name: str) -> int:
        return int(client.get_blob_client(name).get_blob_properties().size or 0)

    def fetch(self, name: str, to: Path) -> None:
        """A download to a local file."""
        with self._client() as client, to.open("wb") as file:
            client.download_blob(name, max_concurrency=2).readinto(file)

    def local_path(self, name: str) -> str | None:  # noqa: ARG002 - a blob never is
        """Nowhere."""
        return None

    def text(self) -> str:
        """For messages."""
        return f"{BLOB_SCHEME}{self.container}/{self.prefix}".rstrip("/")

    @contextmanager
    def _client(self) -> Iterator[ContainerClient]:
        # Large ranges: each is a request, and Capture files are read whole.
        options: dict[str, Any] = {"max_single_get_size": 64 * 1024**2, "max_chunk_get_size": 16 * 1024**2}
        if self.connection_string:
            client = ContainerClient.from_connection_string(self.connection_string, self.container, **options)
        else:
            client = ContainerClient(self.account_url, self.container, credential=DefaultAzureCredential(), **options)
        try:
            with client:
                yield client
        except ResourceNotFoundError:
            raise BadInput(
                f"{self.text()}: there is no such blob container. Check --path and the storage account of BLOB_*."
            ) from None
        except HttpResponseError as fault:
            raise BadInput(f"{self.text()} may not be read: {of_storage(fault, self._account(client))}") from None
        except AzureError as fault:
            raise BadInput(f"{self.text()}: {of_storage(fault, self._account(client))}") from None

    def _account(self, client: ContainerClient) -> str:
        return str(client.primary_hostname)


def open_store(path: str, settings: Settings) -> Store:
    """The store that a `--path` names."""
    if not path.startswith(BLOB_SCHEME):
        return Folder(path.removeprefix("file://"))
    container, _, prefix = path.removeprefix(BLOB_SCHEME).partition("/")
    if not container:
        raise BadInput(f"--path: {path} names no container. Write blob://container/prefix.")
    secret = settings.blob_connstring
    return Blobs(container, prefix, settings.blob_account_url or "", secret.get_secret_value() if secret else "")
