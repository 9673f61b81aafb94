"""The KG-API-parser: `POST /kg/query`, `POST /kg/execute`, `GET /kg/catalogue`."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypedDict

import httpx
from fastapi import APIRouter, Depends, FastAPI, Request
from sqlalchemy import Engine, inspect, select
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
from services.kg.live import LiveExecutor
from services.kg.settings import KgSettings
from services.kg.store.demo import ensure_demo
from services.kg.store.engine import deadline, open_store
from services.kg.store.tables import source
from services.kit import app as kit
from services.kit.budget import Budget, current_budget
from services.kit.client import ServiceClient, http_client
from services.kit.encoder import Encoder
from services.kit.errors import InvalidRequest, ServiceFailure, Unavailable
from services.kit.generator import generator
from services.kit.precision import choose_precision
from services.kit.telemetry import Metrics, log

# How often the store is asked, and what it gets to answer: a busy one is not gone.
STORE_LOOK_EVERY_S = 5.0
STORE_LOOK_S = 3.0


class StoreLook:
    """Whether the store answers, asked beside the probes: one that hangs must not hold them too."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._answers = True
        self._began = time.monotonic()
        self._look: asyncio.Task[None] | None = None

    def answers(self) -> bool:
        """What the last look saw, or that the one under way takes too long; the next look begins when it is time."""
        now = time.monotonic()
        if self._look is not None:
            return self._answers and now - self._began < STORE_LOOK_S
        if now - self._began >= STORE_LOOK_EVERY_S:
            self._began = now
            self._look = asyncio.create_task(self._ask())
        return self._answers

    async def close(self) -> None:
        """Wait for a look that is under way, which is short where the store answers at all."""
        if self._look is not None:
            await asyncio.wait({self._look}, timeout=STORE_LOOK_S)

    async def _ask(self) -> None:
        try:
            await asyncio.to_thread(self._select)
            self._answers = True
        except (KgError, SQLAlchemyError) as error:
            log.error("the store does not answer", error=str(error))
            self._answers = False
        finally:
            self._look = None

    def _select(self) -> None:
        with deadline(STORE_LOOK_S), self._engine.connect() as connection:
            connection.execute(select(source.c.name).limit(1)).all()


class State(TypedDict):
    """What handlers get."""

    answering: Answering
    store: StoreLook
    settings: KgSettings
    metrics: Metrics
    detail: str
    catalogue: Catalogue


Given = Annotated[State, Depends(kit.state_of)]
router = APIRouter()


@router.post("/kg/query", summary="Facts for a question, with the program that fetched them.", tags=["kg"])
async def post_query(body: KgRequest, state: Given) -> KgResponse:
    """Write a program for the question, run it, and say its facts in words."""
    caps = {"write_cap_s": state["settings"].kg_write_cap_s, "execute_cap_s": _execute_cap_s(state["settings"])}
    return await _facts(state, body.domain, lambda budget: state["answering"].answer(body, budget, **caps))


@router.post("/kg/execute", summary="Facts of a program.", tags=["kg"])
async def post_execute(body: KgExecuteRequest, state: Given) -> KgResponse:
    """Run a program in the regularized language; a statement that is wrong says so and does not cost the others."""
    cap_s = _execute_cap_s(state["settings"])
    return await _facts(
        state, body.domain, lambda budget: state["answering"].execute(body, budget, execute_cap_s=cap_s)
    )


async def _facts(state: State, domain: str, facts: Callable[[Budget], Awaitable[KgResponse]]) -> KgResponse:
    if domain not in state["catalogue"].domains:
        message = f"there is no domain {domain}: {', '.join(state['catalogue'].domains)}"
        raise InvalidRequest(message, errors=(FieldError(field="domain", message=message),))
    try:
        response = await facts(current_budget.get() or Budget(state["settings"].max_deadline_s))
    except (ServiceFailure, TimeoutError) as error:
        raise Unavailable(f"no program was written or run: {str(error) or 'timeout'}") from error
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
    return KgCatalogue(functions=tuple(_function(function) for function in state["catalogue"].functions))


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


def _execute_cap_s(settings: KgSettings) -> float:
    return settings.kg_live_cap_s if settings.kg_live_url else settings.kg_execute_cap_s


async def _ready(request: Request) -> Readiness:
    state: State = await kit.state_of(request)
    answers = state["store"].answers()
    detail = state["detail"] if answers else "the store does not answer"
    return Readiness(ready=answers, service="kg", model="", device="cpu", detail=detail)


def _open(settings: KgSettings, catalogue: Catalogue) -> tuple[Engine, Catalogue, dict[str, str], str]:
    """The store, the domains that it has tables of, what its sources know until when, and a line about it."""
    ensure_demo(settings.kg_database)
    engine = open_store(settings.kg_database)
    with deadline(10), engine.connect() as connection:
        tables = set(inspect(connection).get_table_names())
        rows = connection.execute(select(source.c.name, source.c.domain, source.c.as_of, source.c.rows)).all()
    as_of: dict[str, str] = {}
    for _, domain, last, _ in rows:
        as_of[domain] = max(as_of.get(domain, ""), last or "")
    detail = f"{sum(row[3] for row in rows):,} rows of {', '.join(sorted({row[0] for row in rows}))}"
    # The store was made before the folder was there; the bundled ones are in every store.
    empty = [one.name for one in catalogue.domains.values() if not (one.bundled or one.tables.keys() <= tables)]
    if empty:
        detail += f"; nothing is loaded of {', '.join(empty)}: run `cragmesh kg load`"
        log.warning("domains without tables are left out", domains=empty)
        catalogue = Catalogue(one for one in catalogue.domains.values() if one.name not in empty)
    return engine, catalogue, as_of, detail


def create_app(settings: KgSettings | None = None, *, transport: httpx.AsyncBaseTransport | None = None) -> FastAPI:
    """The KG-API-parser's application.

    `transport` is how the generator is reached; tests put a whole application behind it.

    Raises:
        BrokenDomain: a folder of `CRAGMESH_KG_DOMAINS` is no domain's; the message names file, line, key and reason.
    """
    settings = settings or KgSettings()
    every = read_catalogue(CATALOGUE, settings.kg_domains)
    lexicons(every)
    metrics = Metrics("kg")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        try:
            engine, catalogue, as_of, detail = await asyncio.to_thread(_open, settings, every)
        except SQLAlchemyError as error:
            raise StoreError(f"the knowledge graph cannot be read: {error}") from error
        encoder = await asyncio.to_thread(_encoder, settings)
        async with http_client(transport) as http:
            names = NameIndex(engine, catalogue)
            executor = Executor(engine, names, catalogue)
            llm = generator(settings, http, breaker=settings.breaker())
            taught: dict[str, Any] = {"adapter": settings.kg_adapter, "examples": settings.kg_examples}
            writers = await asyncio.to_thread(build_writers, llm, catalogue, names, encoder, **taught)
            answering = Answering(
                *(executor, writers, as_of, llm),
                adapter=settings.kg_adapter,
                base_model_writes=settings.kg_base_model_writes,
                workers=settings.kg_workers,
                # A live API's names are its own.
                spotter=None if settings.kg_live_url else Spotter(engine, catalogue),
                live=await asyncio.to_thread(_live, settings, http, catalogue),
            )
            store = StoreLook(engine)
            # A live API is not ours to be asked for nothing.
            if settings.kg_live_url is None:
                await _warm_up(answering, settings, catalogue)
            try:
                state: Any = {"answering": answering, "store": store, "settings": settings, "metrics": metrics}
                yield state | {"detail": detail, "catalogue": catalogue}
            finally:
                await store.close()
                answering.close()
                engine.dispose()

    return kit.create_app(
        service="kg",
        summary="Facts of a knowledge graph for a question.",
        settings=settings,
        lifespan=lifespan,
        router=router,
        ready=_ready,
        metrics=metrics,
    )


def _live(settings: KgSettings, http: httpx.AsyncClient, catalogue: Catalogue) -> LiveExecutor | None:
    """What runs programs against a live API; None where there is none."""
    if settings.kg_live_url is None:
        return None
    client = ServiceClient("live", str(settings.kg_live_url), http, breaker=settings.breaker())
    return LiveExecutor(client, catalogue)


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
        budget = Budget(settings.max_deadline_s)
        try:
            await answering.answer(
                request, budget, write_cap_s=settings.kg_write_cap_s, execute_cap_s=settings.kg_execute_cap_s
            )
        except (KgError, TimeoutError) as error:
            log.warning("the warm-up failed", domain=domain.name, error=str(error))
