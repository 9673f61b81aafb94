"""The classifier: `POST /classify`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, TypedDict

import httpx
import numpy as np
from fastapi import APIRouter, Depends, FastAPI
from numpy.typing import NDArray

from proto.base import Degradation, Readiness
from proto.classify import ClassifyRequest, ClassifyResponse
from services.classifier import svm
from services.classifier.examples import read_questions
from services.classifier.in_context import Demonstrations, InContext, candidates, uncertain
from services.classifier.settings import ClassifierSettings
from services.classifier.svm import ModelError, Questions, Svm
from services.classifier.taxonomy import HEADS, Labels, above, classification
from services.kit import app as kit
from services.kit.batcher import Batcher
from services.kit.budget import Budget, current_budget
from services.kit.client import http_client
from services.kit.encoder import Encoder
from services.kit.errors import ServiceFailure
from services.kit.generator import generator
from services.kit.precision import choose_precision
from services.kit.telemetry import Metrics

# English prose; an estimate will do, since it only bounds the queue.
CHARS_PER_TOKEN = 4
# A short question and a long one.
WARM_UPS = ("which request is the first?", "which of two requests that came at once was the first one of the day? " * 6)
# Reserved for sending the reply.
REPLY_S = 0.02


@dataclass(frozen=True, slots=True)
class Result:
    """The model's labels of a query, and the query's vector."""

    labels: Labels
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Model:
    """The encoder, the SVM on top of it, the thresholds of `auto`, and demonstrations for the LLM."""

    encoder: Encoder
    svm: Svm
    thresholds: dict[str, float]
    demonstrations: Demonstrations

    def run(self, queries: Sequence[str]) -> list[Result]:
        """Labels and vectors of a batch."""
        vectors = self.encoder.encode(queries).vectors
        labels = self.svm.predict(Questions(queries, vectors))
        return list(map(Result, labels, vectors))


class State(TypedDict):
    """The state of the handlers."""

    model: Model
    batcher: Batcher[str, Result]
    in_context: InContext
    settings: ClassifierSettings
    metrics: Metrics


CurrentState = Annotated[State, Depends(kit.state_of)]
router = APIRouter()


@router.post("/classify", summary="Domain, dynamism and type of a question.", tags=["classify"])
async def post_classify(body: ClassifyRequest, state: CurrentState) -> ClassifyResponse:
    """Classify by the SVM, by the LLM, or by the LLM where the SVM is unsure (`auto`).

    The SVM's labels stand wherever the LLM fails or the time is short; `degraded` says so.
    """
    batched = await state["batcher"].submit(body.query)
    mode = state["settings"].classifier_mode if body.mode == "default" else body.mode
    labels, degraded = await _refine(body, batched.result, mode, state)
    metrics = state["metrics"]
    metrics.took("classify", queue=batched.queue_ms, inference=batched.inference_ms)
    metrics.fell_short(degraded)
    modes = {head: prediction.mode for head, prediction in labels.items()}
    return ClassifyResponse(
        classification=classification(above(labels, body.min_domain_certainty)),
        mode=modes["domain"] if len({*modes.values()}) == 1 else ", ".join(map(" ".join, modes.items())),
        degraded=degraded,
        timing=batched.timing,
    )


async def _refine(
    body: ClassifyRequest, result: Result, mode: str, state: State
) -> tuple[Labels, tuple[Degradation, ...]]:
    """The SVM's labels, overruled by the LLM's where the mode has it and time allows."""
    if mode == "svm":
        return result.labels, ()
    heads = list(HEADS) if mode == "in-context" else uncertain(result.labels, state["model"].thresholds)
    if not heads:
        return result.labels, ()
    settings = state["settings"]
    budget = current_budget.get() or Budget(settings.max_deadline_s)
    allow_s = budget.allow(settings.classifier_llm_cap_s, reserve_s=REPLY_S)
    if allow_s < settings.classifier_llm_min_s:
        return result.labels, (Degradation(stage="generator", reason="skipped", detail="too little time for the LLM"),)
    try:
        replies = await state["in_context"].classify(body.query, result.vector, allow_s=allow_s, heads=heads)
    except ServiceFailure as failure:
        return result.labels, (Degradation(stage=failure.service, reason=failure.reason, detail=failure.detail[:500]),)
    return {**result.labels, **replies}, ()


async def _ready(state: State) -> Readiness:
    model, trouble = state["model"], state["batcher"].trouble
    precision = model.encoder.precision
    return Readiness(
        ready=not trouble,
        service="classifier",
        model=f"{svm.MODE}/{model.encoder.name}",
        device=precision.device,
        precision=precision.dtype,
        detail=trouble or precision.reason,
    )


def load_model(settings: ClassifierSettings) -> Model:
    """Load encoder, SVM and thresholds, and run them once; takes seconds.

    Raises:
        ModelError: the model file may not be loaded, or was trained on another encoder's vectors.
    """
    classifier = svm.load(settings.classifier_model)
    encoder = Encoder(
        settings.classifier_encoder,
        precision=choose_precision(
            settings.precision,
            model=settings.classifier_encoder,
            threads=settings.classifier_threads,
            limit=settings.cpu_isa,
        ),
        batch_tokens=settings.classifier_batch_tokens,
    )
    encoder.load()
    if encoder.name != classifier.encoder:
        raise ModelError(
            f"{settings.classifier_model} was trained on {classifier.encoder}, not on {encoder.name}: "
            "set CRAGMESH_CLASSIFIER_ENCODER, or run `cragmesh classifier train`"
        )
    examples = candidates(read_questions())
    demonstrations = Demonstrations(examples, encoder.encode([example.question for example in examples]).vectors)
    thresholds = svm.read_thresholds(settings.classifier_model.with_name(svm.CARD))
    model = Model(encoder, classifier, thresholds, demonstrations)
    model.encoder.warm_up()
    for question in WARM_UPS:
        model.run([question])
    return model


def create_app(
    settings: ClassifierSettings | None = None, *, transport: httpx.AsyncBaseTransport | None = None
) -> FastAPI:
    """The classifier's application; its model is loaded and warmed before it takes requests.

    `transport` reaches the generator; tests put a whole application behind it.
    """
    settings = settings or ClassifierSettings()
    metrics = Metrics("classifier")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(http_client(transport))
            model = await asyncio.to_thread(load_model, settings)
            batcher = Batcher(
                model.run,
                cost=lambda query: len(query) // CHARS_PER_TOKEN,
                max_batch_cost=settings.classifier_batch_tokens,
                max_queue_cost=settings.classifier_queue_tokens,
            )
            await stack.enter_async_context(batcher.running())
            llm = in_context(settings, http, model.demonstrations)
            yield State(model=model, batcher=batcher, in_context=llm, settings=settings, metrics=metrics)

    return kit.create_app(
        summary="Domain, dynamism and type of a question, with calibrated certainties.",
        settings=settings,
        lifespan=lifespan,
        router=router,
        ready=_ready,
        metrics=metrics,
    )


def in_context(settings: ClassifierSettings, http: httpx.AsyncClient, demonstrations: Demonstrations) -> InContext:
    """The generator as a classifier."""
    return InContext(
        generator(settings, http, breaker=settings.breaker()),
        demonstrations,
        how=settings.classifier_demonstrations,
        consistency=settings.classifier_consistency,
        samples=settings.classifier_samples,
    )
