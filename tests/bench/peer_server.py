"""What a user would build instead, behind the gateway's own door: `POST /answer` of a Haystack or a LangChain pipeline.

    .venv-bench/bin/python -m tests.bench.peer_server --peer langchain --port 8001 --generator http://127.0.0.1:8005
        [--collection NAME=documents.jsonl]

`haystack`: its components in the order of its documentation, with their defaults: HTML to text, chunks of 200 words, an
in-memory store, the five nearest chunks. `langchain`: its parent-document retriever, as documented: children of 400
characters, their parents of 2,000, four nearest children, and the library's own prompt for answering from context.
MiniLM and the generator are the mesh's. Both are asked for one short line and told when the question is asked, as the
mesh's prompts are. Served as hayhooks serves pipelines: FastAPI, each run in a thread of the pool.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import torch
import uvicorn
from fastapi import FastAPI

from lab.evaluator.judge.protocol import is_abstention
from proto.answer import MAX_BUDGET_S, AnswerRequest, AnswerResponse, Citation, Strategies, StrategyInfo
from proto.base import StageTiming
from services.kit.encoder import bundled_model
from services.kit.settings import EncoderSettings
from tests.bench import common

ENCODER = EncoderSettings().encoder_model or str(bundled_model())
MAX_TOKENS = 75
SHORT = "Answer in one short line."


@dataclass(frozen=True, slots=True)
class Chat:
    """The generator: an OpenAI-compatible server's root, its model, and the encoder's device."""

    url: str
    model: str
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class Text:
    """A text and what it is called."""

    title: str
    text: str


class Haystack:
    """Chunks of 200 words, the five nearest."""

    PROMPT = """Answer the question from the documents, in one short line.
{% for document in documents %}
{{ document.content }}
{% endfor %}
Question: {{ query }}"""

    def __init__(self, chat: Chat) -> None:
        from haystack import Pipeline
        from haystack.components.builders import ChatPromptBuilder
        from haystack.components.converters import HTMLToDocument
        from haystack.components.generators.chat import OpenAIChatGenerator
        from haystack.components.preprocessors import DocumentSplitter
        from haystack.dataclasses import ChatMessage
        from haystack.utils import ComponentDevice, Secret
        from haystack_integrations.components.embedders.sentence_transformers import (
            SentenceTransformersDocumentEmbedder,
            SentenceTransformersTextEmbedder,
        )

        device = ComponentDevice.from_str(chat.device)
        self._convert = HTMLToDocument()
        self._index = Pipeline()
        self._index.add_component("split", DocumentSplitter(split_by="word", split_length=200))
        embed = SentenceTransformersDocumentEmbedder(model=ENCODER, device=device, progress_bar=False)
        self._index.add_component("embed", embed)
        self._index.connect("split", "embed")
        self._query = SentenceTransformersTextEmbedder(model=ENCODER, device=device, progress_bar=False)
        self._query.warm_up()
        self._answer = Pipeline()
        prompt = ChatPromptBuilder([ChatMessage.from_user(self.PROMPT)], required_variables="*")
        self._answer.add_component("prompt", prompt)
        generator = OpenAIChatGenerator(
            api_key=Secret.from_token("none"),
            model=chat.model,
            api_base_url=f"{chat.url}/v1",
            generation_kwargs={"max_tokens": MAX_TOKENS, "temperature": 0},
        )
        self._answer.add_component("chat", generator)
        self._answer.connect("prompt.prompt", "chat.messages")

    def from_pages(self, pages: Sequence[Text]) -> Any:
        from haystack.dataclasses import ByteStream

        sources = [
            ByteStream(data=page.text.encode(), mime_type="text/html", meta={"title": page.title}) for page in pages
        ]
        return self._store(self._convert.run(sources=sources)["documents"])

    def from_texts(self, documents: Iterable[Text]) -> Any:
        from haystack.dataclasses import Document

        return self._store([Document(content=item.text, meta={"title": item.title}) for item in documents])

    def _store(self, documents: Any) -> Any:
        from haystack.document_stores.in_memory import InMemoryDocumentStore
        from haystack.document_stores.types import DuplicatePolicy

        store = InMemoryDocumentStore(embedding_similarity_function="cosine")
        chunks = self._index.run({"split": {"documents": documents}})["embed"]["documents"]
        store.write_documents(chunks, policy=DuplicatePolicy.OVERWRITE)
        return store

    def retrieve(self, index: Any, query: str) -> list[Text]:
        from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever

        vector = self._query.run(text=query)["embedding"]
        documents = InMemoryEmbeddingRetriever(index, top_k=5).run(query_embedding=vector)["documents"]
        return [Text(item.meta.get("title", ""), item.content) for item in documents]

    def generate(self, question: str, passages: Sequence[Text]) -> str:
        documents = [{"content": item.text} for item in passages]
        reply = self._answer.run({"prompt": {"documents": documents, "query": question}})
        return str(reply["chat"]["replies"][0].text or "")


class LangChain:
    """Children of 400 characters, their parents of 2,000, the four nearest."""

    def __init__(self, chat: Chat) -> None:
        from langchain_classic.chains.combine_documents import create_stuff_documents_chain
        from langchain_classic.chains.question_answering.stuff_prompt import CHAT_PROMPT
        from langchain_openai import ChatOpenAI
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        self._embeddings = _embeddings(chat.device)
        self._children = RecursiveCharacterTextSplitter(chunk_size=400)
        self._parents = RecursiveCharacterTextSplitter(chunk_size=2000)
        model = ChatOpenAI(
            model=chat.model, base_url=f"{chat.url}/v1", api_key="none", temperature=0, max_tokens=MAX_TOKENS
        )
        self._chain = create_stuff_documents_chain(model, CHAT_PROMPT)

    def from_pages(self, pages: Sequence[Text]) -> Any:
        from bs4 import BeautifulSoup

        return self.from_texts(Text(page.title, BeautifulSoup(page.text, "lxml").get_text()) for page in pages)

    def from_texts(self, documents: Iterable[Text]) -> Any:
        from langchain_classic.retrievers import ParentDocumentRetriever
        from langchain_classic.storage import InMemoryStore
        from langchain_core.documents import Document
        from langchain_core.vectorstores import InMemoryVectorStore

        retriever = ParentDocumentRetriever(
            vectorstore=InMemoryVectorStore(self._embeddings),
            docstore=InMemoryStore(),
            child_splitter=self._children,
            parent_splitter=self._parents,
        )
        texts = [Document(page_content=item.text, metadata={"title": item.title}) for item in documents]
        retriever.add_documents([text for text in texts if text.page_content.strip()])
        return retriever

    def retrieve(self, index: Any, query: str) -> list[Text]:
        return [Text(item.metadata.get("title", ""), item.page_content) for item in index.invoke(query)]

    def generate(self, question: str, passages: Sequence[Text]) -> str:
        from langchain_core.documents import Document

        documents = [Document(page_content=item.text) for item in passages]
        return str(self._chain.invoke({"context": documents, "question": f"{question}\n{SHORT}"}))


def _embeddings(device: str) -> Any:
    """As `langchain-huggingface` wraps the same library, without its pins of others."""
    from langchain_core.embeddings import Embeddings
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(ENCODER, device=device)

    class MiniLm(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return encoder.encode(texts, show_progress_bar=False).tolist()

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    return MiniLm()


# A pipeline, which indexes documents into what is its own, shows the best passages, and has the generator answer.
Peer = Haystack | LangChain
PEERS: Mapping[str, type[Peer]] = {"haystack": Haystack, "langchain": LangChain}


def answer(name: str, peer: Peer, collections: Mapping[str, Any], request: AnswerRequest) -> AnswerResponse:
    """The pipeline's answer, with the passages that it showed as citations."""
    began = time.monotonic()
    pages = [Text(page.page_name, page.page_result) for page in request.search_results if page.page_result]
    index = collections[request.collection] if request.collection else peer.from_pages(pages)
    passages = peer.retrieve(index, request.query)
    retrieved = time.monotonic()
    when = f" (asked at {request.query_time})" if request.query_time else ""
    reply = " ".join(peer.generate(f"{request.query}{when}", passages).split())
    stages = {"retrieve": (began, retrieved), "generate": (retrieved, time.monotonic())}
    return AnswerResponse(
        answer=reply,
        kind="unknown" if is_abstention(reply) else "answer",
        confidence=0.0,
        source="web",
        citations=tuple(
            Citation(page=place, page_name=item.title, text=item.text, score=0.0) for place, item in enumerate(passages)
        ),
        timings={
            stage: StageTiming(start_ms=(start - began) * 1000, elapsed_ms=(end - start) * 1000)
            for stage, (start, end) in stages.items()
        },
        strategy=name,
    )


def create_app(name: str, peer: Peer, collections: Mapping[str, Any]) -> FastAPI:
    app = FastAPI(title=f"{name}, a peer")

    @app.get("/readyz")
    def readyz() -> dict[str, bool]:
        return {"ready": True}

    @app.get("/strategies")
    def strategies() -> Strategies:
        return Strategies(strategies=(StrategyInfo(name=name, summary=str(type(peer).__doc__), default=True),))

    # Not async: FastAPI runs it in its pool of threads, as hayhooks runs a pipeline.
    @app.post("/answer")
    def post_answer(body: dict[str, Any]) -> AnswerResponse:
        return answer(name, peer, collections, AnswerRequest.model_validate(body | {"budget_s": MAX_BUDGET_S}))

    return app


def texts_of(path: Path) -> list[Text]:
    """Documents as `cragmesh index` takes them."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Text(row.get("title", ""), row["text"]) for row in rows]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--peer", choices=PEERS, default="haystack")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--generator", required=True, help="root of an OpenAI-compatible server")
    parser.add_argument("--model", default="", help="its name there; the first that the server lists by default")
    parser.add_argument("--collection", action="append", default=[], metavar="NAME=FILE", help="indexed at the start")
    parser.add_argument("--device", default="cpu", help="of the encoder")
    parser.add_argument("--threads", type=int, default=2, help="of the encoder")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    root = args.generator.rstrip("/").removesuffix("/v1")
    model = args.model or httpx.get(f"{root}/v1/models", trust_env=False).raise_for_status().json()["data"][0]["id"]
    peer = PEERS[args.peer](Chat(root, model, args.device))
    page = "<html><body><main><p>" + "The first question finds all in place. " * 40 + "</p></main></body></html>"
    peer.retrieve(peer.from_pages([Text("first", page)]), "what is in place?")
    files = (item.partition("=")[::2] for item in args.collection)
    collections = {name: peer.from_texts(texts_of(Path(file))) for name, file in files}
    app = create_app(args.peer, peer, collections)
    uvicorn.run(app, host="127.0.0.1", port=args.port, access_log=False, log_level="warning")


if __name__ == "__main__":
    main()
