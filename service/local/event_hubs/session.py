"""Sessions: windows (2.5.6), and the links by their handles."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from service.amqp.errors import HANDLE_IN_USE, NOT_ALLOWED, UNATTACHED_HANDLE, WINDOW_VIOLATION, AmqpError
from service.amqp.performatives import MAX_UINT, Attach, Begin, Detach, Disposition, End, Flow, Performative, Transfer

if TYPE_CHECKING:
    from service.local.event_hubs.connection import Connection
    from service.local.event_hubs.links import Link

OUTGOING_WINDOW = 2**31 - 1


class SessionError(AmqpError):
    """A fault that ends the session and leaves the connection."""


class Session:
    """One session of a connection. The server uses the client's channel and handles as its own."""

    def __init__(self, connection: Connection, channel: int, begin: Begin) -> None:
        self.connection = connection
        self.channel = channel
        self.links: dict[int, Link] = {}
        self.next_delivery_id = 0
        self.next_outgoing_id = 0
        self.remote_incoming_window = begin.incoming_window
        self._next_incoming_id = begin.next_outgoing_id
        self._window = connection.namespace.limits.session_window
        self._incoming_window = self._window
        self._waiting: deque[tuple[int, bytes]] = deque()
        """Transfers, with their handles, of messages that took more frames than the client's window had room for."""
        self._awaiting_detach: set[int] = set()
        """Handles that the server detached: what the client sent before it knew is passed over."""

    def handle(self, performative: Performative, payload: bytes) -> None:
        """Takes one of the client's performatives."""
        match performative:
            case Transfer():
                self._on_transfer(performative, payload)
            case Flow():
                self._on_flow(performative)
            case Attach():
                self._on_attach(performative)
            case Detach():
                self._on_detach(performative)
            case Disposition() | End():
                pass
            case _:
                raise AmqpError(f"A {type(performative).__name__.lower()} inside a session.")

    def send(self, performative: Performative) -> None:
        """Writes a performative on this session's channel."""
        self.connection.send(self.channel, performative)

    def send_flow(self, handle: int, delivery_count: int, credit: int, *, drain: bool = False) -> None:
        """Tells the state of a link, and of the session with it."""
        self._incoming_window = self._window
        self.send(
            Flow(
                next_incoming_id=self._next_incoming_id,
                incoming_window=self._window,
                next_outgoing_id=self.next_outgoing_id,
                outgoing_window=OUTGOING_WINDOW,
                handle=handle,
                delivery_count=delivery_count,
                link_credit=credit,
                drain=drain,
            )
        )

    def send_transfers(self, handle: int, frames: Iterable[bytes]) -> None:
        """Writes as many of the frames as the client's window takes, behind those that already wait for it."""
        self._waiting.extend([(handle, each) for each in frames])
        self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting and self.remote_incoming_window > 0:
            self.connection.write(self._waiting.popleft()[1])
            self.sent_transfers(1)

    def sent_transfers(self, frames: int) -> None:
        """Counts transfers against the client's window."""
        self.next_outgoing_id = (self.next_outgoing_id + frames) & MAX_UINT
        self.remote_incoming_window -= frames

    def forget(self, link: Link, *, awaiting_reply: bool = False) -> None:
        """Removes a link; `awaiting_reply` if the client does not know yet."""
        if self.links.get(link.handle) is link:
            del self.links[link.handle]
        if awaiting_reply:
            self._awaiting_detach.add(link.handle)
        self._waiting = deque(each for each in self._waiting if each[0] != link.handle)
        if link.attached:
            link.attached = False
            link.closed()

    def refuse(self, handle: int, error: AmqpError) -> None:
        """Detaches a link that was never to be."""
        self._awaiting_detach.add(handle)
        self.send(Detach(handle, closed=True, error=error.to_wire()))

    def close(self) -> None:
        """Removes every link, without a word to the client."""
        for link in list(self.links.values()):
            self.forget(link)

    def _on_attach(self, attach: Attach) -> None:
        if attach.handle in self.links:
            raise SessionError(f"The handle {attach.handle} is in use.", HANDLE_IN_USE)
        if attach.handle > self.connection.namespace.limits.handle_max:
            raise AmqpError(f"The handle {attach.handle} is above the agreed maximum.", NOT_ALLOWED)
        self._awaiting_detach.discard(attach.handle)
        self.connection.attach(self, attach)

    def _on_detach(self, detach: Detach) -> None:
        link = self.links.get(detach.handle)
        if link is None:
            self._awaiting_detach.discard(detach.handle)
            return
        self.forget(link)
        self.send(Detach(detach.handle, closed=detach.closed))

    def _on_flow(self, flow: Flow) -> None:
        next_incoming_id = flow.next_incoming_id or 0
        unseen = (self.next_outgoing_id - next_incoming_id) & MAX_UINT
        self.remote_incoming_window = max(0, flow.incoming_window - unseen)
        self._send_waiting()
        link = self.links.get(flow.handle) if flow.handle is not None else None
        if link is not None:
            link.on_flow(flow)
        elif flow.handle is not None and flow.handle not in self._awaiting_detach:
            raise SessionError(f"A flow for the handle {flow.handle}, which is not attached.", UNATTACHED_HANDLE)
        elif flow.echo:
            self.send(Flow(self._next_incoming_id, self._window, self.next_outgoing_id, OUTGOING_WINDOW))
        self.connection.schedule_delivery()

    def _on_transfer(self, transfer: Transfer, payload: bytes) -> None:
        self._next_incoming_id = (self._next_incoming_id + 1) & MAX_UINT
        self._incoming_window -= 1
        if self._incoming_window < -self._window:
            raise SessionError("More transfers than the session's window allows.", WINDOW_VIOLATION)
        link = self.links.get(transfer.handle)
        if link is not None:
            link.on_transfer(transfer, payload)
        elif transfer.handle not in self._awaiting_detach:
            raise SessionError(f"A transfer on the handle {transfer.handle}, which is not attached.", UNATTACHED_HANDLE)
        if self._incoming_window <= self._window // 2:
            self._incoming_window = self._window
            self.send(Flow(self._next_incoming_id, self._window, self.next_outgoing_id, OUTGOING_WINDOW))
