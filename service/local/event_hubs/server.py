"""The local Event Hubs server: listeners, hubs, and the way in for tests and for `sluice local up`."""

import asyncio
import re
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from service.amqp.errors import NOT_FOUND
from service.local.event_hubs.access import DEFAULT_KEY_NAME, Access
from service.local.event_hubs.capture import Capture, CaptureSettings
from service.local.event_hubs.connection import Connection
from service.local.event_hubs.control import Control, Scope
from service.local.event_hubs.control_http import ControlPort
from service.local.event_hubs.hubs import Hub
from service.local.event_hubs.namespace import Limits, Namespace
from service.local.event_hubs.partition import Retention
from service.local.event_hubs.storage import HubStore, stored_hubs
from service.local.event_hubs.websocket import WebSocketListener
from service.local.ports import stop_accepting
from service.local.tokens import TokenIssuer

RETENTION_INTERVAL_SECONDS = 1.0

_HUB_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,254}[A-Za-z0-9])?$")
"""Names of event hubs ("Resource provider naming rules"); also what keeps a name inside the data directory."""


class EventHubsServer:
    """A namespace on loopback. Make hubs, start, hand out `connection_string`, stop."""

    def __init__(
        self,
        *,
        sas_keys: Mapping[str, str] | None = None,
        token_issuer: TokenIssuer | None = None,
        ssl_context: ssl.SSLContext | None = None,
        data_dir: Path | None = None,
        retention: Retention | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.namespace = Namespace(Access(sas_keys, token_issuer, clock), limits or Limits(), clock=clock)
        self.control = Control(self.namespace)
        self.capture: Capture | None = None
        self.host = "127.0.0.1"
        self.port = 0
        self._ssl_context = ssl_context
        self._retention = retention or Retention()
        self._listeners: list[asyncio.Server] = []
        self._ports: list[WebSocketListener | ControlPort] = []
        self._retaining: asyncio.Task[None] | None = None
        self._data_dir = data_dir
        for store in stored_hubs(data_dir) if data_dir is not None else ():
            self._keep(Hub.restored(store, self._retention, clock))

    def add_hub(
        self, name: str, partitions: int = 4, *, retention: Retention | None = None, exist_ok: bool = False
    ) -> Hub:
        """A new hub. One of this name is an error, unless `exist_ok`: then it is that one, as the data dir kept it."""
        known = self.namespace.hubs.get(name.lower())
        if known is not None and exist_ok:
            return known
        if known is not None or not _HUB_NAME.match(name):
            raise ValueError(f"There is a hub {name!r} already, or it is no name for one.")
        store = HubStore(self._data_dir / name.lower()) if self._data_dir is not None else None
        hub = Hub(name, partitions, retention=retention or self._retention, store=store, clock=self.namespace.clock)
        return self._keep(hub)

    def hub(self, name: str) -> Hub:
        """The hub of this name."""
        return self.namespace.hub(name)

    def delete_hub(self, name: str) -> None:
        """Removes a hub and detaches its links; one made again under this name has a new life, from sequence 0."""
        hub = self.namespace.hub(name)
        del self.namespace.hubs[name.lower()]
        gone = f"The messaging entity '{hub.name}' could not be found."
        self.control.detach(Scope(hub=hub.name), NOT_FOUND, gone)
        hub.close(delete=True)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listens for AMQP over TCP, or over TLS if there is a context for it; the port that it got."""
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(
            lambda: SocketWire(self.namespace), host, port, ssl=self._ssl_context, backlog=512
        )
        self._listeners.append(listener)
        self.host, self.port = host, listener.sockets[0].getsockname()[1]
        if self._retaining is None:
            self._retaining = loop.create_task(self._retain())
        return self.port

    async def start_websocket(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listens for AMQP over WebSockets, with TLS if there is a context for it; the port that it got."""
        listener = WebSocketListener(self.namespace, self._ssl_context)
        self._ports.append(listener)
        return await listener.start(host, port)

    async def start_control(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listens for control requests; the port that it got."""
        control = ControlPort(self)
        self._ports.append(control)
        return await control.start(host, port)

    async def start_capture(self, settings: CaptureSettings) -> Capture:
        """Begins to write every hub's events to blob storage, until the server stops."""
        capture = Capture(lambda: list(self.namespace.hubs.values()), settings, self.namespace.clock)
        await capture.start()
        self.capture = capture
        return capture

    def connection_string(self, hub: str | None = None) -> str:
        """What an SDK needs to get here; with `hub`, bound to that hub."""
        name = (
            DEFAULT_KEY_NAME
            if DEFAULT_KEY_NAME in self.namespace.access.keys
            else next(iter(self.namespace.access.keys))
        )
        parts = [
            f"Endpoint=sb://{self.host}:{self.port}",
            f"SharedAccessKeyName={name}",
            f"SharedAccessKey={self.namespace.access.keys[name]}",
        ]
        if self._ssl_context is None:
            parts.append("UseDevelopmentEmulator=true")
        if hub is not None:
            parts.append(f"EntityPath={hub}")
        return ";".join(parts) + ";"

    async def stop(self) -> None:
        """Stops listening and drops every connection."""
        if self._retaining is not None:
            self._retaining.cancel()
            self._retaining = None
        for listener in self._listeners:
            await stop_accepting(listener)
        for connection in list(self.namespace.connections):
            connection.abort()
        await asyncio.sleep(0)  # aborted sockets are closed in the next turn of the loop
        self._listeners.clear()
        if self.capture is not None:
            await self.capture.stop()
            self.capture = None
        for port in self._ports:
            await port.stop()
        self._ports.clear()
        for hub in self.namespace.hubs.values():
            hub.close()

    def _keep(self, hub: Hub) -> Hub:
        self.namespace.hubs[hub.name.lower()] = hub
        return hub

    async def _retain(self) -> None:
        while True:
            await asyncio.sleep(RETENTION_INTERVAL_SECONDS)
            for hub in list(self.namespace.hubs.values()):
                hub.retain()


class SocketWire(asyncio.Protocol):
    """A TCP or TLS socket under a connection."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._transport: asyncio.Transport
        self._connection: Connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._namespace.limits.write_buffer_bytes)
        self._connection = Connection(self._namespace, self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self._connection.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        del exc
        self._connection.lost()

    def pause_writing(self) -> None:
        """The client reads slowly."""
        self._connection.writing_paused()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._connection.writing_resumed()

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        self._transport.write(data)

    def close(self) -> None:
        """Closes after what is buffered."""
        self._transport.close()

    def abort(self) -> None:
        """Closes at once."""
        self._transport.abort()

    def unsent_bytes(self) -> int:
        """How much is buffered."""
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Takes no more bytes."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Takes bytes again."""
        if not self._transport.is_closing():
            self._transport.resume_reading()
