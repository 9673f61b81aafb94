"""The retriever: `POST /retrieve`, and collections."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, TypedDict

from fastapi import APIRouter, Depends, FastAPI

from proto.base import Readiness
from proto.retrieve import RetrieveRequest, RetrieveResponse
from services.kit import app as kit
from services.kit.admission import Admission
from services.kit.batcher import Runs
from services.kit.telemetry import Metrics
from services.retriever.collections.routes import router as collections
from services.retriever.collections.service import CollectionService
from services.retriever.collections.store import Store
from services.retriever.engine import Engine
from services.retriever.settings import RetrieverSettings


class State(TypedDict):
    """The state of the handlers."""

    engine: Engine
    collections: CollectionService
    runs: Runs
    metrics: Metrics


CurrentState = Annotated[State, Depends(kit.state_of)]
router = APIRouter()


@router.post("/retrieve", summary="The passages of the pages that may answer the query.", tags=["retrieve"])
async def post_retrieve(body: RetrieveRequest, state: CurrentState) -> RetrieveResponse:
    """HTML to text, tables and chunks; chunks ranked against the query; their parents, best first.

    A page that cannot be parsed in time, has no text or more than 1,000,000 characters of it, is named in `degraded`;
    the others count.
    """
    with state["runs"].counted():
        response = await state["engine"].retrieve(body)
    metrics = state["metrics"]
    metrics.took("extract", inference=response.extract_ms)
    metrics.took("rank", queue=response.timing.queue_ms, inference=response.rank_ms)
    blank = sum(not page.html or page.html.isspace() for page in body.pages)
    repeated = sum(degradation.reason == "duplicate" for degradation in response.degraded)
    misses = len(body.pages) - blank - repeated - response.cached_pages
    metrics.looked_up("page", hits=response.cached_pages, misses=misses)
    metrics.fell_short(response.degraded)
    return response


router.include_router(collections)


async def _ready(state: State) -> Readiness:
    encoder, trouble = state["engine"].encoder, state["runs"].trouble
    precision = encoder.precision
    return Readiness(
        ready=not trouble,
        service="retriever",
        model=encoder.name,
        device=precision.device,
        precision=precision.dtype,
        detail="; ".join(filter(None, (trouble or precision.reason, state["collections"].warning))),
    )


def create_app(settings: RetrieverSettings | None = None, *, store: Store | None = None) -> FastAPI:
    """The retriever's application, with the settings' own store unless another is given.

    Its model is loaded and warmed before it takes requests.
    """
    settings = settings or RetrieverSettings()
    metrics = Metrics("retriever")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        async with (
            Engine(settings).running() as engine,
            CollectionService(settings, engine, store).running() as collections,
        ):
            yield State(engine=engine, collections=collections, runs=Runs(), metrics=metrics)

    return kit.create_app(
        summary="HTML pages in, the passages that may answer a query out; and collections to search.",
        settings=settings,
        lifespan=lifespan,
        router=router,
        ready=_ready,
        metrics=metrics,
        admission=Admission(settings.retriever_max_in_flight),
    )
