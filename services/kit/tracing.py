"""OpenTelemetry spans: one of every request in every service, under the trace context that the mesh passes on anyway.

Off unless an endpoint is configured, and then nothing of the SDK is imported. vLLM continues the same trace by its own
`--otlp-traces-endpoint`. Spans hold routes, times and reasons, never a question, a page or an answer.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from services.kit.telemetry import TraceContext

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

Attribute = str | int | float | bool


class Span(Protocol):
    """The part of OpenTelemetry's span that is used here."""

    def set_attribute(self, key: str, value: Attribute) -> None: ...


class _Off:
    def set_attribute(self, key: str, value: Attribute) -> None:
        """Nobody looks."""


class Tracing:
    """Sends one service's spans; the exporter takes finished ones, from a thread of its own."""

    def __init__(self, service: str, exporter: "SpanExporter") -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        # Without a sampler the caller's flag decides, and all requests that begin here are kept.
        self._provider = TracerProvider(resource=Resource.create({"service.name": f"cragmesh-{service}"}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("cragmesh")

    @contextlib.contextmanager
    def request(self, trace: TraceContext, name: str) -> Iterator[tuple[TraceContext, Span]]:
        """A span around a served request. Calls made under the context that it yields are its children."""
        from opentelemetry.trace import SpanKind

        span = self._tracer.start_span(name, context=_parent(trace), kind=SpanKind.SERVER)
        context = span.get_span_context()
        try:
            yield (
                replace(
                    trace,
                    trace_id=f"{context.trace_id:032x}",
                    span_id=f"{context.span_id:016x}",
                    parent_id="",
                    flags=f"{context.trace_flags:02x}",
                ),
                span,
            )
        finally:
            span.end()

    def stage(self, trace: TraceContext, name: str, *, began_s: float, seconds: float, **attributes: Attribute) -> None:
        """Record a span below a request's, which began `began_s` seconds ago and took `seconds`."""
        now = time.time_ns()
        start = now - int(began_s * 1e9)
        span = self._tracer.start_span(
            name, context=_parent(replace(trace, parent_id=trace.span_id)), start_time=start, attributes=attributes
        )
        span.end(end_time=start + int(seconds * 1e9))

    def close(self) -> None:
        """Send the remaining spans."""
        self._provider.shutdown()


def _parent(trace: TraceContext):  # type: ignore[no-untyped-def]
    from opentelemetry import trace as api
    from opentelemetry.context import Context

    if not trace.parent_id:
        return Context()
    parent = api.SpanContext(
        int(trace.trace_id, 16),
        int(trace.parent_id, 16),
        is_remote=True,
        trace_flags=api.TraceFlags(int(trace.flags, 16)),
    )
    return api.set_span_in_context(api.NonRecordingSpan(parent), Context())


_tracing: Tracing | None = None


def configure_tracing(service: str, endpoint: str) -> None:
    """Send this process's spans to an OTLP collector over HTTP, if there is an endpoint."""
    if not endpoint:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    use(Tracing(service, OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")))


def use(tracing: Tracing | None) -> None:
    """Send this process's spans there from now on; None sends the remaining ones and ends it."""
    global _tracing
    if _tracing is not None and tracing is None:
        _tracing.close()
    _tracing = tracing


@contextlib.contextmanager
def request_span(trace: TraceContext, name: str) -> Iterator[tuple[TraceContext, Span]]:
    """See `Tracing.request`; the unchanged context when tracing is off."""
    if _tracing is None:
        yield trace, _Off()
        return
    with _tracing.request(trace, name) as traced:
        yield traced


def stage_spans(
    trace: TraceContext | None,
    stages: Mapping[str, tuple[float, float]],
    attributes: Mapping[str, Mapping[str, Attribute]] = MappingProxyType({}),
) -> None:
    """Spans of a request's stages, each (seconds ago that it began, seconds that it took), with their attributes."""
    if _tracing is None or trace is None:
        return
    for name, (began_s, seconds) in stages.items():
        _tracing.stage(trace, name, began_s=began_s, seconds=seconds, **attributes.get(name, {}))
