"""Parts shared by all tests: Azurite, and the rule that a skip must stand on the written list."""

import asyncio
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from service.local.azurite import Azurite

# The same examples in every run, and no clock: a busy machine is no failure. `make proof` looks for new examples.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("searching", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

SKIPS = {
    line.strip()
    for line in (Path(__file__).parent / "allowed_skips.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
}
"""Node ids (or their prefixes) that may be skipped, with the reason in a comment above each."""


def pytest_collection_modifyitems(items):
    """Which tests stay together when several processes run them: a file's, and all that share the Spark session."""
    for item in items:
        path = Path(item.nodeid.partition("::")[0])
        if "integration" in path.parts and path.parent.name == "integration":
            continue  # whole processes on stacks of their own: each can run anywhere
        item.add_marker(pytest.mark.xdist_group("spark" if "spark" in path.parts else str(path)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and not any(item.nodeid.startswith(s) for s in SKIPS):
        report.outcome = "failed"
        report.longrepr = f"skipped, and not on tests/allowed_skips.txt: {item.nodeid}\n{report.longrepr}"
    return report


@pytest.fixture(scope="session")
def azurite() -> Iterator[str]:
    """The connection string of one Azurite for the whole session. Make containers of your own in it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = Azurite()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    yield server.connection_string
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def blob_container_name() -> str:
    """A name that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}"
