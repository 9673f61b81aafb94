"""Asks a Cragmesh gateway: typed, sync and async, with stages as they happen."""

from cragmesh_client.calls import Call, Event
from cragmesh_client.client import AsyncClient, Client
from cragmesh_client.contracts.answer import AnswerResponse, Citation, SearchResult, StageEvent, Turn
from cragmesh_client.contracts.collections import (
    CollectionInfo,
    DocumentInfo,
    Documents,
    Filter,
    Move,
    MoveResponse,
    Range,
    SearchHit,
    SearchResponse,
)
from cragmesh_client.contracts.options import Options
from cragmesh_client.errors import (
    BadReply,
    Forbidden,
    Invalid,
    MeshError,
    NotFound,
    Overloaded,
    ProblemError,
    Unauthorized,
    Unreachable,
)

__all__ = [
    "AnswerResponse",
    "AsyncClient",
    "BadReply",
    "Call",
    "Citation",
    "Client",
    "CollectionInfo",
    "DocumentInfo",
    "Documents",
    "Event",
    "Filter",
    "Forbidden",
    "Invalid",
    "MeshError",
    "Move",
    "MoveResponse",
    "NotFound",
    "Options",
    "Overloaded",
    "ProblemError",
    "Range",
    "SearchHit",
    "SearchResponse",
    "SearchResult",
    "StageEvent",
    "Turn",
    "Unauthorized",
    "Unreachable",
]
