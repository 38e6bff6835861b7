"""The fixtures of the Spark tests, with Spark as the image `spark` has it: nothing tuned, and its jars fetched."""

import pytest

from tests.spark.conftest import make_world, shared_stack, world  # noqa: F401 - fixtures
from tests.spark.jars import packages


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/bench/spark/" in str(item.path):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.bench)
            item.add_marker(pytest.mark.timeout(1800))
            # Of Capture's files, which the local stack sends.
            item.add_marker(pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning"))


@pytest.fixture(scope="session")
def spark():
    from service.jobs import session
    from service.jobs.options import EngineOptions

    more = {"spark.driver.memory": "3g", "spark.jars.packages": ",".join(packages())}
    started = session.start(EngineOptions(master="local[2]"), more)
    yield started
    started.stop()
