"""`/v1/models` and `/v1/chat/completions`: each strategy is a model, with a collection `cragmesh/adaptive@notes`."""

import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter, ValidationError

from proto.answer import AnswerRequest, AnswerResponse, StageEvent
from services.gateway.answering import answer
from services.gateway.asking import Given, State, answered, events, seconds_left, strategy_of
from services.gateway.mesh import NoCollection
from services.gateway.openai.completion import DONE, Naming, chunk, chunks, completion, frame, stage_line
from services.gateway.openai.errors import documented, error_of
from services.gateway.openai.wire import (
    OWNER,
    ChatRequest,
    CollectionNames,
    UnknownModel,
    model_name,
    parse_model,
    to_answer_request,
)
from services.gateway.strategies import STRATEGIES, Strategy
from services.kit.concurrency import all_of
from services.kit.errors import ServiceFailure
from services.kit.faults import faults_of, in_words
from services.kit.telemetry import log, request_id

router = APIRouter(prefix="/v1", tags=["openai"], responses=documented())
STARTED = int(time.time())
# A slow or missing retriever does not hold up the list of strategies, nor a question, of whose time it has a tenth.
LISTING_S = 2.0
_NAMES = TypeAdapter[tuple[str, ...]](CollectionNames)


@router.get("/models", summary="The strategies, as models; the default one with each collection too.")
async def list_models(state: Given) -> dict[str, Any]:
    """The collections are those that the caller may read; chat clients offer what stands here and nothing else."""
    default = state["settings"].default_strategy
    names = sorted(STRATEGIES, key=lambda name: (name != default, name))
    models = [_model(state, name) for name in names]
    try:
        readable = (await state["mesh"].collections(allow_s=min(LISTING_S, seconds_left()))).collections
    except ServiceFailure as failure:
        log.warning("models without collections", error=str(failure))
        readable = ()
    described = ({"id": f"{models[0]['id']}@{item.name}", "description": f"Reads {item.name}."} for item in readable)
    return {"object": "list", "data": [*models, *(models[0] | model for model in described)]}


@router.get("/models/{model:path}", summary="A strategy, as a model.")
async def retrieve_model(model: str, state: Given) -> dict[str, Any]:
    strategy, collections = parse_model(model, sorted(STRATEGIES), state["settings"].default_strategy)
    try:
        await _look_up(_NAMES.validate_python(collections), model, state)
    except ValidationError as error:
        raise UnknownModel(model, f"collections: {in_words(faults_of(error))}") from error
    return _model(state, strategy) | {"id": model}


async def _look_up(collections: Iterable[str], model: str, state: State) -> None:
    """Look a model's collections up; where the retriever does not answer in time, they are taken to be there.

    Raises:
        UnknownModel: one is not there, or the caller may not read it.
    """
    mesh, allow_s = state["mesh"], min(LISTING_S, seconds_left() / 10)
    try:
        await all_of(mesh.require_collection(name, allow_s=allow_s) for name in collections)
    except NoCollection as failure:
        raise UnknownModel(model, failure.detail) from failure
    except ServiceFailure:
        # An answer from them names the retriever in `degraded`.
        return


def _model(state: State, strategy: str) -> dict[str, Any]:
    return {
        "id": model_name(strategy),
        "object": "model",
        "created": STARTED,
        "owned_by": OWNER,
        "description": STRATEGIES[strategy].describe(state["mesh"], state["settings"]),
    }


@router.post("/chat/completions", summary="Answer the last turn of a conversation.", response_model=None)
async def create_chat_completion(body: ChatRequest, state: Given) -> Any:
    """The last turn is condensed to one question where it points back; a system message is a hint and no instruction.

    With `stream` the stages arrive as `reasoning_content`, then the judged answer in one chunk with its sources as
    annotations. An abstention is a message that says so.
    """
    naming, request, strategy = await _accepted(body, state)
    if not body.stream:
        return completion(naming, await answered(request, strategy, state))
    include_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
    stream = _stream(naming, request, strategy, state, include_usage=include_usage)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-store"})


async def complete(state: State, body: ChatRequest) -> dict[str, Any]:
    """A completion of a batch."""
    naming, request, strategy = await _accepted(body, state)
    return completion(naming, await answer(request, strategy, state))


async def _accepted(body: ChatRequest, state: State) -> tuple[Naming, AnswerRequest, Strategy]:
    """A chat request in the mesh's terms; raises as `to_answer_request`, `strategy_of` and `_look_up` do."""
    strategies, default = sorted(STRATEGIES), state["settings"].default_strategy
    request = to_answer_request(body, strategies, default)
    strategy = strategy_of(request, state)
    # Those of `collections` are named in `degraded` where they are not there, as at `/answer`.
    await _look_up(parse_model(body.model, strategies, default)[1], body.model, state)
    return Naming(f"chatcmpl-{request_id()}", body.model, int(time.time())), request, strategy


async def _stream(
    naming: Naming, request: AnswerRequest, strategy: Strategy, state: State, *, include_usage: bool
) -> AsyncIterator[bytes]:
    yield frame(chunk(naming, {"role": "assistant", "content": ""}))
    async for event in events(request, strategy, state):
        match event:
            case StageEvent():
                if line := stage_line(event):
                    yield frame(chunk(naming, {"reasoning_content": line}))
            case AnswerResponse():
                for piece in chunks(naming, event, include_usage=include_usage):
                    yield frame(piece)
            case _:
                yield frame(error_of(event.model_dump(mode="json")))
    yield DONE.encode()
