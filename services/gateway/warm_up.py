"""A question of the gateway's own before it is ready, so that no caller waits for what happens once.

The services warm their own models. This warms connections, the generator's chat template and tokenizer, and the prefix
that all prompts share, and gives a first measure of the generator's speed, by which strategies plan.
"""

import asyncio
from datetime import UTC, datetime

from proto.answer import MIN_BUDGET_S, AnswerRequest, SearchResult
from services.gateway.answering import answer
from services.gateway.asking import State
from services.gateway.health import PROBE_S
from services.gateway.strategies import STRATEGIES
from services.kit.telemetry import Metrics, log

QUESTION = "when was the light at Port Ansel first lit?"
# One prompt of what is read first: more would be read twice, and a start is waited for.
PARAGRAPHS = 8


async def warm_up(state: State) -> None:
    """Answer one question if all services are ready; a failure is logged."""
    settings = state["settings"]
    budget_s = max(MIN_BUDGET_S, settings.warm_up_s)
    try:
        async with asyncio.timeout(budget_s + PROBE_S):
            if missing := [one.name for one in (await state["health"].services()).services if not one.ready]:
                log.info("no warm-up", missing=missing)
                return
            # Metrics of its own: it is no caller's question.
            uncounted = State(**(state | {"metrics": Metrics("gateway")}))
            await answer(_question(budget_s), STRATEGIES[settings.default_strategy], uncounted)
    except Exception as error:
        log.warning("warm-up failed", error=type(error).__name__, detail=str(error)[:300])


def _question(budget_s: float) -> AnswerRequest:
    lines = (
        f"<p>The light of harbour {number} was lit in {1800 + number}, stands {number + 20} metres above the water and "
        f"is seen from {number + 8} miles. Its keepers lived beside it until the lamp needed nobody any more.</p>"
        for number in range(PARAGRAPHS)
    )
    html = f"<html><body><main><h1>Harbour lights</h1>{''.join(lines)}</main></body></html>"
    page = SearchResult(page_name="Harbour lights", page_url="", page_snippet="", page_result=html)
    return AnswerRequest(query=QUESTION, query_time=datetime.now(UTC), search_results=(page,), budget_s=budget_s)
