"""Progress of long work, and the progress line of the original sample."""

import math
import sys
import time
from typing import Self

from rich import progress as bars
from rich.console import Console

PLAIN_SECONDS = 5.0
"""How often a line is printed where there is no terminal."""


class Progress:
    """A bar on a terminal, else a line every few seconds. On standard error, so that answers can be piped."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._said_at = time.monotonic()
        self._bar: bars.Progress | None = None
        self._task: bars.TaskID | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = bars.Progress(
                bars.TextColumn("{task.description}"),
                bars.BarColumn(),
                bars.MofNCompleteColumn(),
                bars.TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, count)
        elif time.monotonic() - self._said_at >= PLAIN_SECONDS:
            self._said_at = time.monotonic()
            of = f" of {self._total}" if self._total else ""
            print(f"{self._done}{of} {self._what}", file=sys.stderr, flush=True)  # noqa: T201 - progress is for people


def progress_line(*, successes: int, failures: int, retries: int, seconds: float, ru: float, backlog: int) -> str:
    """`{successes} successes, {failures} failures, ...`: the words of the original sample, so that eyes find them."""
    average = math.ceil(ru / successes) if successes else 0
    return (
        f"{successes} successes, {failures} failures, {retries} retries after {seconds:.0f} seconds, "
        f"avg RU cost is {average}, backlog is {backlog}."
    )
