"""Pages to ranked passages: worker processes parse, one thread embeds and ranks, a cache keeps pages."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial

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
from services.retriever.turns import turns
from services.retriever.workers import PageFailed, PagePool, PageTimeout

# Requests that may wait for the model.
MAX_QUEUED = 64
# Passages, and the number of chunks that they were chosen from.
_Ranked = tuple[tuple[RetrievedPassage, ...], int]
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


class Engine:
    """The retriever without its HTTP.

    Attributes:
        encoder: loaded while the engine runs.
        pages: the processes that parse, while the engine runs.
    """

    encoder: Encoder
    pages: PagePool

    def __init__(self, settings: RetrieverSettings) -> None:
        self._settings = settings
        self._cache = PageCache(settings.page_cache_mib * MIB)
        # One request at a time: it is hundreds of texts, which the encoder batches by itself.
        self._turns: Batcher[Callable[[], _Ranked], _Ranked] = turns(MAX_QUEUED)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Engine"]:
        """Load and warm up, serve while the context is open, and stop the workers."""
        settings = self._settings
        self.pages = PagePool(
            workers=settings.page_workers,
            memory_mib=settings.page_worker_mib,
            preload=("services.retriever.pages", "services.retriever.collections.documents"),
        )
        try:
            await asyncio.to_thread(self._load)
            async with self._turns.running():
                await self.retrieve(RetrieveRequest(query="what is in its place?", pages=WARM_UPS))
                yield self
        finally:
            await asyncio.to_thread(self.pages.close)

    async def retrieve(self, request: RetrieveRequest) -> RetrieveResponse:
        """Rank the passages of a request's pages.

        Raises:
            Overloaded: too many requests wait for the model.
            DeadlineExceeded: the budget ended before the model was free.
        """
        began = time.monotonic()
        distinct, degraded = drop_duplicates([page.html for page in request.pages])
        options = PageOptions(
            extractor=request.extractor,
            chunker=request.chunker,
            parent_chars=request.parent_chars,
            tables=request.tables,
            tokenizer=str(bundled_model() / "tokenizer.json") if request.chunker == "tokens" else "",
        )
        keys = {i: (content_key(request.pages[i].html), options, request.pages[i].name) for i in distinct}
        cached = {index: page for index, key in keys.items() if (page := self._cache.get(key))}
        processed = await self._process({i: request.pages[i] for i in distinct if i not in cached}, options)
        degraded += [page for page in processed.values() if isinstance(page, Degradation)]
        pages = cached | {index: page for index, page in processed.items() if isinstance(page, ProcessedPage)}
        degraded += filter(None, (_shortfall(index, page) for index, page in pages.items()))
        extracted = time.monotonic()
        batched = await self._turns.submit(partial(self._rank, request, dict(sorted(pages.items())), keys))
        ended = time.monotonic()
        passages, chunks = batched.result
        return RetrieveResponse(
            passages=passages,
            degraded=tuple(degraded),
            chunks=chunks,
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
        self.encoder = Encoder(settings.encoder_model, precision=precision, usage=usage)
        self.encoder.name = name
        self.encoder.load()
        self.encoder.warm_up()

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
                    return await self.pages.run(process_page, page.html, options, page.name, timeout_s=timeout_s)
            except (PageTimeout, TimeoutError) as error:
                return Degradation(stage=stage, reason="timeout", detail=str(error) or "no worker was free in time")
            except PageFailed as error:
                return Degradation(stage=stage, reason="failed", detail=str(error))

        results = await all_of(process(index, page) for index, page in pages.items())
        return dict(zip(pages, results, strict=True))

    # Below: in the model's thread

    def _rank(
        self, request: RetrieveRequest, processed: Mapping[int, ProcessedPage | SearchablePage], keys: Mapping[int, Key]
    ) -> _Ranked:
        """The passages of pages, new or from the cache, by their index in the request; and the number of all chunks."""
        indexes = list(processed)
        pages = [SearchablePage(page) if isinstance(page, ProcessedPage) else page for page in processed.values()]
        fields = [f"{request.pages[i].name} {request.pages[i].snippet}" for i in indexes] if request.page_fields else ()
        hits = rank(
            request.query,
            pages,
            self.encoder,
            ranking=request.ranking,
            recall_k=request.recall_k,
            fields=fields,
            prefilter=request.prefilter,
        )
        for index, page in zip(indexes, pages, strict=True):
            self._cache.put(keys[index], page)
        return _passages(hits, pages, indexes, request.top_n), sum(len(page.children) for page in pages)


def _shortfall(index: int, page: ProcessedPage | SearchablePage) -> Degradation | None:
    """What `degraded` says of a page that was parsed; None where all its text is searched."""
    stage = f"page:{index}"
    if page.is_empty:
        return Degradation(stage=stage, reason="empty")
    if page.unread:
        return Degradation(stage=stage, reason="skipped", detail="; ".join(page.unread))
    return None


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
