"""Step `retrieve`: passages from the pages that came with the question, and from a collection."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from proto.answer import SearchResult
from proto.base import MAX_PASSAGE_CHARS
from proto.collections import SearchRequest, SearchResponse
from proto.retrieve import Page, RetrieveRequest
from services.gateway.evidence import Evidence, from_hit, from_passage
from services.gateway.mesh import Mesh
from services.gateway.run import Run
from services.kit.concurrency import all_of
from services.kit.errors import ServiceFailure, ServiceRejected

# Of each of a collection's lists, before they are fused.
CANDIDATES = 150
# Of a collection, what goes on to the reranker: of 50 it finds the answer no more often, in 2.5 times the time.
POOL = 20
NOT_FOUND = 404


async def retrieve(
    run: Run,
    mesh: Mesh,
    query: str,
    results: Sequence[SearchResult],
    pages: Sequence[int],
    *,
    collection: str = "",
    top_n: int,
    allow_s: float,
    **options: Any,
) -> list[Evidence]:
    """Passages of the chosen pages and of a collection, best first; the pages' snippets when the retriever fails.

    Args:
        results: all search results of the request.
        pages: indexes of those to search.
        collection: a collection to search beside them; none when empty.
        top_n: passages of the pages, and of the collection as many up to 20; scores do not compare, so they take turns.
        options: further fields of `RetrieveRequest`.
    """
    of_pages = _of_pages(run, mesh, query, results, pages, allow_s=allow_s, top_n=top_n, **options)
    if not collection:
        return await of_pages
    of_collection = _of_collection(run, mesh, query, collection, len(results), top_n=top_n, allow_s=allow_s)
    turns = zip_longest(*await all_of((of_pages, of_collection)))
    return [item for turn in turns for item in turn if item is not None]


async def _of_pages(
    run: Run,
    mesh: Mesh,
    query: str,
    results: Sequence[SearchResult],
    pages: Sequence[int],
    *,
    allow_s: float,
    **options: Any,
) -> list[Evidence]:
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


async def _of_collection(
    run: Run, mesh: Mesh, query: str, collection: str, first_page: int, *, top_n: int, allow_s: float
) -> list[Evidence]:
    """Passages of a collection; each document counts as a page, from `first_page` on."""
    request = SearchRequest(queries=(query,), candidates=CANDIDATES, top_n=min(top_n, POOL))
    try:
        async with run.stage("search") as stage:
            response = await _search(mesh, collection, request, allow_s=allow_s)
            stage.of(response.timing)
            stage.detail = f"{len(response.hits)} passages of {collection}"
    except ServiceFailure:
        return []
    pages: dict[str, int] = {}
    return [from_hit(hit, pages.setdefault(hit.id, first_page + len(pages))) for hit in response.hits]


async def _search(mesh: Mesh, collection: str, request: SearchRequest, *, allow_s: float) -> SearchResponse:
    try:
        return await mesh.search(collection, request, allow_s=allow_s)
    except ServiceRejected as failure:
        if failure.status == NOT_FOUND:
            detail = f"there is no collection {collection!r}"
            raise ServiceRejected(failure.service, detail, status=failure.status) from failure
        raise


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
