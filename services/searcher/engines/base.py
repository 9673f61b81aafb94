"""A search engine: its request, and the hits of its reply."""

import html
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

_TAG = re.compile(r"<[^<>]{0,200}>")


def _plain(value: Any) -> str:
    """Text without the marks of matches; empty where the value is no text."""
    return " ".join(html.unescape(_TAG.sub("", value)).split())[:20_000] if isinstance(value, str) else ""


# Any value of a reply, as text.
Text = Annotated[str, BeforeValidator(_plain)]


class Wire(BaseModel):
    """A part of an engine's reply."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class Hit(Wire):
    """A page of an engine's reply, by the engines' names of the fields; `published` is as the engine writes it."""

    url: str
    title: Text = ""
    snippet: Text = Field("", validation_alias=AliasChoices("content", "description"))
    published: Text = Field("", validation_alias=AliasChoices("publishedDate", "published_date", "page_age"))


class Results(Wire):
    """A reply, or the part of it that has the hits."""

    results: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A request to an engine: its method, path with query, and JSON body."""

    method: str
    path: str
    body: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Engine(ABC):
    """One provider's API, for pages in a language (ISO 639-1) and as many hits as `count`."""

    # Where it is, reached through the egress proxy; empty for one that stands beside the mesh.
    root: ClassVar[str] = ""

    key: str = field(repr=False)
    language: str
    count: int

    @property
    def headers(self) -> dict[str, str]:
        return {}

    @abstractmethod
    def call(self, query: str) -> Call: ...

    @abstractmethod
    def hits(self, reply: bytes) -> list[Hit]:
        """Hits in the engine's order.

        Raises:
            ValidationError: the reply is not what its API promises.
            ServiceFailure: it says that it could not search.
        """
