import pytest
import structlog


@pytest.fixture(autouse=True)
def _quiet_logs():
    """Thousands of runs say nothing; a failing one is run again by its seed."""
    with structlog.testing.capture_logs():
        yield
