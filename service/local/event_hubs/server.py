"""The local Event Hubs server: listeners, hubs, and the way in for tests and for `sluice local up`."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from typing import cast

from service.amqp.errors import NOT_FOUND
from service.local.event_hubs.access import DEFAULT_KEY_NAME, Access
from service.local.event_hubs.connection import Connection
from service.local.event_hubs.control import Control, Scope
from service.local.event_hubs.hubs import Hub
from service.local.event_hubs.namespace import Limits, Namespace
from service.local.event_hubs.partition import Retention
from service.local.tokens import TokenIssuer


class EventHubsServer:
    """A namespace on loopback. Make hubs, start, hand out `connection_string`, stop."""

    def __init__(
        self,
        *,
        sas_keys: Mapping[str, str] | None = None,
        token_issuer: TokenIssuer | None = None,
        ssl_context: ssl.SSLContext | None = None,
        retention: Retention | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.namespace = Namespace(Access(sas_keys, token_issuer, clock), limits or Limits(), clock=clock)
        self.control = Control(self.namespace)
        self.host = "127.0.0.1"
        self.port = 0
        self._ssl_context = ssl_context
        self._retention = retention or Retention()
        self._listeners: list[asyncio.Server] = []

    def add_hub(self, name: str, partitions: int = 4, *, retention: Retention | None = None) -> Hub:
        """A new hub; ValueError if there is one of this name."""
        if name.lower() in self.namespace.hubs:
            raise ValueError(f"There is a hub {name!r} already.")
        hub = Hub(name, partitions, retention=retention or self._retention, clock=self.namespace.clock)
        self.namespace.hubs[name.lower()] = hub
        return hub

    def hub(self, name: str) -> Hub:
        """The hub of this name."""
        return self.namespace.hub(name)

    def delete_hub(self, name: str) -> None:
        """Removes a hub and detaches its links; one made again under this name has a new life, from sequence 0."""
        hub = self.namespace.hub(name)
        del self.namespace.hubs[name.lower()]
        gone = f"The messaging entity '{hub.name}' could not be found."
        self.control.detach(Scope(hub=hub.name), NOT_FOUND, gone)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listens; the port that it got."""
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(
            lambda: SocketWire(self.namespace), host, port, ssl=self._ssl_context, backlog=512
        )
        self._listeners.append(listener)
        self.host, self.port = host, listener.sockets[0].getsockname()[1]
        return self.port

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
        for listener in self._listeners:
            listener.close()
        for connection in list(self.namespace.connections):
            connection.abort()
        for listener in self._listeners:
            await listener.wait_closed()
        self._listeners.clear()


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
