"""Metrics on their way out: an OTLP receiver gets the same figures that Cosmos has."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.stack import until


@pytest.fixture
def otlp():
    """A receiver of OTLP over HTTP: the last value of each sum or gauge, by name."""
    values, spans = {}, []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/traces"):
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        spans.extend(scope.spans)
                self.send_response(200)
                self.end_headers()
                return
            request = ExportMetricsServiceRequest.FromString(body)
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        points = metric.sum.data_points or metric.gauge.data_points
                        values[metric.name] = sum(point.as_double for point in points)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    server.values, server.spans = values, spans
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_otlp_receiver_gets_the_figures(make_stack, sluice, preload, otlp):
    stack = make_stack()
    preload(stack, 2_000)
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{otlp.server_address[1]}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "OTEL_METRIC_EXPORT_INTERVAL": 500,
    }
    process = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: otlp.values.get("sluice.records.committed") == 2_000, 60, "the figure", process=process)
    assert otlp.values["sluice.records.received"] == 2_000
    assert otlp.values["sluice.leases.held"] == 4
    assert process.stop() == 0


def test_spans_of_receiving_link_to_the_sender(make_stack, sluice, otlp):
    stack = make_stack(partitions=1)
    sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    body = b'{"id": "1", "key": "k"}'
    stack.call(lambda: stack.hub.append("0", [body], properties={"traceparent": sender}))
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{otlp.server_address[1]}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "OTEL_TRACES_SAMPLER": "always_on",
        "CHECKPOINT_INTERVAL": "500ms",
    }
    process = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: process.records()["committed"] == 1, 60, "committed", process=process)
    until(lambda: any(span.name == "settle hub" for span in otlp.spans), 30, "a checkpoint's span", process=process)
    received = [span for span in otlp.spans if span.name == "receive hub" and span.links]
    assert received[0].links[0].trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert any(span.name == "bulk" for span in otlp.spans)
