"""What an answer tells the people who run the mesh: metrics by outcome, and a span for each stage."""

from collections.abc import Iterable, Mapping

from proto.answer import AnswerResponse, Usage
from proto.base import Degradation, StageTiming
from services.gateway import calibration
from services.kit.budget import Budget
from services.kit.telemetry import Metrics, current_trace
from services.kit.tracing import stage_spans


def observe(metrics: Metrics, response: AnswerResponse, arrived: Budget) -> None:
    """Count an answer that is about to leave.

    Args:
        arrived: the budget that began when the request arrived; what is left of it says how close the answer was.
    """
    service = metrics.service
    metrics.answers.labels(service, response.strategy, response.kind, response.source).inc()
    # A generator that nothing was fitted on is no outage, and would hide one if every answer counted.
    if any(item.stage != calibration.STAGE for item in response.degraded):
        metrics.degraded_answers.labels(service, response.strategy).inc()
    metrics.budget_left.labels(service, response.strategy).observe(arrived.left())
    observe_cost(metrics, response.usage, response.timings, arrived)


def observe_stages(metrics: Metrics, timings: Mapping[str, StageTiming], degraded: Iterable[Degradation]) -> None:
    """Count what the stages took, and what was missing."""
    for stage, timing in timings.items():
        for part, milliseconds in (
            ("elapsed", timing.elapsed_ms),
            ("queue", timing.queue_ms),
            ("inference", timing.inference_ms),
        ):
            metrics.stage.labels(metrics.service, stage, part).observe(milliseconds / 1000)
    for degradation in degraded:
        # A page's number is no label: pages are unbounded, stages are few.
        metrics.degraded.labels(metrics.service, degradation.stage.partition(":")[0], degradation.reason).inc()


def observe_cost(metrics: Metrics, usage: Usage, timings: Mapping[str, StageTiming], arrived: Budget) -> None:
    """Count what the generator was asked for, and tell the trace of each stage."""
    service = metrics.service
    metrics.tokens.labels(service, "prompt").inc(usage.prompt_tokens)
    metrics.tokens.labels(service, "completion").inc(usage.completion_tokens)
    metrics.llm_calls.labels(service).inc(usage.llm_calls)
    elapsed_s = arrived.elapsed_ms() / 1000
    stage_spans(
        current_trace.get(),
        {name: (elapsed_s - timing.start_ms / 1000, timing.elapsed_ms / 1000) for name, timing in timings.items()},
    )
