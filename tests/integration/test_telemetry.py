"""Metrics on their way out: an OTLP receiver gets the same figures that Cosmos has."""

from tests.support.stack import until


def test_an_otlp_receiver_gets_the_figures(make_stack, sluice, preload, otlp):
    stack = make_stack()
    preload(stack, 2_000)
    process = sluice("run", "--env-file", str(stack.env_file), **otlp.settings, OTEL_METRIC_EXPORT_INTERVAL=500)
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
        "OTEL_TRACES_SAMPLER": "always_on",
        "CHECKPOINT_INTERVAL": "500ms",
    }
    process = sluice("run", "--env-file", str(stack.env_file), **otlp.settings, **settings)
    until(lambda: process.records()["committed"] == 1, 60, "committed", process=process)
    until(lambda: any(span.name == "settle hub" for span in otlp.spans), 30, "a checkpoint's span", process=process)
    received = [span for span in otlp.spans if span.name == "receive hub" and span.links]
    assert received[0].links[0].trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert any(span.name == "bulk" for span in otlp.spans)
