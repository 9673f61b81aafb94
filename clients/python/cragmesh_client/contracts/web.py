# Generated from proto/web.py by `make contracts`: edits are lost.
"""Contract of the searcher: a question in, pages of the web out, in the shape of CRAG's search results."""

from pydantic import Field

from cragmesh_client.contracts.answer import SearchResult
from cragmesh_client.contracts.base import Contract, Count, Degradation, Query, QueryTime, StageTiming

# Path to what a generated client calls it, and its messages.
ROUTES = {"/search": ("Search", "WebSearchRequest", "WebSearchResponse")}
MAX_RESULTS = 10


class WebSearchRequest(Contract):
    query: Query = Field(description="The question.")
    query_time: QueryTime | None = Field(None, description="When it is asked; now by default.")
    top_n: int = Field(5, ge=1, le=MAX_RESULTS, description="Pages to return at most.")


class WebSearchResponse(Contract):
    search_results: tuple[SearchResult, ...] = Field(
        (),
        max_length=MAX_RESULTS,
        description="Best first; one that was not fetched has the engine's title and summary alone.",
    )
    queries: tuple[str, ...] = Field((), description="What the search engine was asked.")
    degraded: tuple[Degradation, ...] = Field(
        (), description="`search_engine` where it failed, `page:N` for a page that was not fetched whole, and why."
    )
    cached_pages: Count = Field(0, description="Pages that came from the cache.")
    timing: StageTiming = Field(default_factory=StageTiming, description="The whole of it.")
