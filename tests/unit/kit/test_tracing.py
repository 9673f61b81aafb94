"""Spans: one trace through several services, and nothing of a question in it."""

from collections.abc import Sequence
from threading import Event

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.kit import tracing
from services.kit.telemetry import TraceContext
from services.kit.tracing import flush_spans, request_span, send_spans, stage_spans
from tests.unit.kit.serving import serving

INCOMING = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    monkeypatch.setattr(tracing, "_provider", None)
    exporter = InMemorySpanExporter()
    send_spans("test", exporter)
    return exporter


def finished(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    assert tracing._provider is not None
    tracing._provider.shutdown()
    return {span.name: span for span in exporter.get_finished_spans()}


def test_a_request_continues_its_callers_trace(exporter: InMemorySpanExporter) -> None:
    with request_span(TraceContext.from_headers(INCOMING), "retriever POST") as (trace, span):
        span.set_attribute("http.route", "/retrieve")
        outgoing = trace.outgoing()["traceparent"]
    served = finished(exporter)["retriever POST"]
    assert served.context is not None
    assert served.parent is not None
    assert f"{served.parent.span_id:016x}" == "b" * 16
    assert outgoing == f"00-{'a' * 32}-{served.context.span_id:016x}-01"
    assert served.attributes == {"http.route": "/retrieve"}
    assert served.resource.attributes["service.name"] == "cragmesh-test"


def test_a_trace_that_the_caller_does_not_record_is_not_recorded_here(exporter: InMemorySpanExporter) -> None:
    unsampled = {"traceparent": INCOMING["traceparent"][:-1] + "0"}
    with request_span(TraceContext.from_headers(unsampled), "gateway POST") as (trace, _):
        assert trace.outgoing()["traceparent"].endswith("-00")
    assert not finished(exporter)


def test_stages_are_below_their_request_with_their_own_times(exporter: InMemorySpanExporter) -> None:
    with request_span(TraceContext.from_headers({}), "gateway POST") as (trace, _):
        stage_spans(trace, {"retrieve": (2.0, 0.5)}, {"retrieve": {"gen_ai.operation.name": "retrieval"}})
    spans = finished(exporter)
    stage, request = spans["retrieve"], spans["gateway POST"]
    assert stage.parent is not None
    assert request.context is not None
    assert (request.parent, f"{request.context.trace_id:032x}") == (None, trace.trace_id), "it begins a trace"
    assert stage.parent.span_id == request.context.span_id
    assert stage.end_time is not None
    assert stage.start_time is not None
    assert stage.end_time - stage.start_time == pytest.approx(0.5e9)


@pytest.mark.anyio
async def test_what_waits_is_sent_before_a_server_ends(exporter: InMemorySpanExporter) -> None:
    async with serving(lambda *_: None, grace_s=0):
        with request_span(TraceContext.from_headers({}), "gateway POST"):
            pass
        assert not exporter.get_finished_spans(), "spans go out every few seconds"
    assert [span.name for span in exporter.get_finished_spans()] == ["gateway POST"]


def test_a_collector_that_hangs_keeps_no_server_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    released = Event()

    class Hanging(InMemorySpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            released.wait()
            return super().export(spans)

    monkeypatch.setattr(tracing, "_provider", None)
    monkeypatch.setattr(tracing, "FLUSH_S", 0.01)
    hanging = Hanging()
    send_spans("test", hanging)
    with request_span(TraceContext.from_headers({}), "gateway POST"):
        pass
    flush_spans()
    assert not hanging.get_finished_spans()
    released.set()


def test_off_it_changes_nothing() -> None:
    given = TraceContext.from_headers(INCOMING)
    with request_span(given, "gateway POST") as (trace, span):
        span.set_attribute("http.route", "/answer")
        assert trace is given
    stage_spans(trace, {"retrieve": (2.0, 0.5)})
