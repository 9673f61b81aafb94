"""Step `web_search`: pages of the web behind those that came with the question."""

from collections.abc import Sequence
from dataclasses import replace

from proto.answer import SearchResult
from proto.base import MAX_PAGES, MAX_PAGES_CHARS
from proto.web import WebSearchRequest
from services.gateway.context import Context
from services.gateway.question import plain
from services.gateway.run import Run
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
    first = len(question.search_results)
    if first == MAX_PAGES:
        run.skip("web_search", f"the question has {MAX_PAGES} pages, and no more are read")
        return context
    allow_s = SHARE * context.before_generation(context.settings.search_cap_s / SHARE)
    request = WebSearchRequest(
        query=plain(question.query), query_time=question.query_time, top_n=min(TOP_N, MAX_PAGES - first)
    )
    try:
        async with run.stage("web_search") as stage:
            response = await context.mesh.search_web(request, allow_s=allow_s)
            stage.add(response.timing)
            stage.detail = f"{len(response.search_results)} pages for {' | '.join(response.queries)}"
    except ServiceFailure:
        return context
    run.degrade_all(response.degraded, pages=range(first, first + MAX_PAGES))
    results = _within_limits(run, question.search_results, response.search_results)
    return replace(context, question=replace(question, search_results=results))


def _within_limits(run: Run, own: Sequence[SearchResult], web: Sequence[SearchResult]) -> tuple[SearchResult, ...]:
    """The question's own pages and those of the web, without texts that a request to the retriever has no room for."""
    results = list(own)
    left = MAX_PAGES_CHARS - sum(len(result.page_result) for result in results)
    for result in web[: MAX_PAGES - len(own)]:
        fits = len(result.page_result) <= left
        if not fits:
            run.degrade(f"page:{len(results)}", "skipped", "no room for its text beside the other pages'")
        results.append(result if fits else result.model_copy(update={"page_result": ""}))
        left -= len(results[-1].page_result)
    return tuple(results)
