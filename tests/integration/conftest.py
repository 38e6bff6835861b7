"""Whole processes against a whole stack."""

import json

import pytest

from service.local.stack import StackOptions
from tests.support.otlp import receiving
from tests.support.stack import Process, RunningStack


@pytest.fixture
def make_stack(tmp_path):
    """Start a stack with these options; it is stopped after the test."""
    running = []

    def make(**options):
        stack = RunningStack(StackOptions(**options), tmp_path)
        stack.__enter__()
        running.append(stack)
        return stack

    yield make
    for stack in running:
        stack.__exit__()


@pytest.fixture
def sluice(tmp_path):
    """Start `sluice` with these arguments; it does not outlive the test."""
    running = []

    def start(*arguments, data_bytes=0, **settings):
        settings = {name: str(value) for name, value in settings.items()}
        process = Process(*arguments, folder=tmp_path, settings=settings, data_bytes=data_bytes)
        running.append(process)
        return process

    yield start
    for process in running:
        process.__exit__()


@pytest.fixture
def otlp():
    """A receiver of OTLP, to be sent to with its `settings`."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def preload():
    """Put documents into the hub directly, spread over its partitions by key; gives them by id, the last of each."""

    def put(stack, count, *, keys=1000, size=1024, first=0, documents=None):
        padding = "x" * max(0, size - 90)
        latest = {}

        def append():
            bodies = [[] for _ in stack.hub.partitions]
            for number in range(first, first + count):
                document = number % documents if documents else number
                key = f"key-{document % keys:06d}"
                body = {"id": f"doc-{document:08d}", "key": key, "number": number, "padding": padding}
                latest[body["id"]] = body
                bodies[document % keys % len(bodies)].append(json.dumps(body).encode())
            for partition, its in enumerate(bodies):
                stack.hub.append(str(partition), its)

        stack.call(append)
        return latest

    return put
