"""Traces: sent where OpenTelemetry's own variables say so, and only of a sample."""

import os
from collections.abc import Callable

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

SAMPLED = 0.01
"""Of batches and checkpoints; OTEL_TRACES_SAMPLER and _ARG say otherwise."""


def start_traces(host: str) -> Callable[[], None]:
    """Begin to send spans, if anybody asked for them; gives what ends it."""
    if not (os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")):
        return lambda: None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - only where asked for
        OTLPSpanExporter,
    )

    # None: OpenTelemetry reads the variable itself.
    sampler = None if os.environ.get("OTEL_TRACES_SAMPLER") else ParentBased(TraceIdRatioBased(SAMPLED))
    provider = TracerProvider(
        sampler=sampler, resource=Resource.create({"service.name": "sluice", "service.instance.id": host})
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown
