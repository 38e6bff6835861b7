"""The first words of a connection: protocol headers and SASL (5.3)."""

from service.amqp.errors import NOT_ALLOWED, AmqpError
from service.amqp.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, Frame, sasl_frame
from service.amqp.performatives import Performative, SaslInit, SaslMechanisms, SaslOutcome
from service.amqp.types import Array, Symbol
from service.local.event_hubs.access import Access, Grants

MECHANISMS = ("ANONYMOUS", "PLAIN", "MSSBCBS")
"""What the service offers: the SDKs take ANONYMOUS or MSSBCBS and show their tokens to $cbs later."""

_OK, _REFUSED = 0, 1


class Handshake:
    """Answers headers and SASL until AMQP itself may begin.

    SASL PLAIN with a key's name and the key opens the whole namespace; the other mechanisms open nothing yet.
    """

    def __init__(self, access: Access, grants: Grants) -> None:
        self._access = access
        self._grants = grants
        self._in_sasl = False
        self._sasl_done = False
        self.done = False
        self.failed = False

    @property
    def header_wanted(self) -> bytes:
        """The header that a client should have sent."""
        return AMQP_HEADER if self._sasl_done else SASL_HEADER

    def on_header(self, header: bytes) -> tuple[bytes, bool]:
        """What to answer to a protocol header, and whether the connection goes on."""
        if header == AMQP_HEADER and not self._in_sasl:
            self.done = True
            return AMQP_HEADER, True
        if header == SASL_HEADER and not self._sasl_done:
            self._in_sasl = True
            offered = Array(Symbol(name) for name in MECHANISMS)
            return SASL_HEADER + sasl_frame(SaslMechanisms(offered)), True
        return self.header_wanted, False

    def on_frame(self, frame: Frame, performative: Performative) -> bytes:
        """What to answer to a SASL frame."""
        if not self._in_sasl or frame.kind != SASL_FRAME or not isinstance(performative, SaslInit):
            raise AmqpError("A SASL frame where there is no SASL.", NOT_ALLOWED)
        self._in_sasl = False
        if self._accepts(performative):
            self._sasl_done = True
            return sasl_frame(SaslOutcome(_OK, b""))
        self.failed = True
        return sasl_frame(SaslOutcome(_REFUSED, b""))

    def _accepts(self, init: SaslInit) -> bool:
        if init.mechanism != "PLAIN":
            return init.mechanism in MECHANISMS
        # RFC 4616: authorization identity, name and password, each behind a null.
        _, _, credentials = (init.initial_response or b"").partition(b"\0")
        name, _, key = credentials.partition(b"\0")
        if not self._access.check_key(name.decode(errors="replace"), key.decode(errors="replace")):
            return False
        self._grants.grant("", float("inf"))
        return True
