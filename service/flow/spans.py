"""Spans of the work on a partition: what was received, and checkpoints. They cost next to nothing while nobody listens.

A batch is a span of its own that links to the senders' contexts: a thousand events have a thousand parents.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.source.events import Event
from service.source.leases import Ownership

MOST_LINKS = 32
"""Links of one span; a batch has up to EVENTHUB_MAX_BATCH events."""
_NAMES = (b"traceparent", b"Diagnostic-Id")
"""Where senders put their context: W3C's name, and the older one of the Azure SDKs."""

_tracer = trace.get_tracer("sluice")
_propagator = TraceContextTextMapPropagator()


@contextmanager
def receive_span(ownership: Ownership, events: Sequence[Event]) -> Iterator[None]:
    """Around taking a batch of events in."""
    name = f"receive {ownership.hub.name}"
    with _tracer.start_as_current_span(name, kind=trace.SpanKind.CONSUMER) as span:
        if span.is_recording():
            span.set_attributes(_attributes(ownership) | {"messaging.batch.message_count": len(events)})
            for context in _senders(events):
                span.add_link(context)
        yield


@contextmanager
def checkpoint_span(ownership: Ownership, sequence: int) -> Iterator[None]:
    """Around making a checkpoint durable."""
    with _tracer.start_as_current_span(f"settle {ownership.hub.name}", kind=trace.SpanKind.CLIENT) as span:
        if span.is_recording():
            span.set_attributes(_attributes(ownership) | {"sluice.checkpoint.sequence": sequence})
        yield


def _attributes(ownership: Ownership) -> dict[str, str | int]:
    return {
        "messaging.system": "eventhubs",
        "messaging.destination.name": ownership.hub.name,
        "messaging.destination.partition.id": ownership.partition,
        "messaging.consumer.group.name": ownership.hub.group,
    }


def _senders(events: Sequence[Event]) -> Iterator[trace.SpanContext]:
    for event in events[:MOST_LINKS]:
        for name in _NAMES:
            value = event.properties.get(name) or event.properties.get(name.decode())
            if value is None:
                continue
            text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
            context = trace.get_current_span(_propagator.extract({"traceparent": text})).get_span_context()
            if context.is_valid:
                yield context
            break
