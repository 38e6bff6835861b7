"""An event loop with a virtual clock and a seeded order: the same seed gives the same run, in no time.

Time stands still while anything is ready to run and jumps to the next timer when nothing is. Of the callbacks that are
ready together, a seeded draw says which goes first, so many seeds try many interleavings. There are no sockets,
threads or processes on it: whoever waits for one waits for ever, which ends the run with `Deadlock`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(AssertionError):
    """Nothing is ready and no timer is set, yet the main task waits."""


class OutOfTime(AssertionError):
    """The run went on beyond its limit of virtual time."""


def simulate(
    main: Callable[[], Coroutine[Any, Any, T]], seed: int, *, seconds: float = 86_400.0, start: float = 1_000.0
) -> T:
    """Run `main()` to its end. A failure names the seed, so that it can be run again."""
    try:
        with asyncio.Runner(loop_factory=lambda: SimulatedLoop(seed, start, start + seconds)) as runner:
            return runner.run(main())
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop. `random` is seeded too, for whatever the run draws."""

    def __init__(self, seed: int, start: float = 1_000.0, end: float = float("inf")) -> None:
        super().__init__()
        self.random = Random(seed)
        self.now = start
        self._end = end
        self._order = Random(~seed)
        self._selector = self  # the base class waits through its selector: see `select`
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Virtual seconds."""
        return self.now

    def select(self, timeout: float | None) -> list[Any]:
        """Where a real loop would sleep, jump."""
        if timeout is None:
            raise Deadlock("nothing is left to run")
        if timeout > 0:
            # The next timer is known exactly; adding the difference to `now` may round to just before it.
            self.now = max(self.now + timeout, self._scheduled[0].when() if self._scheduled else 0.0)
            if self.now > self._end:
                raise OutOfTime(f"still running at {self.now:.1f}")
        return []

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        raise RuntimeError("there are no threads in a simulation")

    def _run_once(self) -> None:
        if len(self._ready) > 1:
            ready = list(self._ready)
            self._order.shuffle(ready)
            self._ready.clear()
            self._ready.extend(ready)
        super()._run_once()

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass
