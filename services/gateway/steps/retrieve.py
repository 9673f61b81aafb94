"""Step `retrieve`: passages from the pages that came with the question, and from a collection."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Self

from proto.answer import SearchResult
from proto.base import MAX_PASSAGE_CHARS
from proto.collections import Filter, SearchHit, SearchRequest
from proto.options import Options
from proto.retrieve import PREFILTER, ChunkerName, ExtractorName, Page, RankingName, RetrieveRequest
from services.gateway.context import Context
from services.gateway.evidence import Evidence, from_hit, from_passage
from services.gateway.steps.rerank import best_pages, rerank
from services.gateway.steps.search import searched
from services.kit.concurrency import all_of
from services.kit.errors import ServiceFailure

# db3, section 2.2: of more pages the snippets choose.
PAGES = 5
# Of each of a collection's lists, before they are fused.
CANDIDATES = 150
# Of a collection, what goes on to the reranker: of 50 it finds the answer no more often, in 2.5 times the time.
POOL = 20
# What a chunk of a collection has, more often than not less: so many tokens of context make room for one more.
PASSAGE_TOKENS = 200

# The knobs of `Retrieval` and of `reranked` that a request may set.
RETRIEVAL_OPTIONS = frozenset(("extractor", "chunker", "chunk_chars", "ranking", "prefilter", "recall_k", "tables"))
RERANKING_OPTIONS = RETRIEVAL_OPTIONS | {"rerank", "rerank_k"}


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How a strategy finds passages.

    Args:
        recall_k: passages of the pages, and of a collection as many up to 20.
        rerank_k: that are kept after reranking, where there is any.
        fills: whether more are kept where the generator is shown more than the embedded one.
        chunk_chars: characters that are shown of a chunk; 0 is the chunker's own.
        prefilter: chunks that are embedded at most, chosen by BM25.
        page_fields: whether a chunk is matched with its page's name and snippet.
        reading: whether the extractive reader has a say in the reranking.
    """

    recall_k: int
    rerank_k: int = 0
    fills: bool = False
    chunker: ChunkerName = "passages"
    chunk_chars: int = 0
    ranking: RankingName = "default"
    extractor: ExtractorName = "resiliparse"
    prefilter: int = PREFILTER
    tables: bool = True
    page_fields: bool = False
    reading: bool = False

    def heeding(self, options: Options) -> Self:
        """The same with what a request sets for `RetrieveRequest`."""
        return replace(self, **{name: getattr(options, name) for name in options.given & RETRIEVAL_OPTIONS})


async def retrieve(context: Context, pages: Sequence[int], retrieval: Retrieval, *, allow_s: float) -> list[Evidence]:
    """Passages of the chosen pages and of the collections, best first; the pages' snippets when the retriever fails.

    Their scores do not compare, so they take turns.

    Args:
        pages: indexes of those to search.
    """
    retrieval = retrieval.heeding(context.options)
    of_pages = _of_pages(context, pages, retrieval, allow_s=allow_s)
    if not context.question.collections:
        return await of_pages
    of_collections = _of_collections(context, top_n=retrieval.recall_k, allow_s=allow_s)
    turns = zip_longest(*await all_of((of_pages, of_collections)))
    return [item for turn in turns for item in turn if item is not None]


async def reranked(context: Context, retrieval: Retrieval) -> list[Evidence]:
    """The best passages of the best pages: pages by their snippets, `recall_k` passages, `rerank_k` after reranking.

    Of a collection, up to 20 passages more are reranked. Pages of the web are searched for first, where they are
    wanted.
    """
    context = await searched(context)
    settings = context.settings
    pages = await best_pages(context, top_n=PAGES, allow_s=context.before_generation(settings.rerank_cap_s))
    found = await retrieve(context, pages, retrieval, allow_s=context.before_generation(settings.retrieve_cap_s))
    room = context.context_tokens // PASSAGE_TOKENS if retrieval.fills else 0
    top_n = context.options.rerank_k or max(retrieval.rerank_k, room)
    allow_s = context.before_generation(settings.rerank_cap_s)
    return await rerank(context, found, top_n=top_n, allow_s=allow_s, reading=retrieval.reading)


def pages_request(query: str, pages: Sequence[SearchResult], retrieval: Retrieval) -> RetrieveRequest:
    """What the retriever is asked of pages."""
    return RetrieveRequest(
        query=query,
        pages=tuple(map(_page, pages)),
        extractor=retrieval.extractor,
        chunker=retrieval.chunker,
        parent_chars=retrieval.chunk_chars,
        ranking=retrieval.ranking,
        prefilter=retrieval.prefilter,
        tables=retrieval.tables,
        page_fields=retrieval.page_fields,
        recall_k=retrieval.recall_k,
        top_n=retrieval.recall_k,
    )


def collection_request(query: str, recall_k: int, filters: tuple[Filter, ...] = ()) -> SearchRequest:
    """What the retriever is asked of a collection."""
    return SearchRequest(queries=(query,), candidates=CANDIDATES, top_n=min(recall_k, POOL), filters=filters)


async def _of_pages(context: Context, pages: Sequence[int], retrieval: Retrieval, *, allow_s: float) -> list[Evidence]:
    if not pages:
        return []
    run, results = context.run, context.question.search_results
    request = pages_request(context.question.query, [results[index] for index in pages], retrieval)
    try:
        async with run.stage("retrieve") as stage:
            response = await context.mesh.retrieve(request, allow_s=allow_s)
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


async def _of_collections(context: Context, *, top_n: int, allow_s: float) -> list[Evidence]:
    """Passages of the collections, taken in turns; each document counts as a page, behind those of the question."""
    question, run = context.question, context.run
    request = collection_request(question.query, top_n, question.filters)

    async def hits(name: str) -> list[tuple[str, SearchHit]] | ServiceFailure:
        try:
            response = await context.mesh.search(name, request, allow_s=allow_s)
        except ServiceFailure as failure:
            run.degrade(failure.service, failure.reason, failure.detail)
            return failure
        stage.of(response.timing)
        return [(name, hit) for hit in response.hits]

    try:
        async with run.stage("search") as stage:
            replies = await all_of(map(hits, question.collections))
            found = [reply for reply in replies if not isinstance(reply, ServiceFailure)]
            stage.detail = f"{sum(map(len, found))} passages of {', '.join(question.collections)}"
            if not found:
                raise next(reply for reply in replies if isinstance(reply, ServiceFailure))
    except ServiceFailure:
        return []
    first = len(question.search_results)
    pages: dict[tuple[str, str], int] = {}
    kept = [item for turn in zip_longest(*found) for item in turn if item is not None][: request.top_n]
    return [from_hit(hit, pages.setdefault((name, hit.id), first + len(pages))) for name, hit in kept]


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
