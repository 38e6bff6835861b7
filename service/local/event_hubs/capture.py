"""Capture: the events of every hub as Avro files in blob storage, by interval or size, whichever comes first.

Source: "Capture events through Azure Event Hubs" of the documentation, for windows, empty files and names. That the
time in a name is the window's start is an assumption; the documentation does not say.
"""

import asyncio
import contextlib
import io
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from azure.core.exceptions import AzureError, ResourceExistsError
from azure.storage.blob.aio import ContainerClient

from service.local.event_hubs.capture_avro import capture_file
from service.local.event_hubs.hubs import Hub
from service.local.event_hubs.partition import Partition

NAME_FORMAT = "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"
"""The service's default; it adds the ending itself."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Where and when files are written; names and defaults as in the service's `captureDescription`."""

    connection_string: str
    """Of the storage account."""
    container: str
    interval_seconds: float = 300.0
    size_limit_bytes: int = 314_572_800
    skip_empty_archives: bool = False
    namespace: str = "local"
    name_format: str = NAME_FORMAT
    ca_file: str = ""
    """Certificates to trust instead of the system's."""


@dataclass(slots=True)
class _Window:
    """What a partition's next file will hold."""

    started: float
    next_sequence: int


class Capture:
    """Writes the files of all hubs from its own task. A file that cannot be written is tried again, never left out."""

    def __init__(
        self, hubs: Callable[[], list[Hub]], settings: CaptureSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self.settings = settings
        self._hubs = hubs
        self._clock = clock
        self._windows: dict[tuple[str, int, str], _Window] = {}
        self._task: asyncio.Task[None] | None = None
        self._container: ContainerClient | None = None
        self._writing = asyncio.Lock()

    async def start(self) -> None:
        """Makes the container if need be, and begins."""
        self._container = ContainerClient.from_connection_string(
            self.settings.connection_string,
            self.settings.container,
            retry_total=0,
            connection_verify=self.settings.ca_file or True,
        )
        with contextlib.suppress(ResourceExistsError):
            await self._container.create_container()
        self._observe()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Writes what is waiting, and ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._container is not None:
            await self.flush(skip_empty=True)
            await self._container.close()
            self._container = None

    async def flush(self, *, skip_empty: bool | None = None) -> list[str]:
        """Ends every window now; the names of the files written."""
        return await self._write(lambda _window, _partition: True, skip_empty)

    async def _run(self) -> None:
        pause = min(1.0, self.settings.interval_seconds / 4)
        while True:
            await asyncio.sleep(pause)
            try:
                await self._write(self._due, None)
            except AzureError as error:
                _log.warning("A capture file could not be written; it will be tried again.", error=str(error))

    def _observe(self) -> list[tuple[Hub, Partition, _Window]]:
        """Every partition with its window; a partition seen for the first time begins at what its log still has."""
        seen = []
        for hub in self._hubs():
            for partition in hub.partitions:
                key = (hub.name.lower(), hub.created_ms, partition.id)
                window = self._windows.setdefault(key, _Window(self._clock(), partition.log.first))
                seen.append((hub, partition, window))
        return seen

    def _due(self, window: _Window, partition: Partition) -> bool:
        if self._clock() - window.started >= self.settings.interval_seconds:
            return True
        log = partition.log
        start = max(window.next_sequence, log.first) - log.first
        if start >= len(log.events):
            return False
        return log.next_offset - log.offsets[start] >= self.settings.size_limit_bytes

    async def _write(self, due: Callable[[_Window, Partition], bool], skip_empty: bool | None) -> list[str]:
        names = []
        async with self._writing:
            for hub, partition, window in self._observe():
                if due(window, partition):
                    name = await self._write_one(hub, partition, window, skip_empty)
                    names += [name] if name else []
        return names

    async def _write_one(self, hub: Hub, partition: Partition, window: _Window, skip_empty: bool | None) -> str | None:
        log = partition.log
        end = log.end
        events = log.events[max(window.next_sequence - log.first, 0) :]
        now = self._clock()
        name = None
        if events or not (self.settings.skip_empty_archives if skip_empty is None else skip_empty):
            name = self._name(hub, partition, window.started)
            data = await asyncio.to_thread(capture_file, events)
            if self._container is not None:
                await self._container.upload_blob(name, io.BytesIO(data), overwrite=True)
            # Names have whole seconds: the next window begins in another one, or its file would replace this.
            now = max(now, math.floor(window.started) + 1.0)
        window.started, window.next_sequence = now, end
        return name

    def _name(self, hub: Hub, partition: Partition, started: float) -> str:
        at = datetime.fromtimestamp(started, UTC)
        path = self.settings.name_format.format(
            Namespace=self.settings.namespace,
            EventHub=hub.name,
            PartitionId=partition.id,
            Year=f"{at:%Y}",
            Month=f"{at:%m}",
            Day=f"{at:%d}",
            Hour=f"{at:%H}",
            Minute=f"{at:%M}",
            Second=f"{at:%S}",
        )
        return f"{path}.avro"
