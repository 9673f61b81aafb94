"""Our retriever as peers of the bench: in this process, and behind HTTP."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

import httpx

from proto.retrieve import Page, RetrieveRequest, RetrieveResponse
from services.retriever.engine import Engine
from services.retriever.settings import RetrieverSettings

# Contexts of up to 4,000 tokens are filled from the ranking.
TOP_N = 40

# Passages by rank for a question, the HTML of its pages and their snippets.
Search = Callable[[str, Sequence[str], Sequence[str]], list[str]]


def request(query: str, pages: Sequence[str], snippets: Sequence[str]) -> RetrieveRequest:
    contents = tuple(Page(html=html, snippet=snippet) for html, snippet in zip(pages, snippets, strict=True))
    return RetrieveRequest(query=query, pages=contents, recall_k=200, top_n=TOP_N)


@contextlib.contextmanager
def local() -> Iterator[Search]:
    """The service's own code in this process, which is to end afterwards."""
    loop = asyncio.new_event_loop()
    # Every question's pages are new, so that the work is measured and not the cache.
    engine = Engine(RetrieverSettings(page_cache_mib=0))
    running = engine.running()
    loop.run_until_complete(running.__aenter__())

    def search(query: str, pages: Sequence[str], snippets: Sequence[str]) -> list[str]:
        response = loop.run_until_complete(engine.retrieve(request(query, pages, snippets)))
        return [passage.text for passage in response.passages]

    yield search


@contextlib.contextmanager
def over_http(url: str) -> Iterator[Search]:
    """The service at this address."""
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:

        def search(query: str, pages: Sequence[str], snippets: Sequence[str]) -> list[str]:
            content = request(query, pages, snippets).model_dump_json().encode()
            reply = http.post("/retrieve", content=content, headers={"content-type": "application/json"})
            response = RetrieveResponse.model_validate_json(reply.raise_for_status().content)
            return [passage.text for passage in response.passages]

        yield search
