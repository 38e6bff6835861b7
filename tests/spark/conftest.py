"""One Spark session and one local stack for all Spark tests: both take long to start."""

import time

import pytest

from service.local.event_hubs.capture import CaptureSettings
from service.local.stack import StackOptions
from tests.spark.world import World
from tests.support.stack import RunningStack

FAST = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.memory": "1g",
    # Most of a test's time is the JVM's compiler working on code that runs once.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Small data: plans that adapt and code that is compiled cost more than they save."""


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/spark/" in str(item.path) or "tests/bench/spark/" in str(item.path):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def spark():
    from service.jobs import session
    from service.jobs.options import EngineOptions

    started = session.start(EngineOptions(master="local[2]"), FAST)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def shared_stack(tmp_path_factory):
    """The stack, with Capture of every hub into the container `capture`, written when a test asks for it."""
    with RunningStack(StackOptions(partitions=1), tmp_path_factory.mktemp("stack")) as stack:
        settings = CaptureSettings(
            stack.servers.azurite.connection_string, "capture", interval_seconds=1e9, skip_empty_archives=True
        )
        stack.capture_at = time.time()
        stack.servers.event_hubs.namespace.clock, real = (
            lambda: stack.capture_at,
            stack.servers.event_hubs.namespace.clock,
        )
        stack.capture = stack.call(lambda: stack.servers.event_hubs.start_capture(settings))
        stack.servers.event_hubs.namespace.clock = real
        yield stack


@pytest.fixture
def make_world(shared_stack, tmp_path):
    return lambda **more: World(shared_stack, tmp_path, **more)


@pytest.fixture
def world(make_world):
    return make_world()
