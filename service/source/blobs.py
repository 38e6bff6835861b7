"""One blob container: every call under a timeout, its errors made ours, its calls counted.

Lost races (409, 412) are raised as `Conflict` with storage's own code, since only the caller knows what they mean.
The SDK's own retries are off: each of our loops has its own, and they know the lease's deadline.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobProperties
from azure.storage.blob.aio import BlobLeaseClient, ContainerClient

from service.errors import SetupFault, SluiceError
from service.source.faults import of_storage


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob as read or listed; `body` is empty in a listing. The keys of its metadata are lower case."""

    name: str
    etag: str
    metadata: Mapping[str, str]
    leased: bool
    modified: datetime | None
    body: bytes = b""


class Conflict(SluiceError):
    """Storage refused because the blob, or the lease on it, is not as the caller believed."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Blobs:
    """A container. `now` is the storage service's time at its latest answer, in seconds since 1970."""

    def __init__(
        self,
        client: ContainerClient,
        call_seconds: float = 10.0,
        close_credential: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._client = client
        self._account = str(client.primary_hostname)
        self._call_seconds = call_seconds
        self._close_credential = close_credential
        self.container = str(client.container_name)
        self.now = 0.0
        self.calls: Counter[str] = Counter()
        """How many calls of each kind were made."""

    async def make(self) -> None:
        """Make the container if it is missing. An identity that may not make it but finds it is no fault."""
        try:
            async with self._edge("create container"):
                await self._client.create_container(raw_response_hook=self._hear)
        except Conflict:
            return  # it is there
        except SetupFault:
            # Not ours to make. That is no fault if we may look inside.
            async with self._edge("look"):
                async for _ in self._client.list_blobs(name_starts_with="\x7f", raw_response_hook=self._hear):
                    break

    async def list(self, prefix: str) -> Sequence[Blob]:
        """All blobs whose name starts so, with their metadata. A container that is missing is made."""
        try:
            async with self._edge("list"):
                listing = self._client.list_blobs(
                    name_starts_with=prefix, include=["metadata"], raw_response_hook=self._hear
                )
                return [_blob(item) async for item in listing]
        except ResourceNotFoundError:
            await self.make()
            return []

    async def get(self, name: str) -> Blob | None:
        """The blob with its body."""
        with contextlib.suppress(ResourceNotFoundError):
            async with self._edge("get"):
                loader = await self._client.download_blob(name, raw_response_hook=self._hear)
                return _blob(loader.properties, await loader.readall())
        return None

    async def put(
        self, name: str, body: bytes, metadata: Mapping[str, str], *, etag: str | None, lease: str | None = None
    ) -> str:
        """Write it whole and return its ETag: over exactly this ETag, or as new where `etag` is None."""
        match = {"overwrite": True} | _if_match(etag) if etag else {"overwrite": False}
        async with self._edge("put"):
            answer = await self._client.get_blob_client(name).upload_blob(
                body, metadata=dict(metadata), raw_response_hook=self._hear, **_leased(lease), **match
            )
            return str(answer["etag"])

    async def set_metadata(
        self, name: str, metadata: Mapping[str, str], *, etag: str, lease: str | None = None
    ) -> tuple[str, datetime | None]:
        """Replace its metadata over exactly this ETag; returns the new ETag and when it was changed."""
        async with self._edge("set metadata"):
            answer = await self._client.get_blob_client(name).set_blob_metadata(
                dict(metadata), raw_response_hook=self._hear, **_leased(lease), **_if_match(etag)
            )
            return str(answer["etag"]), answer.get("last_modified")  # type: ignore[return-value]

    async def delete(self, name: str) -> None:
        """Remove it; nothing happens where it is missing."""
        with contextlib.suppress(ResourceNotFoundError):
            async with self._edge("delete"):
                await self._client.delete_blob(name, raw_response_hook=self._hear)

    async def acquire_lease(self, name: str, lease: str, seconds: int) -> None:
        """Lease it under this id; asking again with the same id is no conflict."""
        async with self._edge("acquire lease"):
            await self._lease(name, lease).acquire(lease_duration=seconds, raw_response_hook=self._hear)

    async def renew_lease(self, name: str, lease: str) -> None:
        """Start its duration anew; possible also after it ran out, while nobody leased or changed the blob."""
        async with self._edge("renew lease"):
            await self._lease(name, lease).renew(raw_response_hook=self._hear)

    async def change_lease(self, name: str, lease: str, to: str) -> None:
        """Put our id in place of another's."""
        async with self._edge("change lease"):
            await self._lease(name, lease).change(to, raw_response_hook=self._hear)

    async def release_lease(self, name: str, lease: str) -> None:
        """End it now."""
        async with self._edge("release lease"):
            await self._lease(name, lease).release(raw_response_hook=self._hear)

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()
        if self._close_credential is not None:
            await self._close_credential()

    def _lease(self, name: str, lease: str) -> BlobLeaseClient:
        return BlobLeaseClient(self._client.get_blob_client(name), lease)

    def _hear(self, response: Any) -> None:  # noqa: ANN401 - the SDK does not name its type
        """Note the service's own time, by which ages are counted."""
        date = response.http_response.headers.get("Date")
        if date:
            self.now = parsedate_to_datetime(date).timestamp()

    @contextlib.asynccontextmanager
    async def _edge(self, kind: str) -> AsyncIterator[None]:
        """Count the call, limit its time, translate its errors."""
        self.calls[kind] += 1
        try:
            async with asyncio.timeout(self._call_seconds):
                yield
        except ResourceNotFoundError:
            if kind in ("list", "get", "delete"):
                raise
            if kind == "look":
                raise SetupFault(f"the container {self.container} does not exist and we may not make it") from None
            raise Conflict("BlobNotFound") from None
        except HttpResponseError as error:
            if error.status_code in (409, 412):
                code = getattr(error, "error_code", None)
                raise Conflict(str(getattr(code, "value", code) or error.status_code)) from None
            raise of_storage(error, self._account) from None
        except Exception as error:  # noqa: BLE001 - the SDK and its transport raise many kinds; each gets a sentence
            raise of_storage(error, self._account) from None


def _blob(item: BlobProperties, body: bytes = b"") -> Blob:
    metadata = {key.lower(): value for key, value in (item.metadata or {}).items()}
    return Blob(item.name, str(item.etag), metadata, item.lease.state == "leased", item.last_modified, body)


def _if_match(etag: str) -> dict[str, Any]:
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def _leased(lease: str | None) -> dict[str, Any]:
    return {"lease": lease} if lease else {}
