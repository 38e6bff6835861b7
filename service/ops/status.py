"""What `/status` says of one worker, made from the frozen snapshots of its parts."""

import time
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from service.flow.backlog import BacklogLimits, BacklogStatistics
from service.flow.partition import Intake, PartitionFlow
from service.flow.slots import SlotStatistics
from service.sink.statistics import SinkStatistics
from service.source.statistics import PartitionStatistics, ProcessorStatistics


def status(
    *,
    intake: Intake,
    backlog: BacklogStatistics,
    limits: BacklogLimits,
    slots: SlotStatistics,
    flows: Iterable[PartitionFlow],
    sink: SinkStatistics | None,
    processor: ProcessorStatistics | None,
    host: str,
    rate: float,
    ru_limit: float,
    share: Fraction,
    seconds: float,
    draining: bool,
    faults: list[str],
    checkpoints_failed: int,
) -> dict[str, Any]:
    """The names of the first level are fixed: other programs read them."""
    by_partition = {flow.ownership.partition: flow for flow in flows}
    held = processor.partitions if processor else ()
    partitions = [_partition(host, each, by_partition.get(each.id)) for each in held]
    return {
        "host": host,
        "seconds": round(seconds, 3),
        "records": {
            "received": intake.received,
            "committed": sink.committed if sink else 0,
            "superseded": sink.superseded if sink else 0,
            "dropped": sink.dropped if sink else 0,
            "failed": sink.dead_lettered if sink else 0,
            "retried": sum(sink.retried.values()) if sink else 0,
            "skipped": intake.skipped,
        },
        "retried": {str(code): count for code, count in sink.retried.items()} if sink else {},
        "dead_letter_reasons": dict(sink.reasons) if sink else {},
        "ru": round(sink.ru, 2) if sink else 0.0,
        "ru_limit": round(ru_limit, 2),
        "requests": sink.requests if sink else 0,
        "batch_wait_seconds": round(sink.waited_seconds, 3) if sink else 0.0,
        "rate": round(rate, 1),
        "share": str(share),
        "rate_limit": slots.rate or 0,
        "rate_limited": slots.rate is not None,
        "slots": {"given": slots.given, "used": slots.used, "unused": slots.unused, "waiting": slots.waiting},
        "backlog": {
            "items": backlog.items,
            "records": backlog.records,
            "bytes": backlog.bytes,
            "oldest_seconds": round(backlog.oldest_seconds, 3),
            "paused": backlog.paused,
            "paused_by": list(backlog.paused_by),
            "limits": {
                "records": limits.records,
                "bytes": limits.bytes,
                "oldest_seconds": limits.seconds,
                "policy": limits.policy,
            },
        },
        "partitions": partitions,
        "partitions_in_hub": processor.partitions_in_hub if processor else 0,
        "leases": {
            "held": len(partitions),
            "taken": processor.taken if processor else 0,
            "lost": processor.lost if processor else 0,
            "handed_over": processor.handed_over if processor else 0,
        },
        "checkpoints_failed": checkpoints_failed,
        "draining": draining,
        "faults": faults,
    }


def _partition(host: str, held: PartitionStatistics, flow: PartitionFlow | None) -> dict[str, Any]:
    checkpoint = held.checkpoint
    enqueued_ms = flow.worklist.frontier_enqueued_ms if flow else 0
    return {
        "id": held.id,
        "host": host,
        "epoch": held.epoch,
        "checkpoint": {"sequence": checkpoint.sequence, "offset": checkpoint.offset} if checkpoint else None,
        "checkpoint_age_seconds": round(flow.checkpoint_age(), 1) if flow else None,
        "lag": held.lag,
        "lag_seconds": round(time.time() - enqueued_ms / 1000, 1) if held.lag and enqueued_ms else 0.0,
        "minutes_to_loss": None if held.minutes_to_loss is None else round(held.minutes_to_loss, 1),
        "backlog": flow.worklist.items if flow else 0,
        "done_ahead": flow.worklist.done_ahead if flow else 0,
        "paused": held.paused,
        "reopened": held.reopened,
        "lost_to_retention": held.skipped,
    }
