"""Step `classify`: domain, dynamism and type of the question, beside the strategy."""

from proto.classify import ClassifyRequest
from services.gateway.context import Context
from services.kit.errors import ServiceFailure


async def classify(context: Context, *, min_domain_certainty: float) -> None:
    """Classify the question for `Context.classification`: open and unknown when the classifier fails."""
    run, question = context.run, context.question
    request = ClassifyRequest(
        query=question.query, query_time=question.query_time, min_domain_certainty=min_domain_certainty
    )
    try:
        async with run.stage("classify") as stage:
            response = await context.mesh.classify(request, allow_s=run.budget.allow(context.settings.classify_cap_s))
            stage.add(response.timing)
            label = run.classification = response.classification
            stage.detail = f"{label.domain} {label.domain_certainty:.2f}, {label.dynamism}, {label.question_type}"
        run.degrade_all(response.degraded)
    except ServiceFailure:
        return
    finally:
        run.classified.set()


async def changes_fast(context: Context) -> bool:
    """Whether the answer is too likely to change within a year; False where the classifier failed."""
    if context.options.dynamism is False:
        context.run.decide("dynamism", "taken for stable: the request says so")
        return False
    classification, threshold = await context.classification(), context.settings.dynamic_threshold
    fast = classification.dynamic_probability >= threshold and classification.dynamism != "unknown"
    context.run.decide(
        "dynamism",
        f"{classification.dynamism}, changes within a year with {classification.dynamic_probability:.2f}: "
        f"{'fast' if fast else 'not fast'} by the threshold of {threshold:.2f}",
    )
    return fast
