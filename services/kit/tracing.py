"""OpenTelemetry spans: one of every request in every service, under the trace context that the mesh passes on anyway.

Off unless an endpoint is configured, and then nothing of the SDK is imported. vLLM continues the same trace by its own
`--otlp-traces-endpoint`. Spans hold routes, times and reasons, never a question, a page or an answer.
"""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from services.kit.telemetry import TRACEPARENT_HEADER, TraceContext

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

Attribute = str | int | float | bool

# For what waits when a service is told to stop; a collector that is away is not waited for any longer.
FLUSH_S = 2.0

# None while tracing is off.
_provider: "TracerProvider | None" = None


class Span(Protocol):
    """The part of OpenTelemetry's span that is used here."""

    def set_attribute(self, key: str, value: Attribute) -> None: ...


class _Off:
    def set_attribute(self, key: str, value: Attribute) -> None:
        """Nobody looks."""


def configure_tracing(service: str, endpoint: str) -> None:
    """Send this process's spans to an OTLP collector over HTTP, if there is an endpoint."""
    if not endpoint:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    send_spans(service, OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces"))


def send_spans(service: str, exporter: "SpanExporter") -> None:
    """Give this process's finished spans to an exporter, from a thread of its own."""
    global _provider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # Without a sampler the caller's flag decides, and all requests that begin here are kept.
    _provider = TracerProvider(resource=Resource.create({"service.name": f"cragmesh-{service}"}))
    _provider.add_span_processor(BatchSpanProcessor(exporter))


def flush_spans() -> None:
    """Send the spans that wait, for `FLUSH_S` at most; there are none afterwards.

    What OpenTelemetry sends when Python ends is lost where a signal ends the process.
    """
    if _provider is None:
        return
    sending = threading.Thread(target=_provider.shutdown, daemon=True)
    sending.start()
    sending.join(FLUSH_S)


@contextlib.contextmanager
def request_span(trace: TraceContext, name: str) -> Iterator[tuple[TraceContext, Span]]:
    """A span around a served request. Calls made under the context that it yields are its children.

    The context is unchanged when tracing is off.
    """
    if _provider is None:
        yield trace, _Off()
        return
    from opentelemetry.trace import SpanKind

    parent = _below(trace, trace.parent_id)
    span = _provider.get_tracer("cragmesh").start_span(name, context=parent, kind=SpanKind.SERVER)
    context = span.get_span_context()
    inner = replace(
        trace,
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id="",
        flags=f"{context.trace_flags:02x}",
    )
    try:
        yield inner, span
    finally:
        span.end()


def stage_spans(
    trace: TraceContext | None,
    stages: Mapping[str, tuple[float, float]],
    attributes: Mapping[str, Mapping[str, Attribute]] = MappingProxyType({}),
) -> None:
    """Spans of a request's stages, each (seconds ago that it began, seconds that it took), with their attributes."""
    if _provider is None or trace is None:
        return
    now, parent = time.time_ns(), _below(trace, trace.span_id)
    for name, (began_s, seconds) in stages.items():
        start = now - int(began_s * 1e9)
        tracer = _provider.get_tracer("cragmesh")
        span = tracer.start_span(name, context=parent, start_time=start, attributes={**attributes.get(name, {})})
        span.end(end_time=start + int(seconds * 1e9))


def _below(trace: TraceContext, span_id: str) -> "Context":
    """The context of a span of the trace; without one, that of a trace that begins."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {TRACEPARENT_HEADER: f"00-{trace.trace_id}-{span_id}-{trace.flags}"}
    return TraceContextTextMapPropagator().extract(carrier, Context())
