"""Telemetry: every instrument in one table, with its unit and what to do when it rises.

All but one are read from the worker's status when somebody asks, so that they cost nothing per record. Prometheus can
always ask at `/metrics`; OTLP and Azure Monitor are sent where their usual variables are set.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from service.flow.worklist import WorkItem

Status = dict[str, Any]
Sample = tuple[float, dict[str, str]]

LATENCY_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One row of the table."""

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    meaning: str
    """What it is; then what to do when it rises."""
    read: Callable[[Status], Iterable[Sample]]


def _one(*path: str) -> Callable[[Status], Iterable[Sample]]:
    def read(status: Status) -> Iterator[Sample]:
        value: Any = status
        for name in path:
            value = value[name]
        yield float(value), {}

    return read


def _by(label: str, *path: str) -> Callable[[Status], Iterable[Sample]]:
    def read(status: Status) -> Iterator[Sample]:
        value: Any = status
        for name in path:
            value = value[name]
        for key, count in value.items():
            yield float(count), {label: str(key)}

    return read


def _each(field: str) -> Callable[[Status], Iterable[Sample]]:
    def read(status: Status) -> Iterator[Sample]:
        for row in status["partitions"]:
            if row[field] is not None:
                yield float(row[field]), {"partition": row["id"]}

    return read


def _ru_per_record(status: Status) -> Iterator[Sample]:
    completed = status["records"]["committed"] + status["records"]["superseded"]
    if completed:
        yield status["ru"] / completed, {}


INSTRUMENTS: tuple[Instrument, ...] = (
    Instrument(
        "sluice.records.received", "counter", "{record}",
        "Records taken from the hub. Below the limit with lag: see slots, backlog and faults.",
        _one("records", "received"),
    ),
    Instrument(
        "sluice.records.committed", "counter", "{record}", "Records written to Cosmos.", _one("records", "committed")
    ),
    Instrument(
        "sluice.records.superseded", "counter", "{record}",
        "Records not written because a newer one was there. Rises in replays; else two writers share documents.",
        _one("records", "superseded"),
    ),
    Instrument(
        "sluice.records.dropped", "counter", "{record}", "Records dropped by your transform.",
        _one("records", "dropped"),
    ),
    Instrument(
        "sluice.records.dead_lettered", "counter", "{record}",
        "Records that can never be committed. Look at `sluice deadletters list`, mend the sender, redrive.",
        _by("reason", "dead_letter_reasons"),
    ),
    Instrument(
        "sluice.records.retried", "counter", "{record}",
        "Operations sent again, by status. 429: the container sells less RU/s than the rate needs. 0: no answer came.",
        _by("status", "retried"),
    ),
    Instrument(
        "sluice.events.skipped", "counter", "{event}",
        "Events that an earlier owner had completed, by its completion map. Rises after restarts only.",
        _one("records", "skipped"),
    ),
    Instrument("sluice.request_units", "counter", "{RU}", "Request units spent, retries included.", _one("ru")),
    Instrument(
        "sluice.request_units.per_record", "gauge", "{RU}",
        "Request units for one completed record since the start, retries included. Rises: documents or their index "
        "grew, or many are refused.",
        _ru_per_record,
    ),
    Instrument(
        "sluice.requests", "counter", "{request}",
        "Requests to Cosmos. Records sent for each are the batch size: small with lag means that documents wait for "
        "each other, or a range is throttled.",
        _one("requests"),
    ),
    Instrument(
        "sluice.batches.waited", "counter", "s",
        "From the arrival of a batch's oldest record until it was sent, all batches together: for one, divide by the "
        "requests. Rises to COSMOS_BATCH_WAIT where records are few, and beyond where ranges are throttled.",
        _one("batch_wait_seconds"),
    ),
    Instrument("sluice.slots.given", "counter", "{slot}", "Slots that the rate allowed.", _one("slots", "given")),
    Instrument("sluice.slots.used", "counter", "{slot}", "Slots that records took.", _one("slots", "used")),
    Instrument(
        "sluice.slots.unused", "counter", "{slot}",
        "Slots that nobody took. With lag: the hub is skewed, or this process lacks CPU.",
        _one("slots", "unused"),
    ),
    Instrument(
        "sluice.slots.waiting", "gauge", "{partition}",
        "Partitions that wait for a slot just now. All of them, always: the rate is what holds the flow back.",
        _one("slots", "waiting"),
    ),
    Instrument(
        "sluice.rate.limit", "gauge", "{record}/s", "The rate in force here; 0 = no limit.", _one("rate_limit")
    ),
    Instrument(
        "sluice.backlog.records", "gauge", "{record}",
        "Records taken and not completed. Rises towards ALLOW_BACKLOG_OF: Cosmos takes less than is read.",
        _one("backlog", "records"),
    ),
    Instrument("sluice.backlog.bytes", "gauge", "By", "Their memory. Intake pauses at 80 % of ALLOW_BACKLOG_BYTES.",
               _one("backlog", "bytes")),
    Instrument(
        "sluice.backlog.oldest", "gauge", "s",
        "Age of the oldest. Rises alone: one record or range is stuck, see faults and retries.",
        _one("backlog", "oldest_seconds"),
    ),
    Instrument("sluice.backlog.paused", "gauge", "1", "1 while intake is paused.", _one("backlog", "paused")),
    Instrument(
        "sluice.done_ahead", "gauge", "{event}", "Events completed beyond the frontier. Rises with a stuck record.",
        _each("done_ahead"),
    ),
    Instrument(
        "sluice.checkpoint.age", "gauge", "s",
        "Since the checkpoint was last known to be durable and current. Rises: storage fails, or a record is stuck.",
        _each("checkpoint_age_seconds"),
    ),
    Instrument(
        "sluice.lag.events", "gauge", "{event}", "Events in the hub not yet checkpointed. Rises: raise the rate.",
        _each("lag"),
    ),
    Instrument("sluice.lag", "gauge", "s", "Age of the newest checkpointed event while there is lag.",
               _each("lag_seconds")),
    Instrument(
        "sluice.minutes_to_loss", "gauge", "{minute}",
        "Until retention reaches the checkpoint, at the speed at which it moves now. Falls: raise the rate at once.",
        _each("minutes_to_loss"),
    ),
    Instrument("sluice.epoch", "gauge", "1", "Epoch under which a partition is read.", _each("epoch")),
    Instrument("sluice.leases.held", "gauge", "{partition}", "Partitions owned.", _one("leases", "held")),
    Instrument("sluice.leases.taken", "counter", "{partition}", "Partitions taken.", _one("leases", "taken")),
    Instrument(
        "sluice.leases.lost", "counter", "{partition}",
        "Partitions that another host took. Rises without scaling: renewals are late, look at storage and CPU.",
        _one("leases", "lost"),
    ),
    Instrument(
        "sluice.leases.handed_over", "counter", "{partition}",
        "Partitions given to a host that asked. Rises without scaling: hosts come and go.",
        _one("leases", "handed_over"),
    ),
    Instrument(
        "sluice.checkpoints.failed", "counter", "{checkpoint}",
        "Checkpoints that storage did not take; each is tried again. Rises: look at storage, its firewall and roles.",
        _one("checkpoints_failed"),
    ),
    Instrument(
        "sluice.watchdog.reopened", "counter", "{receiver}", "Receivers replaced because they lagged and gave nothing.",
        _each("reopened"),
    ),
    Instrument(
        "sluice.events.lost_to_retention", "counter", "{event}",
        "Events that retention took before they were read. They are gone: backfill from Capture.",
        _each("lost_to_retention"),
    ),
    Instrument("sluice.faults", "gauge", "{fault}", "Set-up faults standing now; /status says which.",
               lambda status: [(float(len(status["faults"])), {})]),
)  # fmt: skip


class Telemetry:
    """The instruments of one worker, and where they are sent."""

    def __init__(self, status: Callable[[], Status], *, host: str) -> None:
        self._status = status
        self._seen: Status = {}
        self._registry = CollectorRegistry()
        readers: list[MetricReader] = [
            PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False, registry=self._registry)
        ]
        readers += _exporters()
        self._provider = MeterProvider(
            readers,
            Resource.create({"service.name": "sluice", "service.instance.id": host}),
            views=[
                View(
                    instrument_name="sluice.enqueue_to_commit",
                    aggregation=ExplicitBucketHistogramAggregation(LATENCY_SECONDS),
                )
            ],
        )
        meter = self._provider.get_meter("sluice")
        for row in INSTRUMENTS:
            make = meter.create_observable_counter if row.kind == "counter" else meter.create_observable_gauge
            make(row.name, [self._observe(row)], row.unit, row.meaning)
        self._latency = meter.create_histogram(
            "sluice.enqueue_to_commit",
            "s",
            "From enqueued in the hub to committed, of one record in 64. Rises with lag, throttling and batch wait.",
        )

    def completed(self, item: WorkItem) -> None:
        """A sampled item is completed."""
        self._latency.record(max(0.0, time.time() - item.enqueued_ms / 1000))

    def refresh(self) -> None:
        """Look at the status. Only here, on the worker's own thread: exporters ask from threads of theirs."""
        self._seen = self._status()

    def prometheus(self) -> tuple[bytes, str]:
        """The text for `/metrics`, and its content type."""
        self.refresh()
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def close(self) -> None:
        """Send what is left, within a few seconds."""
        self._provider.shutdown(timeout_millis=5_000)

    def _observe(self, row: Instrument) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(value, labels) for value, labels in row.read(self._seen)] if self._seen else []

        return observe


def _exporters() -> Iterator[MetricReader]:
    """By the variables that OpenTelemetry and Azure Monitor name themselves."""
    if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"):
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - only where asked for
            OTLPMetricExporter,
        )

        yield PeriodicExportingMetricReader(OTLPMetricExporter())
    if os.environ.get("APPLICATIONINSIGHTS_CONNECTION_STRING"):
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - only where asked for
        from azure.monitor.opentelemetry.exporter import (  # noqa: PLC0415 - extra `azure-monitor`
            AzureMonitorMetricExporter,
        )

        # Key access to Application Insights is off in our Bicep: the process's own identity is used.
        yield PeriodicExportingMetricReader(AzureMonitorMetricExporter(credential=DefaultAzureCredential()))
