"""SIGTERM, SIGINT and SIGHUP as events of the loop."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stop_signals(reload: Callable[[], None] | None = None) -> Iterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set. SIGHUP calls `reload`."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    handlers: dict[signal.Signals, Callable[[], None]] = {signal.SIGTERM: stop.set, signal.SIGINT: stop.set}
    if reload is not None:
        handlers[signal.SIGHUP] = reload
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield stop
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
