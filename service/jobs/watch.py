"""Gives way to the live consumer: while its lag rises, every task of the job is held back."""

import asyncio
import threading
import time
from types import TracebackType
from typing import Self

import structlog

from service import options
from service.config import Settings
from service.errors import SluiceError
from service.jobs import live
from service.jobs.ledger import Ledger, LedgerBlob
from service.source.connect import connect_blobs

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
"""As often as checkpoints are written."""
RISES = 3
"""Lag that has risen so many times in a row is no accident of when the checkpoint was written."""


class Rising:
    """Whether a figure rises. Pure."""

    def __init__(self, rises: int = RISES) -> None:
        self._rises = rises
        self._last: int | None = None
        self._count = 0

    def note(self, value: int) -> bool:
        """Another value; whether the last ones rose, each over the one before."""
        self._count = self._count + 1 if self._last is not None and value > self._last else 0
        self._last = value
        return self._count >= self._rises


class Watch:
    """Looks at the live consumer every few seconds from a thread of the driver's."""

    def __init__(self, settings: Settings, ledger: Ledger | None, *, enabled: bool) -> None:
        self._settings = settings
        self._ledger = ledger
        self._look_seconds = LOOK_SECONDS
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True) if enabled and ledger is not None else None
        self.held_seconds = 0.0

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        rising = Rising()
        while not self._stop.wait(self._look_seconds):
            began = time.monotonic()
            try:
                lag = live.look(self._settings).lag
                if rising.note(lag):
                    log.warning("the live consumer falls behind; the job waits", lag=lag)
                    # Until well after the next look, which may take as long as this one did.
                    took = time.monotonic() - began
                    asyncio.run(self._hold(time.time() + 2 * (self._look_seconds + took)))
                    self.held_seconds += self._look_seconds + took
            except SluiceError as fault:  # it is looked at again soon; the guard keeps the job harmless meanwhile
                log.warning("the live consumer cannot be seen", fault=str(fault))

    async def _hold(self, until: float) -> None:
        assert self._ledger is not None  # noqa: S101 - there is no thread without
        blobs = connect_blobs(self._ledger.container, **options.blob_account(self._settings))
        try:
            await LedgerBlob(blobs, self._ledger.name).change(lambda page: page.hold(until))
        finally:
            await blobs.close()
