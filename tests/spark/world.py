"""A hub, a container and their settings for one test, on the one stack that all Spark tests share."""

import json
import uuid

from azure.cosmos import CosmosClient
from azure.storage.blob import ContainerClient

from service.config import Settings
from service.jobs.options import BackfillOptions, EngineOptions, ReconcileOptions, RepairOptions, SourceOptions
from service.local import stack as local

DOCUMENT_BYTES = 200


class World:
    """What a test has to itself."""

    def __init__(self, stack, folder, *, partitions=2, ranges=3, default_ttl=None):
        self.stack = stack
        self.folder = folder
        self.name = f"w{uuid.uuid4().hex[:10]}"
        self.hub = stack.call(lambda: stack.servers.event_hubs.add_hub(self.name, partitions))
        stack.call(lambda: self.hub.add_consumer_group("jobs"))
        self.container = stack.call(
            lambda: stack.servers.cosmos.add_container(
                local.DATABASE, self.name, partition_key="/key", ranges=ranges, default_ttl=default_ttl
            )
        )

        self.capture()  # opens the hub's first window now: a file is named by when its window began

    def settings(self, **more):
        values = {name.lower(): value for name, value in self.stack.servers.settings().items()}
        values |= {"eventhub_name": self.name, "cosmos_container": self.name, "blob_container": self.name}
        values |= {"document_delete": "/gone"} | more
        return Settings(_env_file=None, **values)

    def env_file(self, **more):
        """The same as a file, for processes."""
        lines = self.stack.servers.settings() | {
            "EVENTHUB_NAME": self.name,
            "COSMOS_CONTAINER": self.name,
            "BLOB_CONTAINER": self.name,
            "DOCUMENT_DELETE": "/gone",
            **{name: str(value) for name, value in more.items()},
        }
        path = self.folder / "world.env"
        path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        return path

    # The stream.

    def send(self, *bodies, partition="0", enqueued_ms=None, **properties):
        """Put events into a partition: objects, or bytes as they are."""
        raw = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in bodies]
        more = {"enqueued_ms": enqueued_ms} if enqueued_ms else {}
        return self.stack.call(lambda: self.hub.append(partition, raw, properties=properties or None, **more))

    def fill(self, count, *, documents=None, first=0, deletes=0):
        """`count` events over all partitions: each document is written several times; some end as deletes."""
        documents = documents or count
        bodies = {partition.id: [] for partition in self.hub.partitions}
        for number in range(first, first + count):
            document = number % documents
            partition = self.hub.partitions[document % len(self.hub.partitions)].id
            body = {"id": f"d{document}", "key": f"k{document % 97}", "n": number, "pad": "x" * DOCUMENT_BYTES}
            if deletes and number >= first + count - documents and document % deletes == 0:
                body["gone"] = True
            bodies[partition].append(body)
        for partition, its in bodies.items():
            self.send(*its, partition=partition)

    def capture(self):
        """Write what came in since the last time into Capture's files; gives the path."""
        self.stack.capture_at += 1.0  # names have whole seconds: files of one second would have one name
        self.stack.call(self.stack.capture.flush)
        return f"blob://capture/local/{self.name}/"

    def expected(self):
        """What a reader of the whole hub has in the end, by id: computed apart from the jobs."""
        documents = {}
        for partition in self.hub.partitions:
            for event in self.bodies(partition):
                try:
                    body = json.loads(event)
                except ValueError:
                    continue
                if body.get("gone"):
                    documents.pop(body["id"], None)
                else:
                    documents[body["id"]] = body["n"]
        return documents

    def bodies(self, partition):
        from service.local.event_hubs.capture_avro import record

        return [record(event)["Body"] for event in partition.log.events]

    # Cosmos.

    def documents(self):
        return self.stack.call(self.container.documents)

    def found(self):
        """The documents by id, as `expected` has them."""
        return {document["id"]: document["n"] for document in self.documents()}

    def cosmos(self):
        """The container through the SDK: what a person would do by hand."""
        server = self.stack.servers.cosmos
        return (
            CosmosClient(server.endpoint, server.key)
            .get_database_client(local.DATABASE)
            .get_container_client(self.name)
        )

    def blobs(self, container=None):
        return ContainerClient.from_connection_string(
            self.stack.servers.azurite.connection_string, container or self.name
        )

    # The jobs' options.

    def source(self, kind="capture", **more):
        if kind == "capture":
            more = {"path": f"blob://capture/local/{self.name}/"} | more
        return SourceOptions(kind, **more)

    def backfill(self, source=None, *, window_bytes=256 * 1024 * 1024, **more):
        engine = EngineOptions(window_bytes=window_bytes)
        return BackfillOptions(source or self.source(), str(self.folder / "backfill"), engine, **more)

    def reconcile(self, source=None, **more):
        return ReconcileOptions(
            source or self.source(), str(self.folder / "reconcile"), **({"recheck_seconds": 0.1} | more)
        )

    def repair(self, **more):
        return RepairOptions(str(self.folder / "reconcile"), **more)

    def summary(self, job):
        return json.loads((self.folder / job / "summary.json").read_text())
