"""Step `web_search`: pages of the web behind those that came with the question."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from proto.answer import SearchResult
from proto.base import MAX_PAGES, MAX_PAGES_CHARS
from proto.web import WebSearchRequest
from services.gateway.context import Context
from services.gateway.question import plain
from services.kit.errors import ServiceFailure

# Strategies read no more pages.
TOP_N = 5
# Of the time before generation, in which the pages are read as well.
SHARE = 0.6


async def with_web_pages(context: Context) -> Context:
    """The context with pages of the web, where the question asks for them; unchanged when the search fails."""
    run, question = context.run, context.question
    if not question.search:
        return context
    allow_s = SHARE * context.before_generation(context.settings.search_cap_s / SHARE)
    request = WebSearchRequest(query=plain(question.query), query_time=question.query_time, top_n=TOP_N)
    try:
        async with run.stage("web_search") as stage:
            response = await context.mesh.search_web(request, allow_s=allow_s)
            stage.add(response.timing)
            stage.detail = f"{len(response.search_results)} pages for {' | '.join(response.queries)}"
    except ServiceFailure:
        return context
    first = len(question.search_results)
    run.degrade_all(response.degraded, pages=range(first, first + MAX_PAGES))
    results = _within_limits(question.search_results, response.search_results)
    return replace(context, question=replace(question, search_results=results))


def _within_limits(own: Sequence[SearchResult], web: Iterable[SearchResult]) -> tuple[SearchResult, ...]:
    """As many pages as a request to the retriever may have, the question's own first."""
    results = list(own)
    left = MAX_PAGES_CHARS - sum(len(result.page_result) for result in results)
    for result in web:
        left -= len(result.page_result)
        if left < 0 or len(results) == MAX_PAGES:
            break
        results.append(result)
    return tuple(results)
