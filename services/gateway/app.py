"""The gateway: `POST /answer`, as JSON or as server-sent events."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Annotated, Any

import httpx
from fastapi import APIRouter, FastAPI, Header
from fastapi.responses import StreamingResponse
from starlette.routing import Route

from proto.answer import MIN_BUDGET_S, AnswerRequest, AnswerResponse, StageEvent, Strategies, StrategyInfo
from proto.base import Problem, Readiness
from proto.feedback import FeedbackRequest, FeedbackResponse
from proto.papers import PapersRequest, PapersResponse
from services.gateway import access
from services.gateway.asking import Event, Given, State, answered, events, strategy_of
from services.gateway.batches.routes import router as batches
from services.gateway.collections import router as collections
from services.gateway.documents import router as documents
from services.gateway.errors import OwnForms
from services.gateway.feedback import Feedback
from services.gateway.health import Health, Services
from services.gateway.keys import KeyRing
from services.gateway.mcp.door import PATH, McpDoor
from services.gateway.mesh import Mesh
from services.gateway.openai.routes import complete
from services.gateway.openai.routes import router as openai
from services.gateway.page.routes import routes as page_routes
from services.gateway.papers.strategy import find_papers
from services.gateway.papers.weights import Weights
from services.gateway.places import MeshAdmission
from services.gateway.settings import GatewaySettings
from services.gateway.shared import SharedStore
from services.gateway.speed import GeneratorSpeed
from services.gateway.strategies import STRATEGIES, Strategy
from services.gateway.warm_up import warm_up
from services.kit import app as kit
from services.kit.client import http_client
from services.kit.concurrency import beside
from services.kit.telemetry import Metrics, log

EVENT_STREAM = "text/event-stream"
EVENT_NAMES: dict[type[Event], str] = {StageEvent: "stage", AnswerResponse: "answer", Problem: "problem"}


router = APIRouter()


@router.post(
    "/answer",
    summary="Answer a question before its deadline.",
    tags=["answer"],
    response_model=AnswerResponse,
    responses={200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}}}}, **kit.documented(401, 403)},
)
async def post_answer(body: AnswerRequest, state: Given, accept: Annotated[str, Header()] = "") -> Any:
    """Answer from the pages (or the evidence) that come with the question.

    With `Accept: text/event-stream` the reply is one event `stage` for each stage that starts or ends, then one event
    `answer` with the same JSON as the plain reply, or one event `problem` with a problem document where the gateway
    failed: the status had gone out before.
    """
    strategy = strategy_of(body, state)
    if EVENT_STREAM in accept.lower():
        stream = _events(body, strategy, state)
        return StreamingResponse(stream, media_type=EVENT_STREAM, headers={"cache-control": "no-store"})
    return await answered(body, strategy, state)


async def _events(body: AnswerRequest, strategy: Strategy, state: State) -> AsyncIterator[bytes]:
    async for event in events(body, strategy, state):
        yield f"event: {EVENT_NAMES[type(event)]}\ndata: {event.model_dump_json()}\n\n".encode()


@router.post(
    "/papers",
    summary="The documents of a collection that answer a question, before its deadline.",
    tags=["answer"],
    responses=kit.documented(401, 403),
)
async def post_papers(body: PapersRequest, state: Given) -> PapersResponse:
    """Rank by all encoders of the collection and several forms of the question; each score that made a rank is told."""
    return await find_papers(body, state)


@router.post(
    "/feedback", summary="Say whether an answer was right.", tags=["answer"], responses=kit.documented(401, 403, 404)
)
async def post_feedback(body: FeedbackRequest, state: Given) -> FeedbackResponse:
    """Within an hour of the answer, by the key that asked; kept with question and answer where a folder is set."""
    await state["feedback"].judge(access.current_caller.get(), body)
    return FeedbackResponse(kept_days=state["settings"].feedback_days)


@router.get("/strategies", summary="The strategies that a question may name.", tags=["answer"])
async def get_strategies(state: Given) -> Strategies:
    default = state["settings"].default_strategy
    return Strategies(
        strategies=tuple(
            StrategyInfo(
                name=strategy.name,
                summary=strategy.describe(state["mesh"], state["settings"]),
                default=strategy.name == default,
                options=tuple(sorted(strategy.options)),
                parts=dict(strategy.parts),
            )
            for strategy in STRATEGIES.values()
        )
    )


@router.get("/services", summary="How each service of the mesh is, within a second.", tags=["operations"])
async def get_services(state: Given) -> Services:
    """Readiness, model, device, circuit breaker and queue of each; nobody waits for one that is gone."""
    return await state["health"].services()


async def _ready(state: State) -> Readiness:
    """The gateway is ready once it has started: it answers, degraded, without its services, and says which are away."""
    gateway, *others = (await state["health"].services()).services
    details = (gateway.detail, state["mesh"].weighing(state["settings"]).detail)
    return Readiness(
        ready=True,
        service="gateway",
        detail="; ".join(filter(None, details)),
        dependencies={service.name: service.ready for service in others},
    )


def create_app(
    settings: GatewaySettings | None = None, *, transport: httpx.AsyncBaseTransport | None = None
) -> FastAPI:
    """The gateway's application; its settings are the environment's, its transport the network, when None.

    Raises:
        ValueError: the default strategy does not exist, or the weights of `/papers` cannot be read.
    """
    settings = settings or GatewaySettings()
    metrics = Metrics("gateway")
    if settings.default_strategy not in STRATEGIES:
        raise ValueError(f"default strategy {settings.default_strategy!r} is none of {sorted(STRATEGIES)}")

    paper_weights = Weights.read(settings.papers_weights)
    speed, store = GeneratorSpeed.configured(settings), SharedStore.connect(settings.valkey_url)
    admission = MeshAdmission(settings, speed, store)
    keys = KeyRing(
        key=settings.api_key,
        file=settings.api_keys_file,
        per_minute=settings.rate_per_minute,
        store=store,
        hosts=settings.host_names,
    )
    routes, door = APIRouter(), McpDoor()
    if settings.mcp:
        # The first, since routes are tried in turn: behind all others it took half a millisecond more.
        for path in (PATH, f"{PATH}/"):
            routes.routes.append(Route(path, endpoint=door, methods=["POST"], include_in_schema=False))
    routes.include_router(router)
    routes.include_router(openai)
    routes.include_router(batches)
    routes.include_router(collections)
    routes.include_router(documents)
    if settings.page:
        routes.include_router(page_routes(settings))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(http_client(transport))
            stack.push_async_callback(store.close)
            mesh = Mesh.connect(settings, http, speed)
            await stack.enter_async_context(beside(mesh.calibration.watch()))
            feedback = Feedback(settings.feedback_dir, settings.feedback_days)
            await stack.enter_async_context(beside(feedback.expire()))
            health = Health(mesh, http, settings, admission)
            stack.push_async_callback(health.close)
            state = State(
                mesh=mesh,
                settings=settings,
                metrics=metrics,
                paper_weights=paper_weights,
                health=health,
                feedback=feedback,
                places=admission.places,
                batches=None,
            )
            if settings.batches_database:
                from services.gateway.batches.runner import opened

                working = opened(settings, admission, store, partial(complete, state), keys.scope_of)
                state["batches"] = await stack.enter_async_context(working)
            if settings.mcp:
                await stack.enter_async_context(door.open(state))
            if settings.warm_up_s:
                await warm_up(state)
            if detail := mesh.weighing(settings).detail:
                log.warning("confidence", detail=detail)
            yield state

    app = kit.create_app(
        summary="Short, grounded, honest answers within 30 seconds.",
        settings=settings,
        lifespan=lifespan,
        router=routes,
        ready=_ready,
        metrics=metrics,
        admission=admission,
        guard=keys,
        min_deadline_s=MIN_BUDGET_S,
        files=frozenset({"/v1/files/{file_id}/content"}),
    )
    access.check(app.routes)
    openapi = app.openapi
    app.openapi = lambda: access.with_keys(openapi())  # type: ignore[method-assign]
    app.add_middleware(OwnForms)
    return app
