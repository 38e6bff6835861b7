"""What all pumps of a host share."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any

from service.clock import Clock
from service.source.events import Hub
from service.source.faults import Faults
from service.source.handler import HandlerFactory
from service.source.hub import HubClient
from service.source.position import PositionPolicy


@dataclass(frozen=True, slots=True)
class PumpOptions:
    """How a held partition is kept and read."""

    lease_seconds: float = 30.0
    renew_seconds: float = 10.0
    stall_seconds: float = 30.0
    """A partition that lags and delivers nothing for this long gets a new receiver."""
    empty_calls: bool = False
    """Whether the handler is also called with no events after the receiver's wait."""
    position: PositionPolicy = PositionPolicy()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all pumps of a host share."""

    hub: Hub
    client: HubClient
    make_handler: HandlerFactory
    options: PumpOptions
    clock: Clock
    random: Random
    faults: Faults
    clean_up: Callable[[Coroutine[Any, Any, None]], None]
    """Finishes something in a task that the processor owns, and waits for at its end."""
