"""The whole consumer on the seeded loop: real worker, flow and sink; hub, storage and Cosmos in memory.

The model knows only what was published, what storage and Cosmos were asked for, and the promises. It checks them when a
checkpoint is written, when a request is sent, and at the end.
"""

import asyncio
import contextlib
from collections import Counter
from random import Random

import orjson

from service import options
from service.config import Settings
from service.errors import Fatal, Retry
from service.flow import completion_map
from service.sink.container import Refused
from service.sink.sink import Sink
from service.source.events import Event, Hub, PartitionId
from service.source.memory_leases import MemoryLeases, MemoryStorage
from service.worker import Worker
from tests.simulation.memory_cosmos import MemoryContainer
from tests.simulation.sink.parts import MemoryBox
from tests.simulation.source.hub import SimulatedClient, SimulatedHub
from tests.simulation.source.store import Weather, WeatheredStore

HUB_NAME = ("ns.test", "records")
GROUP = "$Default"
ENQUEUED_MS = 1_700_000_000_000


def settings(**changes) -> Settings:
    return Settings(
        eventhub_connstring="Endpoint=sb://ns.test/;SharedAccessKeyName=a;SharedAccessKey=b",
        eventhub_name="records",
        eventhub_consumergroup=GROUP,
        blob_connstring="AccountName=a;AccountKey=b",
        blob_container="leases",
        cosmos_connstring="AccountEndpoint=https://c/;AccountKey=b",
        cosmos_database="d",
        cosmos_container="c",
        **changes,
    )


class World:
    """Everything outside the hosts, and the model of what may happen."""

    def __init__(self, partitions: int, **changes) -> None:
        self.loop = asyncio.get_running_loop()
        self.random: Random = self.loop.random
        self.settings = settings(**changes)
        self.hub = SimulatedHub(partitions, self.random)
        self.storage = MemoryStorage(self.loop.time, self.settings.lease_duration)
        self.storage.watch = self._checkpointed
        self.container = MemoryContainer(self.random, ranges=3)
        self.letters = MemoryBox()
        self.hosts: dict[str, Host] = {}
        self.numbers: dict[str, list[list[int]]] = {each: [] for each in self.hub.partitions}
        """By partition and sequence: the numbers of the records in that event; none for poison."""
        self.written: set[int] = set()
        self._log_seen = 0
        self.durable: Counter[str] = Counter(dict.fromkeys(self.hub.partitions, -1))
        self.done: dict[str, completion_map.CompletionMap] = {}
        self.latest: dict[str, int] = {}
        self._next = 0
        self.began: Counter[str] = Counter()
        """By partition: the latest epoch under which something was sent."""

    def publish(self, partition: str, documents: int, *, poison: float = 0.02) -> None:
        """One event: usually one document, sometimes several in an array, sometimes rubbish."""
        part = self.hub.partitions[PartitionId(partition)]
        sequence = len(part.events)
        if self.random.random() < poison:
            body, numbers = b"rubbish", []
        else:
            chosen = [self.random.randrange(documents) for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
            records = [self._record(partition, each) for each in chosen]
            body, numbers = orjson.dumps(records), [record["number"] for record in records]
        self.numbers[partition].append(numbers)
        part.events.append(Event(sequence, str(sequence * 100), ENQUEUED_MS + sequence * 10, body, {}))
        for waiting in part.waiting:
            waiting.set()
        part.waiting.clear()

    def _record(self, partition: str, document: int) -> dict:
        name = f"{partition}-{document}"  # a document belongs to one partition, as with a partition key
        self.latest[name] = self._next
        record = {"id": name, "key": f"k{document % 7}", "number": self._next}
        self._next += 1
        return record

    def _checkpointed(self, partition: str, row) -> None:
        """Promises 1 and 2: it never goes back, and passes an event only when all of its records are durable."""
        checkpoint = row.stored.checkpoint
        if checkpoint is None:
            return
        before = self.durable[partition]
        assert checkpoint.sequence >= before, f"{partition}: back from {before} to {checkpoint.sequence}"
        self._read_log()
        hub = Hub(*HUB_NAME, GROUP, self.hub.created_ms)
        known = completion_map.decode(hub, partition, checkpoint.sequence, checkpoint.done_ahead)
        passed = [*range(before + 1, checkpoint.sequence + 1)]
        passed += [n for n in range(checkpoint.sequence + 1, known.last + 1) if n in known]
        for sequence in passed:
            self._must_be_durable(partition, sequence)
        before_known = self.done.get(partition, completion_map.EMPTY)
        forgotten = [
            n for n in range(checkpoint.sequence + 1, before_known.last + 1) if n in before_known and n not in known
        ]
        assert not forgotten, f"{partition}: {forgotten} were known to be done, and are not any more"
        self.durable[partition] = checkpoint.sequence
        self.done[partition] = known

    def _must_be_durable(self, partition: str, sequence: int) -> None:
        numbers = self.numbers[partition][sequence]
        if numbers:
            missing = [number for number in numbers if number not in self.written]
            assert not missing, f"{partition}/{sequence} was passed before {missing} was written"
        else:
            kept = any(
                letter.event.sequence == sequence and letter.partition == partition for letter in self.letters.letters
            )
            assert kept, f"{partition}/{sequence} was passed, and is no dead letter"

    def _read_log(self) -> None:
        for write in self.container.log[self._log_seen :]:
            self.written.add(write.body["number"])
        self._log_seen = len(self.container.log)

    def sent(self, host: "Host", stamp: dict) -> None:
        """Promises 3 and 4: after a later owner has begun, no earlier one sends; nothing durably done is sent."""
        partition, sequence = stamp["partition"], stamp["sequence"]
        flow = host.worker._flows.get(partition)
        assert flow is not None, f"{host.name} sent for {partition}, which it has given up"
        assert flow.ownership.holds(), f"{host.name} sent for {partition} beyond its deadline"
        epoch = flow.ownership.epoch
        assert epoch >= self.began[partition], (
            f"{host.name} sent for {partition} under epoch {epoch}, and a later one has begun"
        )
        self.began[partition] = epoch
        assert sequence > self.durable[partition], f"{partition}/{sequence} is checkpointed, and was sent again"
        known = self.done.get(partition)
        assert known is None or sequence not in known, f"{partition}/{sequence} is in the map, and was sent again"

    def settled(self) -> bool:
        """Whether every checkpoint stands at the end of its partition."""
        return all(self.durable[each] == len(part.events) - 1 for each, part in self.hub.partitions.items())

    def check_end(self) -> None:
        """Promises 1 and 5: every document is in its last state."""
        found = {document["id"]: document["number"] for document in self.container.documents.values()}
        assert found == self.latest


class Host:
    """One worker, with its own weather; it can be killed."""

    def __init__(self, world: World, name: str, skew: float = 0.0) -> None:
        self.world = world
        self.name = name
        self.weather = Weather(world.random)
        self.stop = asyncio.Event()
        self.worker = Worker(
            world.settings,
            self,
            host=name,
            clock=lambda: world.loop.time() + skew,
            random=Random(world.random.random()),
        )
        self.task = asyncio.create_task(self.worker.run(self.stop), name=name)
        world.hosts[name] = self

    # The endpoints of this host.

    hub_name = HUB_NAME

    def hub(self):
        return SimulatedClient(self.world.hub, self.weather.gate)

    def leases(self):
        return WeatheredStore(MemoryLeases(self.world.storage), self.weather)

    async def open_sink(self):
        container = WatchedContainer(self)
        definition = await container.describe()
        ranges = await container.read_ranges()
        made = options.sink(self.world.settings)
        return Sink(container, definition, ranges, WatchedBox(self), made, random=Random(self.world.random.random()))

    async def close(self):
        pass

    async def kill(self) -> None:
        """As SIGKILL: nothing of it reaches anybody any more."""
        self.weather.gone = True
        self.world.hosts.pop(self.name, None)
        self.task.cancel()
        await asyncio.wait([self.task])

    async def end(self) -> None:
        """As SIGTERM."""
        self.world.hosts.pop(self.name, None)
        self.stop.set()
        await asyncio.wait([self.task])
        with contextlib.suppress(Fatal, asyncio.CancelledError):
            self.task.result()


class WatchedContainer:
    """The shared container as one host reaches it: the model looks at what is sent, and a dead host sends nothing."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._container = host.world.container
        self._flying: Counter[tuple[str, str]] = Counter()

    async def describe(self):
        return await self._container.describe()

    async def read_ranges(self):
        return await self._container.read_ranges()

    async def send_bulk(self, range_id, payload, *, minimal):
        await self._alive()
        documents = []
        for operation in orjson.loads(payload):
            body = operation.get("resourceBody")
            if body is not None:
                self._host.world.sent(self._host, body["_sluice"])
            documents.append((operation["partitionKey"], operation.get("id") or body["id"]))
        assert len(set(documents)) == len(documents), "two operations of one document in one request"
        for document in documents:
            self._flying[document] += 1
            assert self._flying[document] == 1, f"two operations of {document} in flight"
        try:
            answer = await self._container.send_bulk(range_id, payload, minimal=minimal)
        finally:
            self._flying.subtract(documents)
        if self._host.weather.gone:
            await asyncio.Event().wait()
        return answer

    async def send_single(self, operation):
        await self._alive()
        return await self._container.send_single(operation)

    async def _alive(self) -> None:
        weather = self._host.weather
        if weather.gone:
            await asyncio.Event().wait()
        if not weather.gate.is_set():
            # A suspended process runs no code: what it seemed to send while suspended was never sent.
            await weather.gate.wait()
            raise Refused("the connection broke while the process was suspended")


class WatchedBox:
    """The shared dead letters as one host reaches them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def append(self, letters) -> None:
        if self._host.weather.gone:
            await asyncio.Event().wait()
        if self._host.world.random.random() < 0.05:
            raise Retry("storage is away")
        await self._host.world.letters.append(letters)
