"""Files to read, in a folder or in blob storage: listed by the driver, opened by tasks."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import ContainerClient, StorageErrorCode

from service.config import Settings
from service.jobs.faults import BadInput
from service.options import ca_file
from service.source.faults import of_storage

BLOB_SCHEME: Final = "blob://"
_HEAD_BYTES: Final = 64 * 1024
_TAIL_BYTES: Final = 16
_NO_SUCH_RANGE: Final = 416
_LOOKS: Final = 8
"""At a time: a client keeps ten connections."""
_HADOOP: Final = re.compile(r"(?:abfs|wasb)s?://([^@/]+)@([^./]+)\.(?:dfs|blob)\.([^/]+)/*(.*)")
"""As Hadoop writes it: abfss://container@account.dfs.core.windows.net/prefix."""
_HTTPS: Final = re.compile(r"https://([^./]+)\.(?:dfs|blob)\.([^/]+)/([^/]+)/*(.*)")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file as listed."""

    name: str
    """Its whole path below the store."""
    size: int
    version: str
    """Changes when the file does: an ETag, or the time of the last change."""
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The two ends of a file as it is now."""

    head: bytes
    """The first 64 KB."""
    tail: bytes
    """The last 16 bytes."""
    size: int


class Store(Protocol):
    """A place with files. Goes to tasks by pickling."""

    def list(self) -> list[FileInfo]:
        """All files, by name. Raises BadInput."""

    def ends(self, names: Sequence[str]) -> Sequence[Ends | BadInput]:
        """Of each file how it begins and ends, or why that cannot be seen."""

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

    def ends(self, names: Sequence[str]) -> Sequence[Ends | BadInput]:
        """Read from the files."""
        return [self._ends(name) for name in names]

    def _ends(self, name: str) -> Ends | BadInput:
        try:
            with _readable(name), Path(name).open("rb") as file:
                head = file.read(_HEAD_BYTES)
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _TAIL_BYTES))
                return Ends(head, file.read(), size)
        except BadInput as fault:
            return fault
        except OSError as fault:
            return BadInput(f"{name} cannot be opened: {fault.strerror}")

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
    """Used where it is given, else the identity."""

    def list(self) -> list[FileInfo]:
        """One listing; what is no file (folders of hierarchical namespaces) is left out."""
        with self.client() as client:
            found = [
                FileInfo(
                    str(blob.name), int(blob.size or 0), str(blob.etag), round(blob.last_modified.timestamp() * 1000)
                )
                for blob in client.list_blobs(name_starts_with=self.prefix)
                if not (blob.metadata or {}).get("hdi_isfolder")
            ]
        return sorted(found, key=lambda file: file.name)

    def ends(self, names: Sequence[str]) -> Sequence[Ends | BadInput]:
        """By ranges, several at a time."""
        with self.client() as client, ThreadPoolExecutor(_LOOKS) as pool:
            return tuple(pool.map(lambda name: self._ends(client, name), names))

    def _ends(self, client: ContainerClient, name: str) -> Ends | BadInput:
        try:
            found = client.download_blob(name, offset=0, length=_HEAD_BYTES)
            # The first answer says how long the blob is.
            head, size = found.readall(), int(str(found.properties.content_range).rpartition("/")[2])
            if size <= len(head):
                return Ends(head, head[-_TAIL_BYTES:], size)
            tail = client.download_blob(name, offset=size - _TAIL_BYTES, length=_TAIL_BYTES).readall()
            return Ends(head, tail, size)
        except AzureError as fault:
            if getattr(fault, "status_code", 0) == _NO_SUCH_RANGE:  # not even a first byte
                return Ends(b"", b"", 0)
            return self._fault(fault, client)

    def fetch(self, name: str, to: Path) -> None:
        """A download to a local file."""
        with self.client() as client, to.open("wb") as file:
            client.download_blob(name, max_concurrency=2).readinto(file)

    def local_path(self, name: str) -> str | None:  # noqa: ARG002 - a blob never is
        """Nowhere."""
        return None

    def text(self) -> str:
        """For messages."""
        place = f"{self.container}/{self.prefix}".rstrip("/")
        return f"{self.account_url}/{place}" if self.account_url else f"{BLOB_SCHEME}{place}"

    @contextmanager
    def client(self) -> Iterator[ContainerClient]:
        """The container. What goes wrong while it is used is raised as BadInput."""
        # Large ranges: each is a request, and Capture files are read whole.
        options: dict[str, Any] = {"max_single_get_size": 64 * 1024**2, "max_chunk_get_size": 16 * 1024**2}
        if ca_file():
            options["connection_verify"] = ca_file()
        if self.connection_string:
            client = ContainerClient.from_connection_string(self.connection_string, self.container, **options)
        else:
            client = ContainerClient(self.account_url, self.container, credential=DefaultAzureCredential(), **options)
        try:
            with client:
                yield client
        except AzureError as fault:
            raise self._fault(fault, client) from None

    def _fault(self, fault: AzureError, client: ContainerClient) -> BadInput:
        if getattr(fault, "error_code", "") == StorageErrorCode.BLOB_NOT_FOUND:
            return BadInput(f"{self.text()}: a blob is not there any more; somebody deletes them. Run it again.")
        if isinstance(fault, ResourceNotFoundError):
            return BadInput(
                f"{self.text()}: there is no such blob container. Check --path and the storage account of BLOB_*."
            )
        may = " may not be read" if isinstance(fault, HttpResponseError) else ""
        return BadInput(f"{self.text()}{may}: {of_storage(fault, str(client.primary_hostname))}")


def open_store(path: str, settings: Settings) -> Store:
    """The store that a `--path` names. Raises BadInput."""
    secret = settings.blob_connstring
    known = secret.get_secret_value() if secret else ""
    if path.startswith(BLOB_SCHEME):
        container, _, prefix = path.removeprefix(BLOB_SCHEME).partition("/")
        if not container:
            raise BadInput(f"--path: {path} names no container. Write blob://container/prefix.")
        return Blobs(container, prefix, settings.blob_account_url or "", known)
    match = _HADOOP.fullmatch(path)
    if match:
        container, account, domain, prefix = match.groups()
    elif match := _HTTPS.fullmatch(path):
        account, domain, container, prefix = match.groups()
    elif "://" in path.removeprefix("file://"):
        raise BadInput(
            f"--path: {path} is of no kind that is known. Give a folder, blob://container/prefix,"
            " abfss://container@account.dfs.core.windows.net/prefix, or wasbs:// likewise."
        )
    else:
        return Folder(path.removeprefix("file://"))
    if f"accountname={account};" in f"{known};".lower():
        return Blobs(container, prefix, "", known)
    return Blobs(container, prefix, f"https://{account}.blob.{domain}")
