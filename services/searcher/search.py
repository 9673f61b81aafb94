"""From a question to pages: the engine's hits, fetched side by side, within the caller's time."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
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
# Of the caller's time, for the transfer of the reply.
RESERVE_S = 0.2
# Of one reply, as bytes of pages: thrice as many as UTF-8 in JSON still fit into what a client reads.
MAX_BYTES = 8 * 1024 * 1024
MAX_TITLE_CHARS, MAX_URL_CHARS, MAX_DATE_CHARS = 1_000, 8_192, 200

_HITS = TypeAdapter(list[Hit])
# No page shows them; each takes six bytes in JSON.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class PageOutcome(BaseModel):
    """A page as it is answered and cached; `cut` where it was longer than is read."""

    model_config = ConfigDict(frozen=True)

    result: SearchResult
    cut: bool = False
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Searcher:
    """Asks one engine and fetches its hits, of which the policy chooses; the fetcher checks again."""

    engine: Engine
    client: ServiceClient
    fetcher: Fetcher
    policy: Policy
    cache: Cache
    metrics: Metrics

    async def search(self, request: WebSearchRequest, budget: Budget, *, count: int, cap_s: float) -> WebSearchResponse:
        """Pages for a question before its deadline; `degraded` names those that are missing.

        The engine gets `count` queries, 1 or 2, and `cap_s` seconds.
        """
        texts = queries(request.query, request.query_time or datetime.now(UTC), count)
        degraded: list[Degradation] = []
        lists = await all_of(self._hits(text, budget.allow(cap_s, reserve_s=RESERVE_S), degraded) for text in texts)
        engine_ms = budget.elapsed_ms()
        self.metrics.took(ENGINE, elapsed=engine_ms)
        hits = self._chosen(lists, request.top_n)
        results, cached = await self._fetched(hits, budget, degraded)
        elapsed_ms = budget.elapsed_ms()
        self.metrics.took("fetch", elapsed=elapsed_ms - engine_ms)
        self.metrics.fell_short(degraded)
        return WebSearchResponse(
            search_results=tuple(results),
            queries=tuple(texts),
            degraded=tuple(degraded),
            cached_pages=cached,
            timing=StageTiming(elapsed_ms=round(elapsed_ms, 1)),
        )

    async def _hits(self, query: str, allow_s: float, degraded: list[Degradation]) -> list[Hit]:
        call = self.engine.call(query)
        key = f"hits {type(self.engine).__name__} {call.path} {call.body}"
        if (cached := await self._cached(key, "hits")) is not None:
            # Their texts are plain already.
            return [Hit.model_construct(**hit) for hit in json.loads(cached)]
        body = None if call.body is None else json.dumps(call.body).encode()
        try:
            reply = await self.client.request(call.method, call.path, body, allow_s=allow_s)
            try:
                hits = self.engine.hits(reply)
            except ValidationError as error:
                raise BadReply(ENGINE, f"{error.error_count()} errors against its API") from error
        except ServiceFailure as failure:
            failed = Degradation(stage=ENGINE, reason=failure.reason, detail=failure.detail[:500])
            if failed not in degraded:
                degraded.append(failed)
            return []
        await self.cache.put(key, _HITS.dump_json(hits))
        return hits

    def _chosen(self, lists: Sequence[Sequence[Hit]], top_n: int) -> list[Hit]:
        """The first hits of all lists in turn, each once; one that may not be fetched makes room for the next."""
        chosen: dict[str, Hit] = {}
        for hit in chain.from_iterable(zip_longest(*lists)):
            if hit is None or len(chosen) == top_n:
                continue
            try:
                url = str(self.policy.check(hit.url))
            except Refused:
                continue
            chosen.setdefault(url, hit)
        return list(chosen.values())

    async def _fetched(
        self, hits: Sequence[Hit], budget: Budget, degraded: list[Degradation]
    ) -> tuple[list[SearchResult], int]:
        """Results of the hits in their order, late ones without their pages; how many the cache had."""
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
            outcome, error = _outcome(hit, task)
            result = outcome.result
            size += len(result.page_result)
            if size > MAX_BYTES:
                result, error = result.model_copy(update={"page_result": ""}), Refused("no room beside the other pages")
            if error is not None:
                degraded.append(Degradation(stage=f"page:{index}", reason=error.reason, detail=str(error)[:500]))
            results.append(result)
            cached += outcome.cached
        return results, cached

    async def _page(self, hit: Hit) -> PageOutcome:
        """A hit with its page.

        Raises:
            NotFetched: the page cannot be fetched.
        """
        key = f"page {hit.url}"
        if (cached := await self._cached(key, "pages")) is not None:
            outcome = PageOutcome.model_validate_json(cached)
            return PageOutcome(result=outcome.result.model_copy(update=_of(hit)), cut=outcome.cut, cached=True)
        outcome = await asyncio.to_thread(_outcome_of, hit, await self.fetcher.page(hit.url))
        await self.cache.put(key, outcome.model_dump_json().encode())
        return outcome

    async def _cached(self, key: str, name: str) -> bytes | None:
        value = await self.cache.get(key)
        self.metrics.looked_up(name, hits=value is not None, misses=value is None)
        return value


def _outcome(hit: Hit, task: asyncio.Task[PageOutcome]) -> tuple[PageOutcome, NotFetched | None]:
    """A task's page, or the engine's summary of it; and the error that cost the page or its end."""
    error = TooSlow("not there when the time was up") if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, NotFetched):
        # A fault of ours that a site runs into costs its page.
        log.error("a page failed", error=type(error).__name__, exc_info=error)
        error = Failed("by a fault of ours")
    if error is not None:
        return PageOutcome(result=SearchResult(**_of(hit), page_url=hit.url[:MAX_URL_CHARS])), error
    outcome = task.result()
    return outcome, Refused("cut off where it is longer than we read") if outcome.cut else None


def _outcome_of(hit: Hit, page: Page) -> PageOutcome:
    text = decoded(page.body, page.charset)
    html = as_html(text) if page.kind == "text/plain" else text
    result = SearchResult(
        **_of(hit),
        page_url=page.url[:MAX_URL_CHARS],
        page_last_modified=(page.last_modified or hit.published)[:MAX_DATE_CHARS],
        page_result=_UNPRINTABLE.sub(" ", html)[:MAX_PAGE_CHARS],
    )
    return PageOutcome(result=result, cut=page.cut)


def _of(hit: Hit) -> dict[str, str]:
    return {"page_name": hit.title[:MAX_TITLE_CHARS], "page_snippet": hit.snippet}
