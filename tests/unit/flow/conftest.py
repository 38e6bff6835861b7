import itertools

import pytest

from service.source.events import Event, Hub, PartitionId
from service.source.leases import Ownership

HUB = Hub("namespace.servicebus.windows.net", "hub", "$Default", 1_700_000_000_000)


@pytest.fixture
def written():
    """The checkpoints that were made durable."""
    return []


@pytest.fixture
def ownership(written):
    async def write(checkpoint):
        written.append(checkpoint)

    return Ownership(HUB, PartitionId("0"), 1, None, float("inf"), lambda: 0.0, write)


@pytest.fixture
def event():
    numbers = itertools.count()

    def make(sequence=None, body=b"{}"):
        number = next(numbers) if sequence is None else sequence
        return Event(number, str(number * 100), 1_700_000_000_000 + number, body, {})

    return make
