"""What all connections of a server share: hubs, access, limits, and the faults that tests switch on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.amqp.errors import NOT_FOUND, AmqpError

if TYPE_CHECKING:
    from service.local.event_hubs.access import Access
    from service.local.event_hubs.connection import Connection
    from service.local.event_hubs.hubs import Hub

SERVER_BUSY = "com.microsoft:server-busy"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server allows its clients. Defaults are what traces of the service show."""

    max_message_size: int = 1024 * 1024
    """Standard tier: 1 MB for an event or a batch ("Quotas and limits")."""
    max_frame_size: int = 64 * 1024
    channel_max: int = 4999
    handle_max: int = 255
    session_window: int = 5000
    """Incoming window of a session (azure-event-hubs-go#121)."""
    link_credit: int = 1000
    idle_timeout_seconds: float = 240.0
    """A connection that says nothing for so long is closed (azure-sdk-for-python#29961)."""
    write_buffer_bytes: int = 1024 * 1024
    """Above so much unsent, no more events are delivered to a connection."""
    max_unread_bytes: int = 8 * 1024 * 1024
    """Above so much unsent, a connection is not read any more until its client reads."""
    max_partial_bytes: int = 32 * 1024 * 1024
    """So much of messages that are not whole yet may one connection leave with the server."""


@dataclass(slots=True)
class Faults:
    """What goes wrong on purpose, until it is switched off."""

    delay_seconds: float = 0.0
    """Everything the server writes waits so long."""
    busy: set[str] = field(default_factory=set)
    """Hubs, in lower case, that answer com.microsoft:server-busy; `*` is all of them."""

    def check_busy(self, hub: str) -> None:
        """AmqpError if the hub is to be busy (SDK: `_constants` and retry policies name the condition)."""
        if self.busy and ("*" in self.busy or hub.lower() in self.busy):
            raise AmqpError(
                "The request was terminated because the entity is being throttled. Error code : 50002. Please wait 4 "
                "seconds and try again.",
                SERVER_BUSY,
            )


@dataclass(slots=True, eq=False)
class Namespace:
    """The shared state of one server."""

    access: Access
    limits: Limits = field(default_factory=Limits)
    faults: Faults = field(default_factory=Faults)
    clock: Callable[[], float] = time.time
    hubs: dict[str, Hub] = field(default_factory=dict)
    """By name in lower case."""
    connections: set[Connection] = field(default_factory=set)

    def hub(self, name: str) -> Hub:
        """The hub of this name, whatever its case, or the service's error."""
        hub = self.hubs.get(name.lower())
        if hub is None:
            raise AmqpError(f"The messaging entity '{name[:200]}' could not be found.", NOT_FOUND)
        return hub
