"""Runs in blob storage: a plan under a run id, and a mark for each unit that is done.

A mark is an object of its own, so nothing is ever appended to or shared; an interrupted run is its plan less its marks.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson

from service import options
from service.config import Settings
from service.errors import Retry, SetupFault
from service.jobs.faults import BadInput
from service.jobs.outcomes import Tally
from service.jobs.plan import Plan, Unit
from service.source.blobs import Blobs, Conflict
from service.source.connect import connect_blobs

T = TypeVar("T")
_TRIES = 5


def jobs_container(settings: Settings) -> str:
    """Where runs and ledgers lie: beside leases and checkpoints, never among them."""
    return f"{settings.blob_container}-jobs"


@dataclass(frozen=True, slots=True)
class Run:
    """One run."""

    id: str
    plan: Plan
    done: dict[str, Tally]
    """By unit: what became of its records."""

    def open_units(self) -> list[Unit]:
        """What is left, in order."""
        return [unit for unit in self.plan.units if unit.name not in self.done]


class Runs:
    """All runs of a storage account's jobs container. Every call stands by itself: a driver makes few."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.container = jobs_container(settings)

    def begin(self, plan: Plan, run_id: str = "") -> Run:
        """Store a new plan."""
        run_id = run_id or f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}"

        async def store(blobs: Blobs) -> None:
            await blobs.make()
            await blobs.put(f"runs/{run_id}/plan.json", plan.encode(), {"digest": plan.digest}, etag=None)

        self._call(store)
        return Run(run_id, plan, {})

    def find(self, run_id: str) -> Run | None:
        """A run by its id."""

        async def load(blobs: Blobs) -> Run | None:
            blob = await blobs.get(f"runs/{run_id}/plan.json")
            if blob is None:
                return None
            done = {}
            for listed in await blobs.list(f"runs/{run_id}/done/"):
                mark = await blobs.get(listed.name)
                if mark is not None:
                    done[listed.name.rsplit("/", 1)[1].removesuffix(".json")] = Tally.decode(orjson.loads(mark.body))
            return Run(run_id, Plan.decode(blob.body), done)

        return self._call(load)

    def unfinished(self, digest: str) -> Run | None:
        """The newest run of this digest that has open units."""

        async def names(blobs: Blobs) -> list[str]:
            plans = [blob for blob in await blobs.list("runs/") if blob.metadata.get("digest") == digest]
            return sorted((blob.name.split("/")[1] for blob in plans), reverse=True)

        for run_id in self._call(names):
            run = self.find(run_id)
            if run is not None and run.open_units():
                return run
        return None

    def mark(self, run: Run, unit: Unit, tally: Tally) -> None:
        """The unit is done: every one of its writes was acknowledged."""

        async def put(blobs: Blobs) -> None:
            body = orjson.dumps(tally.encode())
            try:
                await blobs.put(f"runs/{run.id}/done/{unit.name}.json", body, {}, etag=None)
            except Conflict:  # an earlier try that got no answer, or another driver of the same run
                return

        self._call(put)
        run.done[unit.name] = tally

    def _call(self, work: Callable[[Blobs], Awaitable[T]]) -> T:
        return asyncio.run(self._try(work))

    async def _try(self, work: Callable[[Blobs], Awaitable[T]]) -> T:
        blobs = connect_blobs(self.container, **options.blob_account(self._settings))
        try:
            for left in reversed(range(_TRIES)):
                try:
                    return await work(blobs)
                except Retry as fault:
                    if not left:
                        raise SetupFault(str(fault)) from None
                    await asyncio.sleep(fault.after_seconds or 1.0)
            raise AssertionError
        finally:
            await blobs.close()


def check_digest(run: Run, digest: str) -> None:
    """Raises BadInput where a run was begun with other settings."""
    if run.plan.digest != digest:
        raise BadInput(
            f"run {run.id} was begun with other settings or options (digest {run.plan.digest}, now {digest}): what it"
            " has done and what is left would not fit together. Begin another with a new --run-id."
        )


def digest_parts(settings: Settings) -> dict[str, Any]:
    """The settings that decide what is written, and where; no secrets."""
    endpoint = settings.cosmos_endpoint or ""
    if settings.cosmos_connstring is not None:
        endpoint = settings.cosmos_connstring.get_secret_value().partition("AccountKey")[0]
    return {
        "cosmos": [endpoint, settings.cosmos_database, settings.cosmos_container],
        "hub": [settings.eventhub_namespace, settings.eventhub_name],
        "documents": [
            settings.document_id,
            settings.document_stamp,
            settings.document_transform,
            settings.document_body,
            settings.document_delete,
        ],
    }
