import logging

import pytest


@pytest.fixture(autouse=True)
def _quiet_sdk():
    """The SDK logs exceptions as objects; pytest keeps them, and with them every connection that broke."""
    logger = logging.getLogger("azure")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(before)
