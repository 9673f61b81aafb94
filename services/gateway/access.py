"""Access: the scope of a key, the right that each route needs, and the caller of the current request.

`Mesh` asks here before it names a collection to the retriever, so that no door can forget to. For a collection that the
caller may not read, it names one that does not exist: the retriever itself answers that there is none, by the same
steps and as fast as for any other.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.routing import compile_path

from proto.collections import MAX_ALL_FILTERS, MAX_FILTERS, CollectionName, Filter
from services.kit.deadline import PROBES, READING
from services.kit.errors import refusal
from services.kit.filters import MAX_CHARS, MAX_CONDITIONS, as_text

Right = Literal["ask", "write", "operate"]
BEARER = "key"
MAX_NAMES = 1_000
# Of a key; its caller's are added to them, in addresses too.
MAX_MANDATORY = MAX_CONDITIONS // 2

# (method, route) to the right that it needs; None is open to all, with a key or without.
RULES: dict[tuple[str, str], Right | None] = {
    **{("GET", probe): None for probe in PROBES},
    ("GET", "/"): None,
    ("GET", "/page/reports"): None,
    ("GET", "/page/reports/{report}/{name}"): None,
    ("GET", "/page/{name}"): None,
    ("GET", "/openapi.json"): None,
    ("GET", "/strategies"): None,
    ("GET", "/services"): None,
    ("GET", "/v1/models"): "ask",
    ("GET", "/v1/models/{model:path}"): "ask",
    ("POST", "/answer"): "ask",
    ("POST", "/papers"): "ask",
    ("POST", "/feedback"): "ask",
    ("POST", "/v1/chat/completions"): "ask",
    ("POST", "/v1/files"): "ask",
    ("GET", "/v1/files"): "ask",
    ("GET", "/v1/files/{file_id}"): "ask",
    ("GET", "/v1/files/{file_id}/content"): "ask",
    ("DELETE", "/v1/files/{file_id}"): "ask",
    ("POST", "/v1/batches"): "ask",
    ("GET", "/v1/batches"): "ask",
    ("GET", "/v1/batches/{batch_id}"): "ask",
    ("POST", "/v1/batches/{batch_id}/cancel"): "ask",
    ("POST", "/mcp"): "ask",
    # As many servers' addresses end.
    ("POST", "/mcp/"): "ask",
    ("GET", "/collections"): "ask",
    ("GET", "/collections/{name}"): "ask",
    ("POST", "/collections/{name}/search"): "ask",
    ("PUT", "/collections/{name}"): "operate",
    ("DELETE", "/collections/{name}"): "operate",
    ("GET", "/collections/{name}/documents"): "ask",
    ("POST", "/collections/{name}/documents"): "write",
    ("GET", "/collections/{name}/documents/{id:path}"): "ask",
    ("PUT", "/collections/{name}/documents/{id:path}"): "write",
    ("DELETE", "/collections/{name}/documents/{id:path}"): "write",
    ("POST", "/collections/{name}/moves"): "write",
}
# Routes that use the generator.
QUESTIONS = frozenset({"/answer", "/papers", "/v1/chat/completions", "/mcp"})
# Those of which each request takes a place of the whole mesh for it; of an agent's messages only some tools do.
_PLACED = [compile_path(path)[0] for path in sorted(QUESTIONS - {"/mcp"})]
_PATTERNS = [(method, compile_path(path)[0], right) for (method, path), right in RULES.items()]


class Scope(BaseModel):
    """The rights of a key; a line of the key file has them as JSON. A key that may write may read what it wrote.

    Attributes:
        collections: those that it may name; all where it is None.
        rights: `ask` (questions, searches, lists), `write` (documents), `operate` (collections as a whole).
        filters: hold for every document that it reads, whatever a request says.
    """

    # A field that is misspelt would leave open what it was to close.
    model_config = ConfigDict(frozen=True, extra="forbid")

    collections: Annotated[tuple[CollectionName, ...] | None, Field(max_length=MAX_NAMES)] = None
    rights: frozenset[Right] = frozenset({"ask"})
    filters: Annotated[tuple[Filter, ...], Field(max_length=MAX_MANDATORY)] = ()

    @model_validator(mode="after")
    def _filtered_reads_only(self) -> "Scope":
        if self.filters and self.rights - {"ask"}:
            # An id that is taken would tell of a document that it may not read.
            raise ValueError("a key with filters may only ask")
        if any(len(as_text(item)) > MAX_CHARS for item in self.filters):
            raise ValueError(f"a filter of a key is at most {MAX_CHARS} characters of JSON")
        return self

    def reads(self, collection: str) -> bool:
        return self.collections is None or collection in self.collections


ASKER = Scope()
OWNER = Scope(rights=frozenset({"ask", "write", "operate"}))
NOBODY = Scope(collections=(), rights=frozenset())
# Closed by default: code that forgets to set a scope reaches no collection.
current_scope: ContextVar[Scope] = ContextVar("current_scope", default=NOBODY)
current_caller: ContextVar[str] = ContextVar("current_caller", default="")
_ABSENT = f"0-{secrets.token_hex(16)}"


def rule_for(method: str, path: str) -> tuple[Right | None, bool]:
    """The right that a request needs, and whether it is open to all; an unknown route may be read, and no more."""
    method = "GET" if method == "HEAD" else method
    for allowed, pattern, right in _PATTERNS:
        if allowed == method and pattern.match(path):
            return right, right is None
    return None, method in READING


def takes_a_place(path: str) -> bool:
    """Whether a request takes a place of the mesh: by the patterns that route it, which end before a line's end too."""
    return any(pattern.match(path) for pattern in _PLACED)


def readable(collection: str) -> str:
    """The name to ask the retriever for: itself, or one that no collection has."""
    return collection if current_scope.get().reads(collection) else _ABSENT


def with_key_filters(filters: Sequence[Filter]) -> tuple[Filter, ...]:
    """A request's filters and those of the caller's key.

    Raises:
        InvalidRequest: they are too many together.
    """
    together = (*current_scope.get().filters, *filters)
    if len(together) > MAX_ALL_FILTERS:
        raise refusal("filters", "too many", f"at most {MAX_FILTERS} items")
    return together


def operations(routes: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """(method, path) of all routes of an application, undocumented ones included."""
    for route in routes:
        # FastAPI keeps an included router as one route.
        yield from operations(getattr(getattr(route, "original_router", None), "routes", ()))
        for method in getattr(route, "methods", None) or ():
            yield method, str(getattr(route, "path", ""))


def with_keys(content: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document that says which operations ask for a key, where the gateway has any."""
    content.setdefault("components", {})["securitySchemes"] = {BEARER: {"type": "http", "scheme": "bearer"}}
    for (method, path), right in RULES.items():
        operation = content["paths"].get(path.replace(":path}", "}"), {}).get(method.lower())
        if right and operation:
            operation["security"] = [{BEARER: []}, {}]
    return content


def check(routes: Sequence[Any]) -> None:
    """See that each route has a rule.

    Raises:
        ValueError: one has none: nobody has decided who may call it.
    """
    unruled = sorted({item for item in operations(routes) if item[0] != "HEAD" and item not in RULES})
    if unruled:
        raise ValueError(f"no rule says who may call {', '.join(map(' '.join, unruled))}: see RULES of {__name__}")
