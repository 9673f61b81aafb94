"""Clients of a generator: any OpenAI-compatible server, by its root or by a URL that ends in `/v1`."""

import httpx

from services.kit.breaker import Breaker
from services.kit.client import ServiceClient
from services.kit.llm import LLM
from services.kit.settings import MeshUrls


def generator(urls: MeshUrls, http: httpx.AsyncClient, *, breaker: Breaker | None = None) -> LLM:
    """The mesh's own generator."""
    return model_at(
        str(urls.generator_url), http, model=urls.generator_model, api_key=urls.generator_api_key, breaker=breaker
    )


def model_at(
    url: str,
    http: httpx.AsyncClient,
    *,
    model: str = "",
    api_key: str = "",
    name: str = "generator",
    breaker: Breaker | None = None,
) -> LLM:
    """A model behind a server, which failures call `name`; without its `model` the first that the server lists."""
    headers = {"authorization": f"Bearer {api_key}"} if api_key else None
    root = url.rstrip("/").removesuffix("/v1")
    return LLM(ServiceClient(name, root, http, breaker=breaker, headers=headers), model=model)
