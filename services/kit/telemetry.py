"""Request ids, W3C trace context, JSON logs and the metrics that all services share."""

import logging
import re
import secrets
import sys
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from proto.base import Degradation

REQUEST_ID_HEADER = "x-request-id"
TRACEPARENT_HEADER = "traceparent"

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 12, 16, 20, 25, 30)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A request's id in the logs, and its place in a W3C trace."""

    request_id: str
    trace_id: str
    span_id: str
    flags: str = "01"
    # The caller's span; empty for a trace that begins here.
    parent_id: str = ""

    @classmethod
    def from_headers(cls, headers: dict[str, str]) -> "TraceContext":
        """Continue the caller's trace, or begin one; malformed values are replaced, never passed on."""
        match = _TRACEPARENT.fullmatch(headers.get(TRACEPARENT_HEADER, ""))
        if match and set(match[1]) != {"0"} and set(match[2]) != {"0"}:
            trace_id, parent_id, flags = match[1], match[2], match[3]
        else:
            trace_id, parent_id, flags = secrets.token_hex(16), "", "01"
        request_id = headers.get(REQUEST_ID_HEADER, "")
        if not _REQUEST_ID.fullmatch(request_id):
            request_id = trace_id[:16]
        return cls(
            request_id=request_id, trace_id=trace_id, span_id=secrets.token_hex(8), flags=flags, parent_id=parent_id
        )

    def outgoing(self) -> dict[str, str]:
        """Headers for a call made on behalf of this request, which is that call's parent."""
        return {
            TRACEPARENT_HEADER: f"00-{self.trace_id}-{self.span_id}-{self.flags}",
            REQUEST_ID_HEADER: self.request_id,
        }


current_trace: ContextVar[TraceContext | None] = ContextVar("current_trace", default=None)


def request_id() -> str:
    """The id of the request being served, or nothing outside one."""
    trace = current_trace.get()
    return trace.request_id if trace else ""


class Metrics:
    """One registry a service, so that several services can live in one process."""

    def __init__(self, service: str) -> None:
        registry = self.registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"cragmesh_{name}", about, ["service", *labels], registry=registry)

        def seconds(name: str, about: str, *labels: str, buckets: Sequence[float] = _SECONDS) -> Histogram:
            names = ["service", *labels]
            return Histogram(f"cragmesh_{name}_seconds", about, names, buckets=buckets, registry=registry)

        self.requests = counter("requests", "Requests by route and status.", "route", "status")
        self.latency = seconds("request", "Time to the end of the response.", "route")
        self.cut_short = counter("requests_cut_short", "Requests ended early: deadline, hang-up, refused.", "cause")
        self.stage = seconds("stage", "Time of a stage, queue and inference apart.", "stage", "part")
        self.degraded = counter("degraded", "What was missing, and why.", "stage", "reason")
        self.in_flight = Gauge("cragmesh_in_flight", "Requests being served.", ["service"], registry=registry)
        self.answers = counter(
            "answers", "Answers by strategy, kind (unknown is an abstention) and source.", "strategy", "kind", "source"
        )
        self.degraded_answers = counter("answers_degraded", "Answers for which something was missing.", "strategy")
        self.budget_left = seconds(
            "budget_left",
            "Time that was left of the 30 seconds when an answer left; 0 is a budget missed.",
            "strategy",
            buckets=(0.0, *_SECONDS),
        )
        self.tokens = counter("llm_tokens", "Tokens read and written by the LLM.", "kind")
        self.cache = counter("cache", "Look-ups in a cache, by result: hit or miss.", "cache", "result")
        self.llm_calls = counter("llm_calls", "Calls of the LLM.")
        self.service = service
        # Exported from the first scrape on, so that autoscalers and dashboards see zero in place of no data.
        self.in_flight.labels(service)

    def took(self, stage: str, **parts_ms: float) -> None:
        """Observe the milliseconds of a stage's parts, such as queue and inference."""
        for part, milliseconds in parts_ms.items():
            self.stage.labels(self.service, stage, part).observe(milliseconds / 1000)

    def fell_short(self, degraded: Iterable[Degradation]) -> None:
        """Count what was missing; a label has few values: a stage without its page's number."""
        for item in degraded:
            self.degraded.labels(self.service, item.stage.partition(":")[0], item.reason).inc()

    def looked_up(self, cache: str, *, hits: int, misses: int) -> None:
        """Count look-ups in a cache; both counters exist from the first on, so that a share can be computed."""
        self.cache.labels(self.service, cache, "hit").inc(hits)
        self.cache.labels(self.service, cache, "miss").inc(misses)


def configure_logging(service: str, level: str) -> None:
    """Send every log line of the process, uvicorn's too, to stdout as one JSON object a line."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # At INFO they log each call with the names in it, collections too; our own line per request says more.
    for name in ("httpx", "mcp"):
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.contextvars.bind_contextvars(service=service)


log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger()
