"""Requests as OpenAI's clients send them; what the mesh cannot do is refused in words.

Sampling parameters and limits of tokens are ignored: an answer is one short line and the same each time.
"""

from typing import Annotated, Any, Literal

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proto.answer import MAX_BUDGET_S, MAX_TURNS, MIN_BUDGET_S, AnswerRequest, SearchResult, Turn
from proto.base import MAX_PAGES, MAX_QUERY_CHARS, FieldError, Passage, QueryTime
from proto.collections import MAX_COLLECTIONS, MAX_FILTERS, CollectionName, Filter
from proto.options import Options
from services.kit.errors import MeshError, refusal

OWNER = "cragmesh"
CollectionNames = Annotated[tuple[CollectionName, ...], Field(max_length=MAX_COLLECTIONS)]
# A strategy, and as many collections as a question may have.
MAX_MODEL_CHARS = 600
# A conversation may be long; its end is what counts.
MAX_MESSAGES = 500
MAX_CONTENT_CHARS = 200_000
MAX_TURN_CHARS = 20_000
# Fields that the mesh cannot serve, and their values that ask for nothing. Tools may be offered, as chat clients do
# with every turn: `auto` allows a reply that calls none. A call that must be made is refused.
UNSERVED: dict[str, tuple[Any, ...]] = {
    "tool_choice": (None, "none", "auto"),
    "function_call": (None, "none", "auto"),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "audio": (None,),
    "modalities": (None, ["text"]),
    "web_search_options": (None,),
    "response_format": (None, {"type": "text"}),
}


class Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class Part(Wire):
    """A part of a message: text, or something that is refused."""

    type: Annotated[str, Field(max_length=64)]
    text: Annotated[str, Field(max_length=MAX_CONTENT_CHARS)] = ""


class ChatMessage(Wire):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str, Field(max_length=MAX_CONTENT_CHARS)] | list[Part] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class StreamOptions(Wire):
    include_usage: bool | None = False


class ChatRequest(Wire):
    """`POST /v1/chat/completions`; beside OpenAI's fields, pages and knobs of `POST /answer` under their names."""

    model: Annotated[str, Field(min_length=1, max_length=MAX_MODEL_CHARS)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[int | None, Field(ge=1, le=1)] = None
    tool_choice: Any = None
    function_call: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    audio: Any = None
    modalities: Any = None
    web_search_options: Any = None
    response_format: Any = None
    search_results: Annotated[tuple[SearchResult, ...], Field(max_length=MAX_PAGES)] = ()
    search: bool = False
    evidence: Annotated[tuple[Passage, ...], Field(max_length=MAX_PAGES)] = ()
    collection: CollectionName | None = None
    collections: CollectionNames = ()
    filters: Annotated[tuple[Filter, ...], Field(max_length=MAX_FILTERS)] = ()
    query_time: QueryTime | None = None
    budget_s: Annotated[float, Field(ge=MIN_BUDGET_S, le=MAX_BUDGET_S, allow_inf_nan=False)] = MAX_BUDGET_S
    options: Options = Field(default_factory=Options)


class UnknownModel(MeshError):
    """No strategy has the model's name, or there is no collection of those behind it; `hint` says which or what is."""

    status = 404
    title = "Model not found"

    def __init__(self, model: str, hint: str) -> None:
        detail = f"the model {model!r} does not exist: {hint}"
        super().__init__(detail, errors=(FieldError(field="model", message=detail),))


def model_name(strategy: str) -> str:
    return f"{OWNER}/{strategy}"


def parse_model(model: str, strategies: list[str], default: str) -> tuple[str, tuple[str, ...]]:
    """The strategy and the collections of a model's name: `cragmesh/adaptive@notes,handbook`.

    Raises:
        UnknownModel: there is no such strategy, or no collection behind an `@`.
    """
    name, at, collections = model.partition("@")
    owner, _, strategy = name.rpartition("/")
    if name == OWNER:
        strategy = default
    names = tuple(collections.split(",")) if at else ()
    if owner not in ("", OWNER) or strategy not in strategies or not all(names):
        hint = f"there are {', '.join(map(model_name, strategies))}, each with @collection behind it"
        raise UnknownModel(model, hint)
    return strategy, names


def to_answer_request(request: ChatRequest, strategies: list[str], default: str) -> AnswerRequest:
    """The mesh's request: the last message is the question, those before it are turns.

    Raises:
        UnknownModel: as `parse_model`.
        InvalidRequest: the mesh cannot serve a field, or there is no question.
        RequestValidationError: `POST /answer` would refuse it.
    """
    strategy, collections = parse_model(request.model, strategies, default)
    _refuse_unserved(request)
    messages = request.messages
    question = messages[-1].text.strip() if messages[-1].role == "user" else ""
    if not question:
        raise refusal(f"messages.{len(messages) - 1}", "the last message must be the user's, with a text")
    if len(question) > MAX_QUERY_CHARS:
        field = f"messages.{len(messages) - 1}.content"
        raise refusal(field, "the question is too long", f"at most {MAX_QUERY_CHARS} characters")
    turns = [turn for message in messages[:-1] if (turn := _turn(message)) is not None]
    try:
        return AnswerRequest(
            query=question,
            turns=tuple(turns[-MAX_TURNS:]),
            strategy=strategy,
            collection=request.collection,
            collections=tuple(dict.fromkeys((*collections, *request.collections))),
            filters=request.filters,
            search_results=request.search_results,
            search=request.search,
            evidence=request.evidence,
            query_time=request.query_time,
            budget_s=request.budget_s,
            options=request.options,
        )
    except ValidationError as error:
        # As `/answer` would refuse: the name of a collection, the size of all pages together.
        raise of_body(error) from error


def of_body(error: ValidationError, sent: Any = None) -> RequestValidationError:
    """The faults of a request's body, which is `sent` where it is at hand."""
    return RequestValidationError([{**item, "loc": ("body", *item["loc"])} for item in error.errors()], body=sent)


def _turn(message: ChatMessage) -> Turn | None:
    text = message.text.strip()[-MAX_TURN_CHARS:]
    if not text:
        return None
    match message.role:
        case "user" | "assistant" as role:
            return Turn(role=role, content=text)
        case "system" | "developer":
            return Turn(role="system", content=text)
        case _:
            return None


def _refuse_unserved(request: ChatRequest) -> None:
    for name, harmless in UNSERVED.items():
        if getattr(request, name) not in harmless:
            raise refusal(name, f"this mesh has no {name.replace('_', ' ')}: leave it out")
    for number, message in enumerate(request.messages):
        parts = message.content if isinstance(message.content, list) else []
        for part in parts:
            if part.type != "text":
                field = f"messages.{number}.content"
                raise refusal(field, f"a part of type {part.type!r} cannot be read: send text")
