"""A browser, a stack, and processes to look at."""

import asyncio
import copy
import json
import os
import threading
from typing import Self

import pytest

from service.local.stack import StackOptions
from service.ops.http import OpsPages
from tests.support.chromium import Chromium
from tests.support.stack import Process, RunningStack, until

IMAGE = "<img src=x onerror=hit=1>"
"""Text that a page which took it for HTML would act upon."""
TRANSFORM = f"""
def transform(document):
    if document.get("hostile"):
        raise type({IMAGE!r}, (Exception,), {{}})
    return document
"""


@pytest.fixture(scope="module")
def browser():
    with Chromium() as running:
        yield running


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    with RunningStack(StackOptions(partitions=4), tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture(scope="module")
def publish(stack):
    """Append documents with these ids to a partition of the hub."""

    def append(partition, ids, **fields):
        bodies = [json.dumps({"id": each, "key": each, **fields}).encode() for each in ids]
        stack.call(stack.hub.append, str(partition), bodies)

    return append


@pytest.fixture(scope="module")
def start(stack, tmp_path_factory):
    """Start `sluice run`, in a consumer group of its own where one is named; it does not outlive the module."""
    running = []
    folder = tmp_path_factory.mktemp("run")
    (folder / "hostile_transform.py").write_text(TRANSFORM)

    def run(group="$Default", port=None, **settings):
        if group != "$Default":
            stack.call(stack.hub.add_consumer_group, group)
        settings = {
            "EVENTHUB_CONSUMERGROUP": group,
            "CHECKPOINT_INTERVAL": "500ms",
            "COSMOS_BATCH_WAIT": "100ms",
            "COSMOS_RETRY_WAIT": "3s",
            "LEASE_DURATION": "15s",
            "LEASE_RENEW": "5s",
            "DOCUMENT_TRANSFORM": "hostile_transform:transform",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH")))),
            **({"HTTP_PORT": str(port)} if port else {}),
            **{name: str(value) for name, value in settings.items()},
        }
        process = Process("run", "--env-file", str(stack.env_file), folder=folder, settings=settings)
        process.port = port or process.port
        running.append(process)
        until(process.status, 60, "status", process=process)
        return process

    yield run
    for process in running:
        process.__exit__()


class Fed:
    """The ops pages as the service serves them, with a status that the test decides."""

    def __init__(self, status: dict) -> None:
        self.status = copy.deepcopy(status)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)
        self._loop.close()

    async def _serve(self) -> None:
        async def status():
            return self.status

        async def metrics():
            return b"", "text/plain"

        pages = OpsPages(status=status, not_ready=lambda: self.status["not_ready"], metrics=metrics)
        async with pages.serving("127.0.0.1", 0) as self.port:
            self._ready.set()
            await self._stop.wait()


@pytest.fixture
def feed(spoken):
    """Ops pages with what a real process said, to be changed."""
    with Fed(spoken) as fed:
        yield fed


@pytest.fixture(scope="module")
def spoken(consumer):
    """What a real process says of itself at rest."""
    return consumer.status()


@pytest.fixture(scope="module")
def consumer(start, publish):
    """A process that has committed 100 records of each partition, and has three dead letters with a hostile reason."""
    for partition in range(4):
        publish(partition, [f"{partition}-{number}" for number in range(100)])
    publish(1, ["a", "b", "c"], hostile=True)
    process = start()
    until(lambda: (process.records()["committed"], process.records()["failed"]) == (400, 3), 60, "all", process=process)
    until(lambda: [row["lag"] for row in process.status()["partitions"]] == [0] * 4, 20, "at rest", process=process)
    return process
