"""Step `retrieve`: passages from the pages that came with the question."""

from collections.abc import Sequence
from typing import Any

from proto.answer import SearchResult
from proto.base import MAX_PASSAGE_CHARS
from proto.retrieve import Page, RetrieveRequest
from services.gateway.evidence import Evidence, from_passage
from services.gateway.mesh import Mesh
from services.gateway.run import Run
from services.kit.errors import ServiceFailure


async def retrieve(
    run: Run,
    mesh: Mesh,
    query: str,
    results: Sequence[SearchResult],
    pages: Sequence[int],
    *,
    allow_s: float,
    **options: Any,
) -> list[Evidence]:
    """Passages of the chosen pages, best first; their snippets when the retriever fails.

    Args:
        results: all search results of the request.
        pages: indexes of those to search.
        options: further fields of `RetrieveRequest`.
    """
    if not pages:
        return []
    request = RetrieveRequest(query=query, pages=tuple(_page(results[index]) for index in pages), **options)
    try:
        async with run.stage("retrieve") as stage:
            response = await mesh.retrieve(request, allow_s=allow_s)
            stage.of(response.timing)
            stage.detail = f"{len(response.passages)} passages of {response.chunks} chunks"
    except ServiceFailure:
        return snippets(results, pages)
    for degradation in response.degraded:
        page, _, number = degradation.stage.partition(":")
        name = f"{page}:{pages[int(number)]}" if number.isdecimal() and int(number) < len(pages) else degradation.stage
        run.degrade(name, degradation.reason, degradation.detail)
    found = [from_passage(passage, results, pages) for passage in response.passages if passage.page < len(pages)]
    return found or snippets(results, pages)


def snippets(results: Sequence[SearchResult], pages: Sequence[int]) -> list[Evidence]:
    """The search engine's own summaries: less than the pages, far more than nothing."""
    return [
        Evidence(
            text=results[index].page_snippet[:MAX_PASSAGE_CHARS],
            page=index,
            page_name=results[index].page_name,
            page_url=results[index].page_url,
        )
        for index in pages
        if results[index].page_snippet.strip()
    ]


def _page(result: SearchResult) -> Page:
    return Page(
        name=result.page_name,
        url=result.page_url,
        snippet=result.page_snippet,
        html=result.page_result,
        last_modified=result.page_last_modified,
    )
