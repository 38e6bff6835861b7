"""Metrics on their way out: an OTLP receiver gets the same figures that Cosmos has."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.support.stack import until


@pytest.fixture
def otlp():
    """A receiver of OTLP over HTTP: the last value of each sum or gauge, by name."""
    values = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
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
    server.values = values
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
