"""Signs of life (2.4.5): heart-beats for the client, and an end for a client that has gone silent."""

import asyncio
from collections.abc import Callable


class Liveness:
    """The two clocks of a connection. `silent` is called when nothing came for as long as the server allows."""

    def __init__(self, idle_timeout_seconds: float, silent: Callable[[], None]) -> None:
        self._idle_timeout_seconds = idle_timeout_seconds
        self._silent = silent
        self._loop = asyncio.get_running_loop()
        self._last_heard = self._loop.time()
        self._watching = self._loop.call_later(idle_timeout_seconds, self._watch)
        self._beating: asyncio.TimerHandle | None = None

    def heard(self) -> None:
        """Something came from the client."""
        self._last_heard = self._loop.time()

    def beat(self, client_timeout_seconds: float, send: Callable[[], None]) -> None:
        """Sends at least twice as often as the client needs to hear something."""
        interval = max(client_timeout_seconds / 2, 0.01)

        def once() -> None:
            send()
            self._beating = self._loop.call_later(interval, once)

        self._beating = self._loop.call_later(interval, once)

    def stop(self) -> None:
        """Both clocks stop."""
        self._watching.cancel()
        if self._beating is not None:
            self._beating.cancel()

    def _watch(self) -> None:
        left = self._last_heard + self._idle_timeout_seconds - self._loop.time()
        if left > 0:
            self._watching = self._loop.call_later(left, self._watch)
        else:
            self._silent()
