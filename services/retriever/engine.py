"""Pages to ranked passages: worker processes parse, one thread embeds and ranks, a cache keeps pages."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from proto.base import Degradation, StageTiming
from proto.retrieve import Page, RetrievedPassage, RetrieveRequest, RetrieveResponse
from services.kit.batcher import Batcher
from services.kit.budget import Budget, current_budget
from services.kit.concurrency import all_of
from services.kit.encoder import Encoder, bundled_model
from services.kit.encoders import MIB, EncoderPool, definitions, named
from services.kit.precision import DtypeSetting, Precision, choose_precision
from services.retriever.corpus import Key, PageCache, SearchablePage
from services.retriever.pages import PageOptions, ProcessedPage, content_key, drop_duplicates, process_page
from services.retriever.ranking import Hit, rank
from services.retriever.settings import RetrieverSettings
from services.retriever.workers import PageFailed, PagePool, PageTimeout

# Jobs that may wait for the model; the caller's deadline drops them from the queue by itself.
MAX_QUEUED_JOBS = 64
# As many pages as a search returns, with a table each, so that every worker process parses at least one.
_PARAGRAPHS = "".join(
    f"<p>Paragraph {number} finds everything in its place. {'It waits no longer than the third. ' * 12}</p>"
    for number in range(12)
)
_TABLE = "<table><tr><th>request</th><th>waits</th></tr><tr><td>first</td><td>1 s</td></tr></table>"
WARM_UPS = tuple(
    Page(name=f"Warm-up {page}", html=f"<html lang='en'><body><h1>Page {page}</h1>{_PARAGRAPHS}{_TABLE}</body></html>")
    for page in range(5)
)


def precision_for(settings: RetrieverSettings, dtype: DtypeSetting, model: str) -> Precision:
    """Where and in which number format an encoder runs; `auto` takes the settings' format where the model allows it."""
    if dtype == "auto" and not (settings.precision == "int8" and model):
        dtype = settings.precision
    return choose_precision(dtype, model=model, threads=settings.threads, limit=settings.cpu_isa)


def encoder_pool(settings: RetrieverSettings) -> EncoderPool:
    """The pool of the encoders that collections name, none loaded."""
    return EncoderPool(
        definitions(settings.encoders_file),
        max_bytes=settings.encoders_mib * MIB,
        choose=lambda dtype, model: precision_for(settings, dtype, model),
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """One request's ranking: its pages by index in the request, new or from the cache."""

    request: RetrieveRequest
    pages: dict[int, ProcessedPage | SearchablePage]
    keys: dict[int, Key]


@dataclass(frozen=True, slots=True)
class _Ranked:
    passages: tuple[RetrievedPassage, ...]
    chunks: int


class Engine:
    """The retriever without its HTTP."""

    def __init__(self, settings: RetrieverSettings) -> None:
        self._settings = settings
        self._cache = PageCache(settings.page_cache_mib * 2**20)
        self._encoder = Encoder(settings.encoder_model)
        # One job at a time: a job is hundreds of texts, which the encoder batches by itself.
        self._batcher: Batcher[_Job, _Ranked] = Batcher(
            self._rank_all, cost=lambda _: 1, max_batch_cost=1, max_queue_cost=MAX_QUEUED_JOBS
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Engine"]:
        """Load and warm up, serve while the context is open, and stop the workers."""
        settings = self._settings
        pool = PagePool(
            workers=settings.page_workers,
            memory_mib=settings.page_worker_mib,
            preload=("services.retriever.pages", "services.retriever.collections.documents"),
        )
        self._pool = pool
        try:
            await asyncio.to_thread(self._load)
            async with self._batcher.running():
                await self.retrieve(RetrieveRequest(query="what is in its place?", pages=WARM_UPS))
                yield self
        finally:
            await asyncio.to_thread(pool.close)

    @property
    def encoder(self) -> Encoder:
        """The encoder, loaded while the engine runs."""
        return self._encoder

    @property
    def pages(self) -> PagePool:
        """The processes that parse, while the engine runs."""
        return self._pool

    def describe(self) -> dict[str, str]:
        """Model, device, precision and its reason, as in `Readiness`."""
        precision = self._encoder.precision
        return {
            "model": self._encoder.name,
            "device": precision.device,
            "precision": precision.dtype,
            "detail": precision.reason,
        }

    async def retrieve(self, request: RetrieveRequest) -> RetrieveResponse:
        """Rank the passages of a request's pages.

        Raises:
            Overloaded: too many requests wait for the model.
            DeadlineExceeded: the budget ended before the model was free.
        """
        began = time.monotonic()
        distinct, dropped = drop_duplicates([page.html for page in request.pages])
        degraded = [
            Degradation(
                stage=f"page:{page.index}",
                reason=page.reason,
                detail=f"same as page {page.of}" if page.of is not None else "",
            )
            for page in dropped
        ]
        options = self._options(request)
        keys = {i: (content_key(request.pages[i].html), options, request.pages[i].name) for i in distinct}
        cached = {index: page for index, key in keys.items() if (page := self._cache.get(key))}
        processed = await self._process({i: request.pages[i] for i in distinct if i not in cached}, options)
        degraded += [page for page in processed.values() if isinstance(page, Degradation)]
        pages = cached | {index: page for index, page in processed.items() if isinstance(page, ProcessedPage)}
        extracted = time.monotonic()
        batched = await self._batcher.submit(_Job(request, dict(sorted(pages.items())), keys))
        ended = time.monotonic()
        return RetrieveResponse(
            passages=batched.result.passages,
            degraded=tuple(degraded),
            chunks=batched.result.chunks,
            cached_pages=len(cached),
            timing=StageTiming(
                elapsed_ms=(ended - began) * 1000, queue_ms=batched.queue_ms, inference_ms=batched.inference_ms
            ),
            extract_ms=(extracted - began) * 1000,
            rank_ms=batched.inference_ms,
        )

    def _load(self) -> None:
        settings = self._settings
        precision = precision_for(settings, settings.precision, settings.encoder_model)
        name, usage = named(settings.encoder_model, definitions(settings.encoders_file))
        self._encoder = Encoder(settings.encoder_model, precision=precision, usage=usage)
        self._encoder.name = name
        self._encoder.load()
        self._encoder.warm_up()

    def _options(self, request: RetrieveRequest) -> PageOptions:
        tokenizer = str(bundled_model() / "tokenizer.json") if request.chunker == "tokens" else ""
        return PageOptions(
            extractor=request.extractor,
            chunker=request.chunker,
            parent_chars=request.parent_chars,
            tables=request.tables,
            tokenizer=tokenizer,
        )

    async def _process(self, pages: dict[int, Page], options: PageOptions) -> dict[int, ProcessedPage | Degradation]:
        budget = current_budget.get() or Budget(self._settings.max_deadline_s)
        timeout_s = budget.allow(self._settings.page_timeout_s, reserve_s=self._settings.rank_reserve_s)

        async def process(index: int, page: Page) -> ProcessedPage | Degradation:
            stage = f"page:{index}"
            if timeout_s <= 0:
                return Degradation(stage=stage, reason="timeout", detail="no time left to parse it")
            try:
                # Bounds the wait for a worker too, or a queue of slow pages would use up the time to rank.
                async with asyncio.timeout(budget.allow(reserve_s=self._settings.rank_reserve_s)):
                    return await self._pool.run(process_page, page.html, options, page.name, timeout_s=timeout_s)
            except (PageTimeout, TimeoutError) as error:
                return Degradation(stage=stage, reason="timeout", detail=str(error) or "no worker was free in time")
            except PageFailed as error:
                return Degradation(stage=stage, reason="failed", detail=str(error))

        results = await all_of(process(index, page) for index, page in pages.items())
        return dict(zip(pages, results, strict=True))

    # Below: in the model's thread

    def _rank_all(self, jobs: Sequence[_Job]) -> list[_Ranked]:
        return [self._rank(job) for job in jobs]

    def _rank(self, job: _Job) -> _Ranked:
        request = job.request
        indexes = list(job.pages)
        pages = [self._searchable(page) for page in job.pages.values()]
        fields = [f"{request.pages[i].name} {request.pages[i].snippet}" for i in indexes] if request.page_fields else ()
        hits = rank(
            request.query,
            pages,
            self._encoder,
            ranking=request.ranking,
            recall_k=request.recall_k,
            fields=fields,
            prefilter=request.prefilter,
        )
        for index, page in zip(indexes, pages, strict=True):
            self._cache.put(job.keys[index], page)
        return _Ranked(_passages(hits, pages, indexes, request.top_n), sum(len(page.children) for page in pages))

    def _searchable(self, page: ProcessedPage | SearchablePage) -> SearchablePage:
        return page if isinstance(page, SearchablePage) else SearchablePage(page, self._encoder.dimension)


def _passages(
    hits: Sequence[Hit], pages: Sequence[SearchablePage], indexes: Sequence[int], top_n: int
) -> tuple[RetrievedPassage, ...]:
    """Each hit's parent once, in the order of its best child."""
    passages: dict[tuple[int, str, int, int], RetrievedPassage] = {}
    for hit in hits:
        page = pages[hit.page]
        passage = page.passage(hit.child)
        key = (hit.page, passage.kind, passage.start, passage.end)
        if key not in passages:
            if len(passages) == top_n:
                break
            passages[key] = RetrievedPassage(
                text=passage.text,
                score=hit.score,
                page=indexes[hit.page],
                kind=passage.kind,
                start=passage.start,
                end=passage.end,
                match=page.children[hit.child].text,
            )
    return tuple(passages.values())
