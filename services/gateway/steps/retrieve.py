"""Step `retrieve`: passages of the question's pages and of collections."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Self, TypeVar

from proto.answer import SearchResult
from proto.base import MAX_PASSAGE_CHARS
from proto.collections import Filter, SearchHit, SearchRequest
from proto.options import Options
from proto.retrieve import PREFILTER, ChunkerName, ExtractorName, Page, RankingName, RetrieveRequest
from services.gateway.context import Context
from services.gateway.evidence import Evidence, from_hit, from_passage
from services.gateway.steps.rerank import best_pages, rerank
from services.gateway.steps.search import with_web_pages
from services.kit.concurrency import all_of
from services.kit.errors import ServiceFailure

# db3, section 2.2: the best by their snippets.
PAGES = 5
# Of each of a collection's lists, before they are fused.
CANDIDATES = 150
# Passages of collections to rerank: of 50 the answer is found no more often, in 2.5 times the time.
POOL = 20
# An upper estimate of a chunk's tokens: so many more of context make room for one more.
PASSAGE_TOKENS = 200

# Fields of `Retrieval`, and knobs of `reranked`, that a request may set.
RETRIEVAL_OPTIONS = frozenset(("extractor", "chunker", "chunk_chars", "ranking", "prefilter", "recall_k", "tables"))
RERANKING_OPTIONS = RETRIEVAL_OPTIONS | {"rerank", "rerank_k"}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How a strategy finds passages.

    Args:
        recall_k: passages of the pages, and of collections as many up to POOL.
        rerank_k: passages after reranking.
        fills: whether a larger context gets more passages after reranking.
        chunk_chars: characters of a chunk in the prompt; 0 is the chunker's own.
        prefilter: the most chunks that are embedded, chosen by BM25.
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
        """The retrieval with the options of a request."""
        return replace(self, **{name: getattr(options, name) for name in options.given & RETRIEVAL_OPTIONS})


async def retrieve(context: Context, pages: Sequence[int], retrieval: Retrieval) -> list[Evidence]:
    """Passages of the pages and of the collections, best first.

    A page without text is read by its snippet; all pages are where the retriever fails.

    Pages and collections take turns, since their scores do not compare.

    Args:
        pages: indexes of those to search.
    """
    retrieval = retrieval.heeding(context.options)
    allow_s = context.before_generation(context.settings.retrieve_cap_s)
    of_pages = _of_pages(context, pages, retrieval, allow_s=allow_s)
    if not context.question.collections:
        return await of_pages
    of_collections = _of_collections(context, top_n=retrieval.recall_k, allow_s=allow_s)
    return _in_turns(await all_of((of_pages, of_collections)))


def _in_turns(lists: Iterable[Iterable[T]]) -> list[T]:
    return [item for turn in zip_longest(*lists) for item in turn if item is not None]


async def reranked(context: Context, retrieval: Retrieval) -> list[Evidence]:
    """The best passages of pages and collections.

    Reranked are `recall_k` passages of the best pages, of the web's too where it is searched, and up to POOL of the
    collections; `rerank_k` remain.
    """
    context = await with_web_pages(context)
    passages = await retrieve(context, await best_pages(context, top_n=PAGES), retrieval)
    room = context.context_tokens // PASSAGE_TOKENS if retrieval.fills else 0
    top_n = context.options.rerank_k or max(retrieval.rerank_k, room)
    return await rerank(context, passages, top_n=top_n, reading=retrieval.reading)


def pages_request(query: str, pages: Sequence[SearchResult], retrieval: Retrieval) -> RetrieveRequest:
    """The retriever's request for passages of pages."""
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
    """The retriever's request for passages of a collection."""
    return SearchRequest(queries=(query,), candidates=CANDIDATES, top_n=min(recall_k, POOL), filters=filters)


async def _of_pages(context: Context, pages: Sequence[int], retrieval: Retrieval, *, allow_s: float) -> list[Evidence]:
    if not pages:
        return []
    run, results = context.run, context.question.search_results
    request = pages_request(context.question.query, [results[index] for index in pages], retrieval)
    try:
        async with run.stage("retrieve") as stage:
            response = await context.mesh.retrieve(request, allow_s=allow_s)
            stage.add(response.timing)
            stage.detail = f"{len(response.passages)} passages of {response.chunks} chunks"
    except ServiceFailure:
        return snippets(results, pages)
    passages = [from_passage(passage, results, pages) for passage in response.passages if passage.page < len(pages)]
    empty = {item.stage for item in response.degraded if item.reason == "empty"}
    summarised = {
        name: index
        for number, index in enumerate(pages)
        if (name := f"page:{number}") in empty and results[index].page_snippet.strip()
    }
    run.degrade_all((item for item in response.degraded if item.stage not in summarised), pages=pages)
    return [*passages, *snippets(results, list(summarised.values() if passages else pages))]


async def _of_collections(context: Context, *, top_n: int, allow_s: float) -> list[Evidence]:
    """Passages of the collections in turns; each document counts as a page, behind those of the question."""
    question, run = context.question, context.run
    request = collection_request(question.query, top_n, question.filters)

    async def search(name: str) -> list[tuple[str, SearchHit]] | ServiceFailure:
        try:
            response = await context.mesh.search(name, request, allow_s=allow_s)
        except ServiceFailure as failure:
            run.degrade(failure.service, failure.reason, failure.detail)
            return failure
        stage.add(response.timing)
        return [(name, hit) for hit in response.hits]

    try:
        async with run.stage("search") as stage:
            results = await all_of(map(search, question.collections))
            lists = [result for result in results if not isinstance(result, ServiceFailure)]
            stage.detail = f"{sum(map(len, lists))} passages of {', '.join(question.collections)}"
            if not lists:
                raise next(result for result in results if isinstance(result, ServiceFailure))
    except ServiceFailure:
        return []
    first = len(question.search_results)
    pages: dict[tuple[str, str], int] = {}
    hits = _in_turns(lists)[: request.top_n]
    return [from_hit(hit, pages.setdefault((name, hit.id), first + len(pages))) for name, hit in hits]


def snippets(results: Sequence[SearchResult], pages: Sequence[int]) -> list[Evidence]:
    """The search engine's summaries of the pages."""
    return [
        Evidence(result.page_snippet[:MAX_PASSAGE_CHARS], index, result.page_name, result.page_url)
        for index, result in ((index, results[index]) for index in pages)
        if result.page_snippet.strip()
    ]


def _page(result: SearchResult) -> Page:
    return Page(
        name=result.page_name,
        url=result.page_url,
        snippet=result.page_snippet,
        html=result.page_result,
        last_modified=result.page_last_modified,
    )
