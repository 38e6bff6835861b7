"""Links: what is common to all, and those of the request-response nodes `$cbs` and `$management`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from service.amqp.errors import MESSAGE_SIZE_EXCEEDED, RESOURCE_LIMIT_EXCEEDED, AmqpError
from service.amqp.messages import Message
from service.amqp.performatives import MAX_UINT, Detach, Disposition, Flow, Transfer
from service.amqp.types import Described, ULong
from service.local.event_hubs.delivery import transfer_frames

if TYPE_CHECKING:
    from service.local.event_hubs.connection import Connection
    from service.local.event_hubs.session import Session

ACCEPTED = Described(ULong(0x24), [])
MAX_WAITING_REPLIES = 256


class Link:
    """One end of a link. `resource` is what the client needs a right to."""

    def __init__(self, session: Session, handle: int, name: str, resource: str) -> None:
        self.session = session
        self.handle = handle
        self.name = name
        self.resource = resource
        self.attached = True

    @property
    def connection(self) -> Connection:
        """The connection that carries this link."""
        return self.session.connection

    def detach(self, error: AmqpError | None = None) -> None:
        """Takes the link away from the client, for this reason."""
        if self.attached:
            self.session.forget(self, awaiting_reply=True)
            self.session.send(Detach(self.handle, closed=True, error=error.to_wire() if error else None))

    def opened(self) -> None:
        """Called once the client has been told that the link is attached."""

    def closed(self) -> None:
        """Called once the link is gone, whoever took it away."""

    def on_flow(self, flow: Flow) -> None:
        """The client's view of the link changed."""

    def on_transfer(self, transfer: Transfer, payload: bytes) -> None:
        """The client sent a message, or part of one; only IncomingLink takes them."""
        del transfer, payload
        self.detach(AmqpError("The client sent a message on a link that it receives on."))


class OutgoingLink(Link):
    """A link on which the server sends: it counts the client's credit (2.6.7)."""

    def __init__(self, session: Session, handle: int, name: str, resource: str) -> None:
        super().__init__(session, handle, name, resource)
        self.credit = 0
        self.delivery_count = 0

    def on_flow(self, flow: Flow) -> None:
        """Takes new credit, delivers, and with `drain` gives up what is left."""
        if flow.link_credit is not None:
            unseen = (self.delivery_count - (flow.delivery_count or 0)) & MAX_UINT
            self.credit = max(0, flow.link_credit - unseen)
        if flow.drain:
            self.drain()
            self.delivery_count = (self.delivery_count + self.credit) & MAX_UINT
            self.credit = 0
            self.send_flow(drain=True)
            return
        self.connection.schedule_delivery()
        if flow.echo:
            self.send_flow()

    def drain(self) -> None:
        """Delivers what there is, before credit is given up."""

    def send_flow(self, *, drain: bool = False) -> None:
        """Tells the client how the server sees the link."""
        self.session.send_flow(self.handle, self.delivery_count, self.credit, drain=drain)


class IncomingLink(Link):
    """A link on which the client sends: it grants credit, and puts messages of several frames together."""

    def __init__(self, session: Session, handle: int, name: str, resource: str) -> None:
        super().__init__(session, handle, name, resource)
        self.credit = 0
        self.delivery_count = 0
        self._parts = bytearray()
        self._first: Transfer | None = None

    def opened(self) -> None:
        """Grants the first credit."""
        self._grant()

    def closed(self) -> None:
        """Gives back the room of a message that will not be completed."""
        self.connection.partial_bytes -= len(self._parts)
        self._parts.clear()

    def on_flow(self, flow: Flow) -> None:
        """A sender's flow is a wish to know; pyamqp sends one after every attach."""
        if flow.echo:
            self.session.send_flow(self.handle, self.delivery_count, self.credit)

    def on_transfer(self, transfer: Transfer, payload: bytes) -> None:
        """Takes a part; with the last one, the message."""
        first = self._first = self._first or transfer
        limits = self.connection.namespace.limits
        size = len(self._parts) + len(payload)
        if size > limits.max_message_size:
            # The text is the service's, as logged by clients of all languages.
            self.detach(
                AmqpError(
                    f"The received message (delivery-id:{first.delivery_id}, size:{size} bytes) exceeds the limit "
                    f"({limits.max_message_size} bytes) currently allowed on the link.",
                    MESSAGE_SIZE_EXCEEDED,
                )
            )
            return
        if transfer.more and not transfer.aborted:
            self._parts += payload
            self.connection.hold(len(payload))
            return
        message = bytes(self._parts) + payload if self._parts else payload
        self.connection.partial_bytes -= len(self._parts)
        self._parts.clear()
        self._first = None
        self.delivery_count = (self.delivery_count + 1) & MAX_UINT
        self.credit -= 1
        if not transfer.aborted:
            self.on_message(message, first.message_format or 0, self._settler(first, transfer))
        if self.attached and self.credit <= limits.link_credit // 2:
            self._grant()

    def on_message(self, message: bytes, message_format: int, settle: Callable[[object], None]) -> None:
        """A whole message came; `settle` tells the client the outcome."""
        raise NotImplementedError

    def _settler(self, first: Transfer, last: Transfer) -> Callable[[object], None]:
        delivery_id = first.delivery_id
        if first.settled or last.settled or delivery_id is None:
            return lambda _outcome: None

        def settle(outcome: object) -> None:
            if self.attached:
                # The role is that of the receiver: this end (2.7.6).
                self.session.send(
                    Disposition(role=True, first=delivery_id, last=delivery_id, settled=True, state=outcome)
                )

        return settle

    def _grant(self) -> None:
        self.credit = self.connection.namespace.limits.link_credit
        self.session.send_flow(self.handle, self.delivery_count, self.credit)


class RequestLink(IncomingLink):
    """Where requests to a node come in; `answer` makes the reply."""

    def __init__(
        self, session: Session, handle: int, name: str, node: str, answer: Callable[[Message], Message]
    ) -> None:
        super().__init__(session, handle, name, node)
        self.node = node
        self._answer = answer

    def on_message(self, message: bytes, message_format: int, settle: Callable[[object], None]) -> None:
        """Answers on the reply link that the request names, or else on the node's only one."""
        del message_format
        request = Message.decode(message)
        settle(ACCEPTED)
        replies = [link for link in self.connection.links() if isinstance(link, ReplyLink) and link.node == self.node]
        named = [link for link in replies if request.reply_to is not None and link.address == request.reply_to]
        target = next(iter(named or replies), None)
        if target is not None:
            target.reply(self._answer(request).encode())


class ReplyLink(OutgoingLink):
    """Where the replies of a node go out."""

    def __init__(self, session: Session, handle: int, name: str, node: str, address: object) -> None:
        super().__init__(session, handle, name, node)
        self.node = node
        self.address = address
        self._waiting: deque[bytes] = deque()

    def reply(self, message: bytes) -> None:
        """Sends a reply, at once or when the client gives credit."""
        if len(self._waiting) >= MAX_WAITING_REPLIES:
            self.detach(AmqpError("Too many replies wait for credit.", RESOURCE_LIMIT_EXCEEDED))
            return
        self._waiting.append(message)
        self.drain()

    def on_flow(self, flow: Flow) -> None:
        """Credit may free replies that wait."""
        super().on_flow(flow)
        self.drain()

    def drain(self) -> None:
        """Sends what waits, as far as the credit goes."""
        while self._waiting and self.credit > 0:
            message = self._waiting.popleft()
            self.session.send_transfers(self.handle, transfer_frames(self.session, self.handle, message))
            self.credit -= 1
            self.delivery_count = (self.delivery_count + 1) & MAX_UINT
