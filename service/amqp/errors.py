"""What can be wrong with bytes or with a peer, and the conditions that name it on the wire.

AmqpError
├── DecodeError        bytes that are no AMQP value
├── FramingError       bytes that are no frame
└── EncodeError        a Python object that has no AMQP encoding
"""

from service.amqp.types import Described, Symbol, ULong

# Conditions of the standard (2.8.15 to 2.8.18).
INTERNAL_ERROR = "amqp:internal-error"
NOT_FOUND = "amqp:not-found"
UNAUTHORIZED_ACCESS = "amqp:unauthorized-access"
DECODE_ERROR = "amqp:decode-error"
RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded"
NOT_ALLOWED = "amqp:not-allowed"
INVALID_FIELD = "amqp:invalid-field"
NOT_IMPLEMENTED = "amqp:not-implemented"
CONNECTION_FORCED = "amqp:connection:forced"
FRAMING_ERROR = "amqp:connection:framing-error"
WINDOW_VIOLATION = "amqp:session:window-violation"
HANDLE_IN_USE = "amqp:session:handle-in-use"
UNATTACHED_HANDLE = "amqp:session:unattached-handle"
DETACH_FORCED = "amqp:link:detach-forced"
MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded"
STOLEN = "amqp:link:stolen"


class AmqpError(Exception):
    """A fault with the condition and description that a peer is told."""

    condition = INTERNAL_ERROR

    def __init__(self, description: str, condition: str | None = None) -> None:
        super().__init__(description)
        self.description = description
        if condition is not None:
            self.condition = condition

    def to_wire(self) -> Described:
        """The `error` type of the standard (2.8.14), for detach, end, close and rejected."""
        return Described(ULong(0x1D), [Symbol(self.condition), self.description, None])


class DecodeError(AmqpError):
    """Bytes that are no AMQP value, or a value of the wrong type."""

    condition = DECODE_ERROR


class FramingError(AmqpError):
    """Bytes that are no AMQP frame, or a frame larger than was agreed."""

    condition = FRAMING_ERROR


class EncodeError(AmqpError):
    """A Python object that has no AMQP encoding."""
