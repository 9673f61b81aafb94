"""What an answer tells the people who run the mesh: metrics by outcome, and a span for each stage."""

from proto.answer import AnswerResponse
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
    if response.degraded:
        metrics.degraded_answers.labels(service, response.strategy).inc()
    metrics.budget_left.labels(service, response.strategy).observe(arrived.left())
    metrics.tokens.labels(service, "prompt").inc(response.usage.prompt_tokens)
    metrics.tokens.labels(service, "completion").inc(response.usage.completion_tokens)
    metrics.llm_calls.labels(service).inc(response.usage.llm_calls)
    elapsed_s = arrived.elapsed_ms() / 1000
    stage_spans(
        current_trace.get(),
        {
            name: (elapsed_s - timing.start_ms / 1000, timing.elapsed_ms / 1000)
            for name, timing in response.timings.items()
        },
    )
