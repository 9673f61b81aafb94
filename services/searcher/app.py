"""The searcher: `POST /search`, pages of the web for a question. It alone reaches the internet."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, TypedDict

import httpx
from fastapi import APIRouter, Depends, FastAPI

from proto.base import Readiness
from proto.web import MAX_RESULTS, WebSearchRequest, WebSearchResponse
from services.kit import app as kit
from services.kit.admission import Admission
from services.kit.budget import Budget, current_budget
from services.kit.client import ServiceClient, http_client
from services.kit.telemetry import Metrics
from services.searcher.addresses import Policy, Resolve, Resolver
from services.searcher.cache import Cache
from services.searcher.engines import ENGINES
from services.searcher.fetch import Bounds, Fetcher
from services.searcher.robots import Robots
from services.searcher.search import ENGINE, Searcher
from services.searcher.settings import SearcherSettings

# Hits of a query: some of them may not be fetched.
HITS = 2 * MAX_RESULTS


class State(TypedDict):
    """The state of the handlers."""

    searcher: Searcher
    settings: SearcherSettings


CurrentState = Annotated[State, Depends(kit.state_of)]
router = APIRouter()


@router.post("/search", summary="Pages of the web for a question.", tags=["search"])
async def post_search(body: WebSearchRequest, state: CurrentState) -> WebSearchResponse:
    """Ask the search engine and fetch what it finds; what did not come in time is named, its summary given."""
    settings = state["settings"]
    budget = current_budget.get() or Budget(settings.max_deadline_s)
    return await state["searcher"].search(
        body, budget, count=settings.search_queries, cap_s=settings.search_engine_cap_s
    )


async def _ready(state: State) -> Readiness:
    client = state["searcher"].client
    is_ready = client.breaker.state != "open"
    return Readiness(
        ready=is_ready,
        service="searcher",
        model=state["settings"].search_engine,
        detail=f"asks {httpx.URL(client.base_url).host}" if is_ready else "the search engine does not answer",
    )


def create_app(
    settings: SearcherSettings | None = None,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    resolve: Resolve | None = None,
) -> FastAPI:
    """The searcher's application; `transport` reaches the search engine, and `resolve` turns a name into addresses."""
    settings = settings or SearcherSettings()
    metrics = Metrics("searcher")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        async with AsyncExitStack() as stack:
            searcher = await _searcher(settings, stack, metrics, transport, resolve)
            yield State(searcher=searcher, settings=settings)

    return kit.create_app(
        summary="Pages of the web for a question, fetched with care.",
        settings=settings,
        lifespan=lifespan,
        router=router,
        ready=_ready,
        metrics=metrics,
        admission=Admission(settings.searcher_max_in_flight),
    )


async def _searcher(
    settings: SearcherSettings,
    stack: AsyncExitStack,
    metrics: Metrics,
    transport: httpx.AsyncBaseTransport | None,
    resolve: Resolve | None,
) -> Searcher:
    """The searcher; the stack closes what it opens."""
    policy = Policy(
        allow=settings.search_allow_domains,
        deny=settings.search_deny_domains,
        networks=settings.search_allow_networks,
        ports=settings.search_ports,
    )
    cache = Cache(
        settings.search_cache_file, max_bytes=settings.search_cache_mib * 2**20, age_s=settings.search_cache_s
    )
    stack.callback(cache.close)
    if resolve is None:
        resolve = Resolver()
        stack.callback(resolve.close)
    agent, proxy = settings.search_user_agent, str(settings.search_proxy or "")
    fetcher = Fetcher(
        policy,
        resolve,
        Bounds(settings.search_page_cap_s, settings.search_page_kib * 1024, settings.search_redirects),
        agent=agent,
        robots=Robots(agent, cache) if settings.search_robots else None,
        proxy=proxy,
    )
    stack.push_async_callback(fetcher.aclose)
    kind = ENGINES[settings.search_engine]
    engine = kind(key=settings.search_api_key, language=settings.search_language, count=HITS)
    if proxy and kind.root and transport is None:
        transport = httpx.AsyncHTTPTransport(proxy=proxy)
    http = await stack.enter_async_context(http_client(transport))
    client = ServiceClient(
        ENGINE,
        kind.root or str(settings.searxng_url),
        http,
        breaker=settings.breaker(),
        headers={"user-agent": agent, **engine.headers},
    )
    return Searcher(engine, client, fetcher, policy, cache, metrics)
