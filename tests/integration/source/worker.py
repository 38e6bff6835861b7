"""A host in a process of its own, for tests that stop and kill it. Writes what it does as lines of JSON."""

import asyncio
import json
import signal
import sys
from random import Random

from service.clock import uptime
from service.errors import LeaseLost, Retry
from service.source.blob_leases import BlobLeases
from service.source.blob_ownership import BlobOwnership
from service.source.connect import HubAddress, connect_blobs, connect_hub
from service.source.leases import Checkpoint, CloseReason
from service.source.processor import Processor, ProcessorOptions
from service.source.receiver import ReceiverOptions


def say(kind, **fields):
    sys.stdout.write(json.dumps({"kind": kind, "at": uptime(), **fields}) + "\n")
    sys.stdout.flush()


class Handler:
    """Takes events, and checkpoints every half second."""

    def __init__(self, ownership):
        self.ownership = ownership
        self.last = None
        self.task = None

    async def open(self):
        say("open", partition=self.ownership.partition, epoch=self.ownership.epoch)
        self.task = asyncio.create_task(self.checkpoint_for_ever())

    async def events(self, events):
        if events:
            say(
                "events",
                partition=self.ownership.partition,
                epoch=self.ownership.epoch,
                first=events[0].sequence,
                last=events[-1].sequence,
            )
            self.last = Checkpoint(events[-1].sequence, events[-1].offset)

    async def checkpoint_for_ever(self):
        while True:
            await asyncio.sleep(0.5)
            await self.checkpoint()

    async def checkpoint(self):
        partition, epoch, last = self.ownership.partition, self.ownership.epoch, self.last
        if last is None:
            return
        try:
            await self.ownership.write_checkpoint(last)
        except (LeaseLost, Retry) as error:
            say("refused", partition=partition, epoch=epoch, why=type(error).__name__)
        else:
            say("checkpoint", partition=partition, epoch=epoch, sequence=last.sequence)

    async def close(self, reason, deadline):
        self.task.cancel()
        await asyncio.wait([self.task])
        if reason in (CloseReason.SHUTDOWN, CloseReason.HANDED_OVER):
            await self.checkpoint()
        say("close", partition=self.ownership.partition, epoch=self.ownership.epoch, reason=reason.value)

    async def error(self, error):
        say("error", text=str(error))


async def main(settings):
    client = connect_hub(HubAddress(settings["hub"], connection_string=settings["hub_string"]), ReceiverOptions())
    blobs = connect_blobs(settings["container"], connection_string=settings["blob_string"])
    seconds = settings["lease_seconds"]
    shared = settings["mode"] == "ownership"
    store = BlobOwnership(blobs, seconds) if shared else BlobLeases(blobs, seconds)
    processor = Processor(
        client,
        store,
        Handler,
        ProcessorOptions(lease_seconds=seconds, renew_seconds=settings["renew_seconds"], as_the_sdks=shared),
        host=settings["host"],
        namespace=client.namespace,
        hub_name=settings["hub"],
        group="$Default",
        clock=uptime,
        random=Random(),
    )
    loop = asyncio.get_running_loop()
    stopping = set()
    loop.add_signal_handler(
        signal.SIGTERM, lambda: stopping.add(asyncio.ensure_future(processor.stop(loop.time() + 10)))
    )
    await processor.run()
    await client.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
