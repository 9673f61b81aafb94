"""From a question to pages: what the engine finds, fetched side by side, within the caller's time."""

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain, zip_longest

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from proto.answer import SearchResult
from proto.base import MAX_PAGE_CHARS, Degradation, StageTiming
from proto.web import WebSearchRequest, WebSearchResponse
from services.kit.budget import Budget
from services.kit.client import ServiceClient
from services.kit.concurrency import all_of
from services.kit.documents import as_html, decoded
from services.kit.errors import BadReply, ServiceFailure
from services.kit.telemetry import Metrics, log
from services.searcher.addresses import Policy
from services.searcher.cache import Cache
from services.searcher.engines.base import Engine, Hit
from services.searcher.errors import Failed, NotFetched, Refused, TooSlow
from services.searcher.fetch import Fetcher, Page
from services.searcher.queries import queries

ENGINE = "search_engine"
# Of the caller's time, for the reply's way.
RESERVE_S = 0.2
# Of one reply, as bytes of pages: thrice as many as UTF-8 in JSON still fit into what a client reads.
MAX_BYTES = 8 * 1024 * 1024
MAX_TITLE_CHARS, MAX_URL_CHARS, MAX_DATE_CHARS = 1_000, 8_192, 200

_HITS = TypeAdapter(list[Hit])
# Nothing that a page shows; each takes six bytes in JSON.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Found(BaseModel):
    """A page as it is answered and kept; `cut` where there was more of it than is read."""

    model_config = ConfigDict(frozen=True)

    result: SearchResult
    cut: bool = False
    cached: bool = False


class Searcher:
    """Asks one engine and fetches what it finds.

    Args:
        client: of the engine.
        policy: chooses among what is found; the fetcher has its own word.
    """

    def __init__(
        self, engine: Engine, client: ServiceClient, fetcher: Fetcher, policy: Policy, cache: Cache, metrics: Metrics
    ) -> None:
        self._engine = engine
        self.client = client
        self._fetcher = fetcher
        self._policy = policy
        self._cache = cache
        self._metrics = metrics

    async def search(self, request: WebSearchRequest, budget: Budget, *, count: int, cap_s: float) -> WebSearchResponse:
        """Pages for a question before its deadline; what was not to be had is named.

        Args:
            count: queries of a question, 1 or 2.
            cap_s: seconds that the engine gets.
        """
        asked = queries(request.query, request.query_time or datetime.now(UTC), count)
        degraded: list[Degradation] = []
        lists = await all_of(self._hits(query, budget.allow(cap_s, reserve_s=RESERVE_S), degraded) for query in asked)
        found_ms = budget.elapsed_ms()
        self._metrics.took(ENGINE, elapsed=found_ms)
        hits = self._chosen(lists, request.top_n)
        results, cached = await self._fetched(hits, budget, degraded)
        elapsed_ms = budget.elapsed_ms()
        self._metrics.took("fetch", elapsed=elapsed_ms - found_ms)
        for item in degraded:
            self._metrics.degraded.labels("searcher", item.stage.partition(":")[0], item.reason).inc()
        return WebSearchResponse(
            search_results=tuple(results),
            queries=tuple(asked),
            degraded=tuple(degraded),
            cached_pages=cached,
            timing=StageTiming(elapsed_ms=round(elapsed_ms, 1)),
        )

    async def _hits(self, query: str, allow_s: float, degraded: list[Degradation]) -> list[Hit]:
        call = self._engine.call(query)
        key = f"hits {type(self._engine).__name__} {call.path} {call.body}"
        if (kept := await self._kept(key, "hits")) is not None:
            return _HITS.validate_json(kept)
        body = None if call.body is None else json.dumps(call.body).encode()
        try:
            reply = await self.client.request(call.method, call.path, body, allow_s=allow_s)
            hits = _read(self._engine, reply)
        except ServiceFailure as failure:
            failed = Degradation(stage=ENGINE, reason=failure.reason, detail=failure.detail[:500])
            if failed not in degraded:
                degraded.append(failed)
            return []
        await self._cache.put(key, _HITS.dump_json(hits))
        return hits

    def _chosen(self, lists: Sequence[Sequence[Hit]], top_n: int) -> list[Hit]:
        """The first hits of all lists in turn, each once; what may not be asked makes room for the next."""
        chosen: dict[str, Hit] = {}
        for hit in chain.from_iterable(zip_longest(*lists)):
            if hit is None or len(chosen) == top_n:
                continue
            try:
                url = str(self._policy.check(hit.url))
            except Refused:
                continue
            chosen.setdefault(url, hit)
        return list(chosen.values())

    async def _fetched(
        self, hits: Sequence[Hit], budget: Budget, degraded: list[Degradation]
    ) -> tuple[list[SearchResult], int]:
        """Results of the hits in their order, those that are late without their pages; how many the cache had."""
        tasks = [asyncio.create_task(self._page(hit)) for hit in hits]
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=budget.allow(reserve_s=RESERVE_S))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        results: list[SearchResult] = []
        size = cached = 0
        for index, (hit, task) in enumerate(zip(hits, tasks, strict=True)):
            found, why = _outcome(hit, task)
            size += len(found.result.page_result)
            result = found.result
            if size > MAX_BYTES:
                result, why = result.model_copy(update={"page_result": ""}), Refused("no room beside the other pages")
            if why is not None:
                degraded.append(Degradation(stage=f"page:{index}", reason=why.reason, detail=str(why)[:500]))
            results.append(result)
            cached += found.cached
        return results, cached

    async def _page(self, hit: Hit) -> "Found":
        """A hit with its page.

        Raises:
            NotFetched: it is not to be had.
        """
        key = f"page {hit.url}"
        if (kept := await self._kept(key, "pages")) is not None:
            found = Found.model_validate_json(kept)
            return Found(result=found.result.model_copy(update=_of(hit)), cut=found.cut, cached=True)
        found = await asyncio.to_thread(_found, hit, await self._fetcher.page(hit.url))
        await self._cache.put(key, found.model_dump_json().encode())
        return found

    async def _kept(self, key: str, name: str) -> bytes | None:
        kept = await self._cache.get(key)
        self._metrics.looked_up(name, hits=kept is not None, misses=kept is None)
        return kept


def _read(engine: Engine, reply: bytes) -> list[Hit]:
    try:
        return engine.hits(reply)
    except ValidationError as error:
        raise BadReply(ENGINE, f"{error.error_count()} errors against its API") from error


def _outcome(hit: Hit, task: "asyncio.Task[Found]") -> tuple[Found, NotFetched | None]:
    """What a task has found, or what the engine says of the page; and why there is no more."""
    error = TooSlow("not there when the time was up") if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, NotFetched):
        # Whatever a site has found in us costs its page.
        log.error("a page failed", error=type(error).__name__, exc_info=error)
        error = Failed("by a fault of ours")
    if error is not None:
        return Found(result=SearchResult(**_of(hit), page_url=hit.url[:MAX_URL_CHARS])), error
    found = task.result()
    return found, Refused("cut off where it is longer than we read") if found.cut else None


def _found(hit: Hit, page: Page) -> Found:
    text = decoded(page.body, page.charset)
    html = as_html(text) if page.kind == "text/plain" else text
    result = SearchResult(
        **_of(hit),
        page_url=page.url[:MAX_URL_CHARS],
        page_last_modified=(page.last_modified or hit.published)[:MAX_DATE_CHARS],
        page_result=_UNPRINTABLE.sub(" ", html)[:MAX_PAGE_CHARS],
    )
    return Found(result=result, cut=page.cut)


def _of(hit: Hit) -> dict[str, str]:
    return {"page_name": hit.title[:MAX_TITLE_CHARS], "page_snippet": hit.snippet}
