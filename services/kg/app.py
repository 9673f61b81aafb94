"""The KG-API-parser: `POST /kg/query`, `POST /kg/execute`, `GET /kg/catalogue`."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, TypedDict

import httpx
from fastapi import APIRouter, Depends, FastAPI
from sqlalchemy.exc import SQLAlchemyError

from proto.base import FieldError, Readiness
from proto.kg import KgCatalogue, KgExecuteRequest, KgFunction, KgKey, KgRequest, KgResponse
from services.kg.answering import Answering
from services.kg.definition.domain import read_catalogue
from services.kg.domains import CATALOGUE
from services.kg.entities import NameIndex
from services.kg.errors import KgError, ParseError, StoreError
from services.kg.execute import Executor
from services.kg.generate import build_writers
from services.kg.generate.rules.lexicon import lexicons
from services.kg.generate.spans import Spotter
from services.kg.language.catalogue import Catalogue, Function
from services.kg.live.execute import LiveExecutor
from services.kg.serving import ServedGraph, Serving, Store, open_graph
from services.kg.settings import KgSettings
from services.kit import app as kit
from services.kit.budget import Budget, current_budget
from services.kit.client import ServiceClient, http_client
from services.kit.concurrency import beside
from services.kit.encoder import Encoder
from services.kit.errors import DeadlineExceeded, InvalidRequest, ServiceFailure, Unavailable
from services.kit.generator import generator
from services.kit.llm import LLM
from services.kit.precision import choose_precision
from services.kit.telemetry import Metrics, log


class State(TypedDict):
    """The objects that handlers share."""

    serving: Serving
    settings: KgSettings
    metrics: Metrics
    reads_until: float  # by the monotonic clock: until then it is ready once the generator has read the tables


Given = Annotated[State, Depends(kit.state_of)]
router = APIRouter()


@router.post("/kg/query", summary="Facts for a question, with the program that fetched them.", tags=["kg"])
async def post_query(body: KgRequest, state: Given) -> KgResponse:
    """Write a program for the question, run it, and say its facts in words."""
    return await _facts(state, body.domain, lambda answering, budget: answering.answer(body, budget))


@router.post("/kg/execute", summary="Facts of a program.", tags=["kg"])
async def post_execute(body: KgExecuteRequest, state: Given) -> KgResponse:
    """Run a program in the regularized language; a statement that is wrong says so and does not cost the others."""
    return await _facts(state, body.domain, lambda answering, budget: answering.execute(body, budget))


async def _facts(
    state: State, domain: str | None, facts: Callable[[Answering, Budget], Awaitable[KgResponse]]
) -> KgResponse:
    graph = state["serving"].graph
    domains = graph.store.catalogue.domains
    if domain is not None and domain not in domains:
        message = f"there is no domain {domain}: {', '.join(domains)}"
        raise InvalidRequest(message, errors=(FieldError(field="domain", message=message),))
    try:
        response = await facts(graph.answering, current_budget.get() or Budget(state["settings"].max_deadline_s))
    except TimeoutError as error:
        raise DeadlineExceeded("no program was written or run in time") from error
    except ServiceFailure as error:
        raise Unavailable(f"no program was written or run: {error}") from error
    except ParseError as error:
        fault = FieldError(field="program", message=str(error))
        raise InvalidRequest("the program is refused", errors=(fault,)) from error
    except StoreError as error:
        raise Unavailable(str(error)) from error
    state["metrics"].took("write", inference=response.write.elapsed_ms)
    state["metrics"].took("execute", inference=response.execute.elapsed_ms)
    return response


@router.get("/kg/catalogue", summary="Functions and keys that programs may use.", tags=["kg"])
async def get_catalogue(state: Given) -> KgCatalogue:
    return KgCatalogue(
        functions=tuple(_function(function) for function in state["serving"].graph.store.catalogue.functions)
    )


def _function(function: Function) -> KgFunction:
    return KgFunction(
        name=function.name,
        domain=function.domain,
        summary=function.summary,
        parameters=tuple(p.name if p.required else f"{p.name}?" for p in function.parameters),
        keys=tuple(KgKey(name=key.name, kind=key.kind, aliases=key.aliases) for key in function.keys),
        facets=tuple(function.facets),
        aliases=function.aliases,
    )


async def _ready(state: State) -> Readiness:
    serving = state["serving"]
    detail = serving.graph.store.detail if serving.answers else "the store does not answer"
    is_ready = serving.answers
    if is_ready and not serving.has_read and time.monotonic() < state["reads_until"]:
        is_ready, detail = False, "the generator reads the tables of your domains"
    return Readiness(ready=is_ready, service="kg", model="", device="cpu", detail=detail)


def create_app(settings: KgSettings | None = None, *, transport: httpx.AsyncBaseTransport | None = None) -> FastAPI:
    """The KG-API-parser's application.

    `transport` leads to the generator; tests put a whole application behind it.

    Raises:
        BrokenDomain: a folder of `CRAGMESH_KG_DOMAINS` is broken; the message names file, line, key and reason.
    """
    settings = settings or KgSettings()
    catalogue = read_catalogue(CATALOGUE, settings.kg_domains)
    lexicons(catalogue)
    metrics = Metrics("kg")
    reads_until = time.monotonic() + (settings.kg_reads_first_s if settings.kg_sql else 0)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        encoder = await asyncio.to_thread(_encoder, settings)
        async with http_client(transport) as http:
            llm = generator(settings, http, breaker=settings.breaker())

            async def make_graph() -> ServedGraph:
                store = await asyncio.to_thread(open_graph, settings.kg_database, catalogue)
                try:
                    answering = await _answering(settings, store, llm, encoder, http)
                except BaseException:
                    store.engine.dispose()
                    raise
                return ServedGraph(store, answering)

            try:
                serving = Serving(settings.kg_database, await make_graph(), make_graph, leave_s=settings.max_deadline_s)
            except SQLAlchemyError as error:
                raise StoreError(f"the knowledge graph cannot be read: {error}") from error
            try:
                async with AsyncExitStack() as stack:
                    await stack.enter_async_context(beside(serving.follow(settings.kg_follow_s)))
                    if settings.kg_sql:
                        # By a breaker of its own: a generator that starts later trips none that questions depend on.
                        ahead = serving.read_ahead(generator(settings, http), settings.kg_follow_s)
                        await stack.enter_async_context(beside(ahead))
                    yield State(serving=serving, settings=settings, metrics=metrics, reads_until=reads_until)
            finally:
                serving.graph.close()

    return kit.create_app(
        summary="Facts of a knowledge graph for a question.",
        settings=settings,
        lifespan=lifespan,
        router=router,
        ready=_ready,
        metrics=metrics,
    )


async def _answering(
    settings: KgSettings, store: Store, llm: LLM, encoder: Encoder, http: httpx.AsyncClient
) -> Answering:
    """An `Answering` over a store, warm."""
    catalogue = store.catalogue
    names = NameIndex(store.engine, catalogue)
    of_adapters = {"adapter": settings.kg_adapter, "sql_adapter": settings.kg_sql_adapter}
    writers = await asyncio.to_thread(
        build_writers, llm, catalogue, names, encoder, examples=settings.kg_examples, **of_adapters
    )
    executor = Executor(store.engine, names, catalogue)
    if settings.kg_live_url is not None:
        # A live API has names of its own, and gets no requests for a warm-up.
        client = ServiceClient("live", str(settings.kg_live_url), http, breaker=settings.breaker())
        live = await asyncio.to_thread(LiveExecutor, client, catalogue)
        return Answering(executor, writers, store.as_of, llm, settings, live=live)
    spotter = Spotter(store.engine, catalogue)
    answering = Answering(executor, writers, store.as_of, llm, settings, spotter=spotter)
    await _warm_up(answering, settings, catalogue)
    return answering


def _encoder(settings: KgSettings) -> Encoder:
    precision = choose_precision(
        settings.precision, model=settings.encoder_model, threads=settings.threads, limit=settings.cpu_isa
    )
    encoder = Encoder(settings.encoder_model, precision=precision)
    encoder.load()
    encoder.warm_up()
    return encoder


async def _warm_up(answering: Answering, settings: KgSettings, catalogue: Catalogue) -> None:
    """Answer a question of each domain by rules, so that the first request does not pay for statements and imports."""
    for domain in catalogue.domains.values():
        if not domain.warm_up:
            continue
        request = KgRequest(query=domain.warm_up, domain=domain.name, mode="rules")
        try:
            await answering.answer(request, Budget(settings.max_deadline_s))
        except (KgError, TimeoutError) as error:
            log.warning("the warm-up failed", domain=domain.name, error=str(error))
