"""The checkpointer: every few seconds the frontier of each partition is made durable, never in intake's way."""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from service.errors import LeaseLost, SluiceError
from service.flow.partition import PartitionFlow

log = structlog.get_logger()


class Checkpointer:
    """Writes the checkpoints of all open partitions, concurrently, at an interval. A failing write kills nothing."""

    def __init__(self, partitions: Callable[[], Iterable[PartitionFlow]], interval_seconds: float) -> None:
        self._partitions = partitions
        self._interval = interval_seconds
        self._writing: set[PartitionFlow] = set()
        """A write that takes long delays nobody else's."""
        self.failed = 0

    async def run(self) -> None:
        """Until cancelled. The last checkpoint of a partition is written by its `close`."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(self._interval)
                for partition in set(self._partitions()) - self._writing:
                    self._writing.add(partition)
                    group.create_task(self._write(partition))

    async def _write(self, partition: PartitionFlow) -> None:
        try:
            await partition.checkpoint()
        except LeaseLost as lost:
            log.warning("checkpoint refused: the partition has another owner", why=str(lost))
        except SluiceError as error:
            self.failed += 1
            log.warning("checkpoint not written; tried again", partition=partition.ownership.partition, why=str(error))
        finally:
            self._writing.discard(partition)
