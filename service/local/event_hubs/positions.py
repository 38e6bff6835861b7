"""Where a receiver starts: the selector in its source's filter (SDK: `_utils.event_position_selector`)."""

import re
from dataclasses import dataclass
from enum import Enum, auto

from service.amqp.errors import INVALID_FIELD, AmqpError
from service.amqp.types import Described


class By(Enum):
    """What a position counts."""

    OFFSET = auto()
    SEQUENCE = auto()
    TIME = auto()
    LATEST = auto()


@dataclass(frozen=True, slots=True)
class StartPosition:
    """A place in a partition; not `inclusive` means the event there is not wanted itself."""

    by: By
    value: int = 0
    inclusive: bool = False


EARLIEST = StartPosition(By.OFFSET, -1)
LATEST = StartPosition(By.LATEST)

_SELECTOR = re.compile(r"^\s*amqp\.annotation\.(x-opt-[a-z-]+)\s*(>=|>)\s*'?([^']*?)'?\s*$")
_BY_ANNOTATION = {
    "x-opt-offset": By.OFFSET,
    "x-opt-sequence-number": By.SEQUENCE,
    "x-opt-enqueued-time": By.TIME,
    "x-opt-enqueuedtimeutc": By.TIME,
}


def start_position(source: Described | None) -> StartPosition:
    """The position that an attach's source asks for.

    Without a filter it is the beginning: the SDK's live tests attach so after they have sent, and expect the events.
    """
    expression = _selector(source)
    if expression is None:
        return EARLIEST
    match = _SELECTOR.match(expression)
    by = _BY_ANNOTATION.get(match[1]) if match else None
    if match is None or by is None:
        raise _invalid(expression)
    if by is By.OFFSET and match[3] == "@latest":
        return LATEST
    try:
        value = int(match[3])
    except ValueError:
        raise _invalid(expression) from None
    return StartPosition(by, value, inclusive=match[2] == ">=")


def _selector(source: Described | None) -> str | None:
    """Python describes the filter by a symbol, JS by the number 0x468C00000004: both stand under the same key."""
    fields = source.value if source is not None else None
    filters = fields[7] if isinstance(fields, list) and len(fields) > 7 else None
    for name, value in filters.items() if isinstance(filters, dict) else ():
        if "selector" in str(name):
            inner = value.value if isinstance(value, Described) else value
            return inner.decode(errors="replace") if isinstance(inner, bytes) else str(inner)
    return None


def _invalid(expression: str) -> AmqpError:
    # The text is the service's (azure-sdk-for-net#49318).
    return AmqpError(f"The filter '{expression[:200]}' is not a valid amqp filter for EventHub entities", INVALID_FIELD)
