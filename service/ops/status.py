"""What `/status` says of one worker, made from the frozen snapshots of its parts."""

from collections.abc import Iterable
from typing import Any

from service.flow.backlog import BacklogStatistics
from service.flow.partition import Intake, PartitionFlow
from service.flow.slots import SlotStatistics
from service.sink.statistics import SinkStatistics
from service.source.statistics import ProcessorStatistics


def status(
    *,
    intake: Intake,
    backlog: BacklogStatistics,
    slots: SlotStatistics,
    flows: Iterable[PartitionFlow],
    sink: SinkStatistics | None,
    processor: ProcessorStatistics | None,
    host: str,
    rate: float,
    seconds: float,
    draining: bool,
    faults: list[str],
) -> dict[str, Any]:
    """The names of the first level are fixed: other programs read them."""
    worklists = {flow.ownership.partition: flow.worklist for flow in flows}
    partitions = []
    for held in processor.partitions if processor else ():
        worklist = worklists.get(held.id)
        checkpoint = held.checkpoint
        partitions.append(
            {
                "id": held.id,
                "epoch": held.epoch,
                "checkpoint": {"sequence": checkpoint.sequence, "offset": checkpoint.offset} if checkpoint else None,
                "lag": held.lag,
                "backlog": worklist.items if worklist else 0,
                "done_ahead": worklist.done_ahead if worklist else 0,
                "paused": held.paused,
                "reopened": held.reopened,
                "lost_to_retention": held.skipped,
            }
        )
    return {
        "host": host,
        "seconds": round(seconds, 1),
        "records": {
            "received": intake.received,
            "committed": sink.committed if sink else 0,
            "superseded": sink.superseded if sink else 0,
            "dropped": sink.dropped if sink else 0,
            "failed": sink.dead_lettered if sink else 0,
            "retried": sum(sink.retried.values()) if sink else 0,
            "skipped": intake.skipped,
        },
        "ru": round(sink.ru, 2) if sink else 0.0,
        "rate": round(rate, 1),
        "rate_limit": slots.rate,
        "slots": {"given": slots.given, "used": slots.used, "unused": slots.unused, "waiting": slots.waiting},
        "backlog": {
            "items": backlog.items,
            "records": backlog.records,
            "bytes": backlog.bytes,
            "oldest_seconds": round(backlog.oldest_seconds, 3),
            "paused": backlog.paused,
        },
        "partitions": partitions,
        "partitions_in_hub": processor.partitions_in_hub if processor else 0,
        "leases": {
            "held": len(partitions),
            "taken": processor.taken if processor else 0,
            "lost": processor.lost if processor else 0,
            "handed_over": processor.handed_over if processor else 0,
        },
        "draining": draining,
        "faults": faults,
    }
