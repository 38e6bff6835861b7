"""A stack, consumers as real processes, and somebody who looks at their checkpoints all the time."""

import asyncio
import json
import os
import signal
from datetime import UTC, datetime
from random import Random

from service import options
from service.config import load
from service.flow import completion_map
from service.flow.completion_map import UnreadableMap
from service.local.cosmos.write_log import Write
from service.source.connect import connect_blobs, connect_hub
from service.source.events import Hub
from service.source.leases import Checkpoint
from tests.chaos.stream import Change, Stream
from tests.support.stack import Process, RunningStack

LOOK_SECONDS = 3.0
"""A look at blobs that are frozen just now is given up after this."""


class World:
    """What the faults are done to."""

    def __init__(self, stack: RunningStack, start, random: Random, lease_seconds: float) -> None:
        self.stack = stack
        self.random = random
        self.lease_seconds = lease_seconds
        self.hosts: list[Process] = []
        self.frozen: set[Process] = set()
        self.ending: list[Process] = []
        self.started: list[Process] = []
        self._start = start
        self._blobs_frozen = 0

    @property
    def control(self):
        return self.stack.servers.event_hubs.control

    def partition(self) -> str:
        return str(self.random.randrange(len(self.stack.hub.partitions)))

    def ranges(self) -> list[str]:
        return self.stack.call(lambda: [each.id for each in self.stack.container.ranges.ranges])

    def start(self) -> Process:
        host = self._start()
        self.hosts.append(host)
        self.started.append(host)
        return host

    def pick(self) -> Process:
        """A host that runs; another one is started where there is none."""
        awake = [host for host in self.hosts if host not in self.frozen]
        return self.random.choice(awake) if awake else self.start()

    def forget(self, host: Process) -> None:
        self.hosts.remove(host)

    def end(self, host: Process) -> None:
        """SIGTERM; that it ends with 0 is checked later."""
        host.process.terminate()
        self.forget(host)
        self.ending.append(host)

    def frozen_for(self, host: Process, seconds: float):
        host.signal(signal.SIGSTOP)
        self.frozen.add(host)
        yield seconds
        self.frozen.discard(host)
        if host in self.hosts:
            host.signal(signal.SIGCONT)

    def freeze_blobs(self, frozen: bool) -> None:
        """May be asked for twice at a time."""
        self._blobs_frozen += 1 if frozen else -1
        number = signal.SIGSTOP if self._blobs_frozen else signal.SIGCONT
        os.kill(self.stack.servers.azurite._process.pid, number)

    def check_hosts(self) -> None:
        """Nobody has ended who was not asked to, and who was asked ended well."""
        for host in self.hosts:
            assert host.process.poll() is None, f"ended with {host.process.returncode}:\n{host.output()[-3000:]}"
        for host in self.ending:
            code = host.process.poll()
            assert code is None or _well(host, code), f"ended with {code} after SIGTERM:\n{host.output()[-3000:]}"

    def end_all(self) -> None:
        for host in list(self.hosts):
            self.end(host)
        for host in self.ending:
            assert _well(host, host.process.wait(60)), host.output()[-3000:]


def _well(host: Process, code: int) -> bool:
    """Whether it ended as it should; before it has begun to say anything the signal simply ends it."""
    return code == 0 or (code == -signal.SIGTERM and not host.output())


class Watch:
    """Reads all checkpoints again and again: none goes back, and none says more than is stored."""

    def __init__(self, stack: RunningStack, stream: Stream, lease_mode: str) -> None:
        self._stack = stack
        self._stream = stream
        self._runner = asyncio.Runner()
        self._settings = load(stack.env_file).model_copy(update={"lease_mode": lease_mode})
        self._hub, self._store = self._runner.run(self._connect())
        self.frontiers: dict[str, int] = {}
        self.looks = 0
        self.covered = 0
        self._checked: dict[str, set[int]] = {str(each): set() for each in range(stream.partitions)}
        self._least: dict[str, Change] = {}
        """By document: the last change that a checkpoint covers."""
        self._covered: dict[int, tuple[str, int, datetime, int]] = {}

    def close(self) -> None:
        self._runner.run(self._store.close())
        self._runner.close()

    def look(self) -> None:
        """Fails with what is wrong."""
        try:
            found = self._runner.run(asyncio.wait_for(self._read(), LOOK_SECONDS))
        except TimeoutError:
            return
        for partition, checkpoint in found.items():
            before = self.frontiers.get(partition, -1)
            assert checkpoint.sequence >= before, f"partition {partition} went back from {before} to {checkpoint}"
            self.frontiers[partition] = checkpoint.sequence
            self._cover(partition, checkpoint)
        # What is stored now is at least what was promised a moment ago.
        stored = {each["id"]: each["number"] for each in self._stack.documents()}
        broken = [
            f"{what}; {self._history(change)}"
            for name, change in self._least.items()
            if (what := self._stream.broken_promise(change, stored.get(name)))
        ]
        assert not broken, "\n".join(broken[:20])
        self.looks += 1

    def done(self) -> bool:
        """Whether every event is checkpointed."""
        return all(self.frontiers.get(str(each), -1) == len(its) - 1 for each, its in enumerate(self._stream.sent))

    def _history(self, change: Change) -> str:
        """What is known about a change that went wrong: where it is, when it was covered, what was written when."""
        partition, sequence, when, frontier = self._covered[change.number]
        writes = self._stack.call(lambda: self._stack.container.write_log.of(change.id))[-12:]
        numbers = [f"{write.operation} {write.status} {_number(write)}" for write in writes]
        return f"{partition}/{sequence} covered at {when:%H:%M:%S.%f} with frontier {frontier}; last writes {numbers}"

    def _cover(self, partition: str, checkpoint: Checkpoint) -> None:
        try:
            ahead = completion_map.decode(self._hub, partition, checkpoint.sequence, checkpoint.done_ahead)
        except UnreadableMap as error:
            raise AssertionError(f"partition {partition}: {error}") from error
        checked = self._checked[partition]
        for sequence, changes in enumerate(self._stream.sent[int(partition)]):
            if sequence in checked or not (sequence <= checkpoint.sequence or sequence in ahead):
                continue
            checked.add(sequence)
            self.covered += 1
            for change in changes:
                self._covered[change.number] = partition, sequence, datetime.now(UTC), checkpoint.sequence
                least = self._least.get(change.id)
                if least is None or least.number < change.number:
                    self._least[change.id] = change

    async def _connect(self):
        settings = self._settings
        client = connect_hub(options.hub(settings), options.receiver(settings))
        try:
            described = await client.describe()
            hub = Hub(client.namespace, client.name, settings.eventhub_consumergroup, described.created_ms)
        finally:
            await client.close()
        blobs = connect_blobs(settings.blob_container, **options.blob_account(settings))
        store = options.lease_store(settings, blobs, adopt=True)
        await store.prepare(hub)
        return hub, store

    async def _read(self) -> dict[str, Checkpoint]:
        found = {}
        for partition in self._checked:
            stored = await self._store.read(partition)
            if stored is not None and stored.checkpoint is not None:
                found[partition] = stored.checkpoint
        return found


def _number(write: Write) -> int | None:
    return json.loads(write.body)["number"] if write.body else None
