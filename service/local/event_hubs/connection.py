"""One client's connection, from first byte to last. It knows no sockets, so that WebSockets can carry it too."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from service.amqp.errors import (
    CONNECTION_FORCED,
    NOT_ALLOWED,
    RESOURCE_LIMIT_EXCEEDED,
    UNAUTHORIZED_ACCESS,
    AmqpError,
)
from service.amqp.frames import HEARTBEAT, SASL_FRAME, Frame, FrameReader, ProtocolHeader, frame
from service.amqp.performatives import (
    RECEIVER,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    SaslInit,
)
from service.amqp.types import Symbol
from service.local.event_hubs.access import Grants
from service.local.event_hubs.addresses import open_link
from service.local.event_hubs.consumer import ConsumerLink
from service.local.event_hubs.handshake import Handshake
from service.local.event_hubs.links import Link
from service.local.event_hubs.liveness import Liveness
from service.local.event_hubs.session import OUTGOING_WINDOW, Session, SessionError

if TYPE_CHECKING:
    from service.local.event_hubs.namespace import Namespace

LINGER_SECONDS = 0.1
"""How long a socket stays after a close with an error. Closed at once while the client still sends, its system would
answer with a reset, and the client might never read why."""

CLOSING_SECONDS = 1.0
"""How long a client has to take what was written last before its socket is dropped."""

_log = logging.getLogger(__name__)


class Wire(Protocol):
    """What carries the bytes."""

    def write(self, data: bytes) -> None:
        """Sends bytes, buffering what does not fit."""

    def close(self) -> None:
        """Closes after what is buffered has gone."""

    def abort(self) -> None:
        """Closes at once."""

    def unsent_bytes(self) -> int:
        """How much is buffered."""

    def pause_reading(self) -> None:
        """Takes no more bytes from the client."""

    def resume_reading(self) -> None:
        """Takes bytes again."""


class Connection:
    """The AMQP side of a connection: handshake, sessions, deliveries, heart-beats.

    Whatever bytes come, it ends in the protocol's own way: the right header for a wrong one (2.2), a close with
    amqp:connection:framing-error or amqp:decode-error for a wrong frame.
    """

    def __init__(self, namespace: Namespace, wire: Wire) -> None:
        self.namespace = namespace
        self.grants = Grants(namespace.clock)
        self.sessions: dict[int, Session] = {}
        self.container_id = ""
        self.peer_max_frame_size = 512
        self.partial_bytes = 0
        """What is held of messages that are not whole yet, on all links."""
        self.closed = False
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(namespace.limits.max_frame_size)
        self._handshake = Handshake(namespace.access, self.grants)
        self._opened = False
        self._out: list[bytes] = []
        self._delayed: deque[bytes] = deque()
        self._flushing = self._delivering = self._paused = self._reading_paused = False
        self._expiry: asyncio.TimerHandle | None = None
        self._ending: list[asyncio.TimerHandle] = []
        self._liveness = Liveness(namespace.limits.idle_timeout_seconds, self._on_silence)
        namespace.connections.add(self)

    # ---- bytes in

    def feed(self, data: bytes) -> None:
        """Takes bytes from the client, and acts on every whole frame; passes them over once it has closed."""
        if self.closed:
            return
        self._liveness.heard()
        self._reader.feed(data)
        try:
            while not self.closed and (item := self._reader.next()) is not None:
                self._take(item)
        except AmqpError as error:
            self.close(error)
        except Exception:  # noqa: BLE001 - one client's bytes must not reach the others
            _log.exception("A connection failed on what its client sent.")
            self.close(AmqpError("The server failed on this frame."))
        self.flush()

    def hold(self, size: int) -> None:
        """Counts part of a message; too many half messages at once are not served."""
        self.partial_bytes += size
        if self.partial_bytes > self.namespace.limits.max_partial_bytes:
            raise AmqpError("Too many bytes of messages that are not whole.", RESOURCE_LIMIT_EXCEEDED)

    def lost(self) -> None:
        """The socket is gone: so is everything that hung on it."""
        self.closed = True
        self.namespace.connections.discard(self)
        self._delayed.clear()
        for timer in self._ending:
            timer.cancel()
        self._release()

    def writing_paused(self) -> None:
        """The client reads more slowly than the server writes: deliveries stop."""
        self._paused = True

    def writing_resumed(self) -> None:
        """The client has caught up."""
        self._paused = False
        if self._reading_paused:
            self._reading_paused = False
            self._wire.resume_reading()
        self.schedule_delivery()

    def _take(self, item: ProtocolHeader | Frame) -> None:
        if isinstance(item, ProtocolHeader):
            answer, accepted = self._handshake.on_header(item.raw)
            self.write(answer)
            if not accepted:
                self._finish()
            return
        if not item.body:
            return
        performative, payload = item.open()
        if item.kind == SASL_FRAME or isinstance(performative, SaslInit):
            self.write(self._handshake.on_frame(item, performative))
            self._reader.expect_header()
            if self._handshake.failed:
                self._finish()
        elif not self._opened:
            self._on_open(performative)
        else:
            self._on_performative(item.channel, performative, payload)

    def _on_open(self, performative: Performative) -> None:
        if not isinstance(performative, Open) or not self._handshake.done:
            raise AmqpError("The first frame must be an open.", NOT_ALLOWED)
        self._opened = True
        self.container_id = performative.container_id
        self.peer_max_frame_size = max(performative.max_frame_size or 2**32 - 1, 512)
        self._send_open(performative.hostname)
        if performative.idle_time_out:
            self._liveness.beat(performative.idle_time_out / 1000, lambda: self.write(HEARTBEAT))

    def _on_performative(self, channel: int, performative: Performative, payload: bytes) -> None:
        session = self.sessions.get(channel)
        match performative:
            case Begin():
                self._on_begin(channel, performative)
            case Close():
                self.close()
            case End() if session is not None:
                session.close()
                del self.sessions[channel]
                self.send(channel, End())
            case Detach() | Flow() | Disposition() | End() if session is None:
                pass  # pyamqp sends a detach after the end of its session
            case _ if session is None:
                raise AmqpError(f"There is no session on channel {channel}.", NOT_ALLOWED)
            case _:
                try:
                    session.handle(performative, payload)
                except SessionError as error:
                    session.close()
                    del self.sessions[channel]
                    self.send(channel, End(error.to_wire()))

    def _on_begin(self, channel: int, begin: Begin) -> None:
        limits = self.namespace.limits
        if channel in self.sessions or channel > limits.channel_max:
            raise AmqpError(f"The channel {channel} is in use or above the maximum.", NOT_ALLOWED)
        self.sessions[channel] = Session(self, channel, begin)
        self.send(channel, Begin(channel, 0, limits.session_window, OUTGOING_WINDOW, limits.handle_max))

    def attach(self, session: Session, attach: Attach) -> None:
        """Attaches the link that the client asks for, or tells why not: an attach without terminus, then a detach."""
        as_receiver = attach.role is RECEIVER
        try:
            link: Link | None = open_link(session, attach)
            refusal = None
        except AmqpError as error:
            link, refusal = None, error
        if link is not None:
            session.links[attach.handle] = link
        session.send(
            Attach(
                name=attach.name,
                handle=attach.handle,
                role=not attach.role,
                snd_settle_mode=1 if as_receiver else attach.snd_settle_mode,
                rcv_settle_mode=attach.rcv_settle_mode,
                source=None if refusal and as_receiver else attach.source,
                target=None if refusal and not as_receiver else attach.target,
                initial_delivery_count=0 if as_receiver else None,
                # To receivers the service names no limit (trace in azure-event-hubs-node#186).
                max_message_size=2**64 - 1 if as_receiver else self.namespace.limits.max_message_size,
                properties=attach.properties,
            )
        )
        if link is not None:
            link.opened()
        elif refusal is not None:
            session.refuse(attach.handle, refusal)

    # ---- rights

    def grant(self, resource: str, until: float) -> None:
        """Gives the client a right; when it ends, the links that rest on it are dropped."""
        self.grants.grant(resource, until)
        self._watch_expiry()

    def _watch_expiry(self) -> None:
        until = self.grants.next_expiry()
        if self._expiry is not None:
            self._expiry.cancel()
        if until is not None:
            seconds = max(until - self.namespace.clock(), 0.0) + 0.01
            self._expiry = self._loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        """When a token expires the links of its entity are dropped ("AMQP 1.0 protocol guide", CBS)."""
        for link in list(self.links()):
            if not link.resource.startswith("$") and not self.grants.allows(link.resource):
                link.detach(AmqpError("ExpiredToken: The token is expired.", UNAUTHORIZED_ACCESS))
        self._watch_expiry()

    # ---- bytes out

    def links(self) -> Iterator[Link]:
        """Every link of every session."""
        for session in self.sessions.values():
            yield from session.links.values()

    def send(self, channel: int, performative: Performative) -> None:
        """Writes a performative."""
        self.write(frame(channel, performative))

    def write(self, data: bytes) -> None:
        """Writes bytes with the next flush, which is never later than this turn of the loop."""
        if self.closed:
            return
        self._out.append(data)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Hands to the wire what has gathered."""
        self._flushing = False
        if not self._out:
            return
        data, self._out = b"".join(self._out), []
        if self.namespace.faults.delay_seconds > 0 or self._delayed:
            self._delayed.append(data)
            self._loop.call_later(self.namespace.faults.delay_seconds, self._write_delayed)
            return
        self._wire.write(data)
        if not self._reading_paused and self._wire.unsent_bytes() > self.namespace.limits.max_unread_bytes:
            self._reading_paused = True
            self._wire.pause_reading()

    def _write_delayed(self) -> None:
        if self._delayed:  # nothing is left of them when the socket has gone meanwhile
            self._wire.write(self._delayed.popleft())

    def schedule_delivery(self) -> None:
        """Delivers soon, once for all who ask in this turn of the loop."""
        if not self._delivering and not self.closed:
            self._delivering = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._delivering = False
        if self._paused or self.closed:
            return
        more = False
        for link in list(self.links()):
            if isinstance(link, ConsumerLink) and link.credit > 0:
                more |= link.deliver()
        self.flush()
        if more:
            self.schedule_delivery()

    # ---- life and end

    def close(self, error: AmqpError | None = None) -> None:
        """Ends the connection with the protocol's own words, whatever state it is in."""
        if self.closed:
            return
        if not self._handshake.done:
            # Nothing was agreed yet: the header that would be right, then the end of the socket (2.2).
            self.write(self._handshake.header_wanted)
        else:
            if not self._opened:
                self._send_open(None)
            self.send(0, Close(error.to_wire() if error else None))
        self._finish(LINGER_SECONDS if error else 0.0)

    def abort(self) -> None:
        """Drops the socket without a word, as a broken network does."""
        self.closed = True
        self._wire.abort()

    def _finish(self, linger_seconds: float = 0.0) -> None:
        """Closes the socket once what was written has gone, or after CLOSING_SECONDS in any case."""
        self.flush()
        self.closed = True
        self._release()
        wait = max(linger_seconds, self.namespace.faults.delay_seconds if self._delayed else 0.0)
        self._ending = [
            self._loop.call_later(wait, self._wire.close),
            self._loop.call_later(wait + CLOSING_SECONDS, self._wire.abort),
        ]

    def _release(self) -> None:
        """Lets go of links and clocks; what they held is free for others at once."""
        self._liveness.stop()
        if self._expiry is not None:
            self._expiry.cancel()
        for session in list(self.sessions.values()):
            session.close()
        self.sessions.clear()

    def _send_open(self, hostname: str | None) -> None:
        limits = self.namespace.limits
        self.send(
            0,
            Open(
                container_id="sluice-event-hubs",
                hostname=hostname,
                max_frame_size=limits.max_frame_size,
                channel_max=limits.channel_max,
                idle_time_out=int(limits.idle_timeout_seconds * 1000),
                properties={Symbol("product"): "sluice"},
            ),
        )

    def _on_silence(self) -> None:
        allowed = int(self.namespace.limits.idle_timeout_seconds * 1000)
        # The text is the service's (azure-sdk-for-python#29961).
        self.close(
            AmqpError(
                f"The connection was inactive for more than the allowed {allowed} milliseconds and is closed by "
                "container 'sluice-event-hubs'.",
                CONNECTION_FORCED,
            )
        )
