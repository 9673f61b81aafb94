"""Start services where what only training needs cannot be imported, as in an image, and ask each once.

    python -m tests.deploy.start_without_torch

Prints which of these packages their processes tried to import, by service.
"""

import asyncio
import importlib
import importlib.abc
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
from asgi_lifespan import LifespanManager

HEAVY = ("torch", "transformers", "sentence_transformers", "FlagEmbedding", "pandas", "matplotlib", "sklearn", "scipy")
PAGE = {"name": "K2", "html": "<html><body><p>K2 was first climbed in 1954 by an Italian expedition.</p></body></html>"}
ASK: dict[str, tuple[str, dict[str, Any]]] = {
    "retriever": ("/retrieve", {"query": "when was k2 first climbed?", "pages": [PAGE]}),
    "reranker": ("/rerank", {"query": "when was k2 first climbed?", "documents": ["In 1954.", "Never."]}),
    "classifier": ("/classify", {"query": "when was k2 first climbed?"}),
    "kg": ("/kg/query", {"query": "who directed inception?", "domain": "movie", "mode": "rules"}),
}


class Missing(importlib.abc.MetaPathFinder):
    """Finds that the heavy packages are not installed, and remembers who was looked for."""

    def __init__(self) -> None:
        self.tried: set[str] = set()

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0] in HEAVY:
            self.tried.add(fullname)
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


async def tried(service: str, missing: Missing) -> list[str]:
    """What a service, started and asked once, tried to import."""
    missing.tried.clear()
    app = importlib.import_module(f"services.{service}.app").create_app(_settings(service))
    async with LifespanManager(app, startup_timeout=300) as manager:
        transport = httpx.ASGITransport(app=manager.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            path, body = ASK[service]
            response = await client.post(path, json=body)
            response.raise_for_status()
        imported: set[str] = set()
        if service == "retriever":
            pool = manager._state["engine"].pages
            imported = set(await pool.run(eval, "list(__import__('sys').modules)", timeout_s=10))
    return sorted(missing.tried | imported & set(HEAVY))


async def main(missing: Missing) -> None:
    print(json.dumps({service: await tried(service, missing) for service in ASK}))


def _settings(service: str) -> Any:
    folder = Path(tempfile.mkdtemp())
    own: dict[str, dict[str, Any]] = {
        "retriever": {"qdrant_path": folder / "collections"},
        "kg": {"kg_database": f"sqlite:///{folder}/kg.sqlite"},
    }
    module = importlib.import_module(f"services.{service}.settings")
    return getattr(module, f"{service.capitalize()}Settings")(threads=1, **own.get(service, {}))


if __name__ == "__main__":
    absent = Missing()
    sys.meta_path.insert(0, absent)
    asyncio.run(main(absent))
