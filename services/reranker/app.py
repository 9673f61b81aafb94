"""The reranker: `POST /rerank`, in the request shape of Cohere's and Jina's, and `POST /read`, an extractive reader."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, TypedDict

from fastapi import APIRouter, Depends, FastAPI

from proto.base import Degradation, Readiness
from proto.read import ReadRequest, ReadResponse
from proto.rerank import RerankRequest, RerankResponse, RerankResult
from services.kit import app as kit
from services.kit.batcher import Batcher
from services.kit.budget import current_budget
from services.kit.errors import Unavailable
from services.kit.precision import DtypeSetting, choose_precision
from services.kit.reader import NoReader, Reader, Reading
from services.kit.telemetry import Metrics, log
from services.reranker.definitions import chosen
from services.reranker.reading import RESERVE_S, Question
from services.reranker.scorers import Pairs, Scorer, build_scorer
from services.reranker.settings import RerankerSettings

SHIPPED_READER = Path(__file__).parent / "reader"
# English prose; an estimate will do, since it only bounds the queues.
CHARS_PER_TOKEN = 4

# Scores, and the number of passages that a part of the scorer had no time for.
Scored = tuple[list[float], int]


class State(TypedDict):
    """The state of the handlers.

    Attributes:
        batcher: in front of the scorer.
        reader: None where there is none; `reader_problem` then says why.
        readings: in front of the reader, with a thread of its own, so that a reading does not wait for a reranking.
    """

    scorer: Scorer
    batcher: Batcher[Pairs, Scored]
    reader: Reader | None
    reader_problem: str
    readings: Batcher[Question, list[Reading]]
    metrics: Metrics


CurrentState = Annotated[State, Depends(kit.state_of)]
router = APIRouter()


@router.post("/rerank", summary="Passages by relevance to the query, best first.", tags=["rerank"])
async def post_rerank(body: RerankRequest, state: CurrentState) -> RerankResponse:
    """Score each document against the query; `relevance_score` is comparable within one model."""
    budget = current_budget.get()
    pairs = Pairs(body.query, body.documents, budget.deadline if budget else math.inf, reading=body.reading)
    batched = await state["batcher"].submit(pairs)
    scores, unread = batched.result
    order = sorted(range(len(scores)), key=lambda index: -scores[index])[: body.top_n]
    metrics = state["metrics"]
    degraded = []
    if unread:
        detail = f"there was no time to read {unread} of {len(scores)} passages"
        degraded.append(Degradation(stage="rerank", reason="timeout", detail=detail))
    metrics.fell_short(degraded)
    metrics.took("rerank", queue=batched.queue_ms, inference=batched.inference_ms)
    return RerankResponse(
        model=f"{state['scorer'].name}/{state['scorer'].model}",
        results=tuple(
            RerankResult(
                index=index,
                relevance_score=scores[index],
                document=body.documents[index] if body.return_documents else "",
            )
            for index in order
        ),
        timing=batched.timing,
        degraded=tuple(degraded),
    )


@router.post("/read", summary="Where passages answer a question, word for word.", tags=["read"])
async def post_read(body: ReadRequest, state: CurrentState) -> ReadResponse:
    """The best spans of each passage and of all, with the probability that none says it; 503 without a reader."""
    reader, metrics = state["reader"], state["metrics"]
    if reader is None:
        raise Unavailable(state["reader_problem"])
    budget = current_budget.get()
    question = Question(reader, body, budget.deadline - RESERVE_S if budget else math.inf)
    batched = await state["readings"].submit(question)
    metrics.took("read", queue=batched.queue_ms, inference=batched.inference_ms)
    response = question.response(batched.result, batched.timing)
    metrics.fell_short(response.degraded)
    return response


async def _ready(state: State) -> Readiness:
    scorer, trouble = state["scorer"], state["batcher"].trouble
    # Without the reader the service is ready, since it still ranks passages.
    reader_problem = state["reader_problem"] or state["readings"].trouble
    return Readiness(
        ready=not trouble,
        service="reranker",
        model=f"{scorer.name}/{scorer.model}",
        device=scorer.precision.device,
        precision=scorer.precision.dtype,
        detail=trouble or scorer.precision.reason + (f"; no reader: {reader_problem}" if reader_problem else ""),
    )


def _load(settings: RerankerSettings) -> Scorer:
    model = chosen(settings)
    precision = choose_precision(
        settings.precision, model=model.model, threads=settings.threads, limit=settings.cpu_isa
    )
    scorer = build_scorer(
        model.scorer, model=model.model, precision=precision, batch_tokens=settings.reranker_batch_tokens
    )
    scorer.load()
    scorer.warm_up()
    return scorer


def load_reader(settings: RerankerSettings) -> tuple[Reader | None, str]:
    """The warm reader, or the reason for its absence."""
    if not settings.reader:
        return None, "CRAGMESH_READER is off"
    # It runs on ONNX Runtime only, unlike the scorers.
    dtype: DtypeSetting = settings.precision if settings.precision in ("fp32", "int8") else "auto"
    precision = choose_precision(dtype, device="cpu", threads=settings.threads, limit=settings.cpu_isa)
    try:
        reader = Reader(settings.reader_weights or SHIPPED_READER, precision)
    except NoReader as error:
        log.warning("no reader", why=str(error))
        return None, str(error)
    reader.warm_up()
    return reader, ""


def create_app(settings: RerankerSettings | None = None) -> FastAPI:
    """The reranker's application; its model is loaded and warmed before it takes requests."""
    settings = settings or RerankerSettings()
    metrics = Metrics("reranker")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        scorer = await asyncio.to_thread(_load, settings)
        reader, reader_problem = await asyncio.to_thread(load_reader, settings)
        scorer.reader = reader

        def run(batch: Sequence[Pairs]) -> list[Scored]:
            return [(scorer.score(pairs), scorer.unread) for pairs in batch]

        batcher = Batcher(
            run,
            cost=lambda pairs: sum(len(pairs.query) + len(text) for text in pairs.passages) // CHARS_PER_TOKEN,
            # Scorers batch the passages of a request; with several requests in a batch one would wait for the other.
            max_batch_cost=1,
            max_queue_cost=settings.reranker_queue_tokens,
        )
        scorer.others_wait = lambda: batcher.queued_cost > 0
        readings: Batcher[Question, list[Reading]] = Batcher(
            lambda batch: [question.read() for question in batch],
            cost=lambda question: question.chars // CHARS_PER_TOKEN,
            max_batch_cost=1,
            max_queue_cost=settings.reader_queue_tokens,
        )
        async with batcher.running(), readings.running():
            yield State(
                scorer=scorer,
                batcher=batcher,
                reader=reader,
                reader_problem=reader_problem,
                readings=readings,
                metrics=metrics,
            )

    return kit.create_app(
        summary="Passages by relevance to a query, and where they answer it.",
        settings=settings,
        lifespan=lifespan,
        router=router,
        ready=_ready,
        metrics=metrics,
    )
