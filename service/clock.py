"""Time, from one place.

`uptime` never goes back and also counts while the machine or container is suspended, so a lease's deadline
computed from it cannot be slept through. Everything else that waits uses the event loop's clock,
which a simulation replaces as a whole; there `uptime` is replaced through `Clock` as well.
"""

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds from an arbitrary origin, never going back."""

# Linux: CLOCK_MONOTONIC stops while suspended, CLOCK_BOOTTIME does not. macOS: CLOCK_MONOTONIC goes on by itself.
_SUSPEND_AWARE = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def uptime() -> float:
    """Seconds since boot, suspended time included."""
    return time.clock_gettime(_SUSPEND_AWARE)
