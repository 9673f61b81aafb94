"""A question as strategies and steps see it."""

from dataclasses import dataclass
from datetime import datetime

from proto.answer import SearchResult
from services.gateway.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Question:
    """A question; `evidence` stands in for retrieval when it was given."""

    query: str
    query_time: datetime
    search_results: tuple[SearchResult, ...] = ()
    evidence: tuple[Evidence, ...] = ()
