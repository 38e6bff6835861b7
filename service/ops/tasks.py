"""What still runs in a process that should have ended: for the log, and for who has to find out why."""

import asyncio
from collections.abc import Iterator
from typing import Any


def unfinished() -> list[str]:
    """Each task that runs now, but the one that asks, with the calls in which it waits, innermost last."""
    mine = asyncio.current_task()
    return sorted(f"{task.get_name()}: {' > '.join(_calls(task))}" for task in asyncio.all_tasks() if task is not mine)


def _calls(task: asyncio.Task[Any]) -> Iterator[str]:
    awaited: Any = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield f"{awaited.__qualname__}:{frame.f_lineno}"
        awaited = awaited.cr_await
