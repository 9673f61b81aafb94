"""Metrics of answers by outcome, and a span for each stage."""

from collections.abc import Sequence

from proto.answer import AnswerResponse, Usage
from services.gateway import calibration
from services.gateway.run import Run
from services.kit.budget import Budget
from services.kit.llm import Completion
from services.kit.telemetry import Metrics, current_trace
from services.kit.tracing import Attribute, stage_spans

# OpenTelemetry's semantic conventions for generative AI (in development, 2026); never a question, a text or a name.
RETRIEVAL: dict[str, Attribute] = {"gen_ai.operation.name": "retrieval"}
RETRIEVALS = ("retrieve", "search", "search_forms")


def observe(metrics: Metrics, response: AnswerResponse, arrived: Budget) -> None:
    """Count an answer that is about to leave, and the rest of its request's budget."""
    service = metrics.service
    metrics.answers.labels(service, response.strategy, response.kind, response.source).inc()
    # A generator without a confidence is no outage, and would hide one if each of its answers counted.
    if any(item.stage != calibration.STAGE for item in response.degraded):
        metrics.degraded_answers.labels(service, response.strategy).inc()
    metrics.budget_left.labels(service, response.strategy).observe(arrived.left())
    observe_cost(metrics, response.usage)


def observe_stages(metrics: Metrics, run: Run) -> None:
    """Count the stages' times and what was missing, and add a span for each stage."""
    for stage, timing in run.timings.items():
        metrics.took(stage, elapsed=timing.elapsed_ms, queue=timing.queue_ms, inference=timing.inference_ms)
    metrics.fell_short(run.degraded)
    elapsed_s = run.budget.elapsed_ms() / 1000
    stage_spans(
        current_trace.get(),
        {name: (elapsed_s - timing.start_ms / 1000, timing.elapsed_ms / 1000) for name, timing in run.timings.items()},
        {**dict.fromkeys(RETRIEVALS, RETRIEVAL), **{step: _chat(calls) for step, calls in run.completions.items()}},
    )


def _chat(completions: Sequence[Completion]) -> dict[str, Attribute]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.response.model": completions[-1].model,
        "gen_ai.usage.input_tokens": sum(one.prompt_tokens for one in completions),
        "gen_ai.usage.output_tokens": sum(one.completion_tokens for one in completions),
    }


def observe_cost(metrics: Metrics, usage: Usage) -> None:
    """Count calls to the generator and their tokens."""
    service = metrics.service
    metrics.tokens.labels(service, "prompt").inc(usage.prompt_tokens)
    metrics.tokens.labels(service, "completion").inc(usage.completion_tokens)
    metrics.llm_calls.labels(service).inc(usage.llm_calls)
