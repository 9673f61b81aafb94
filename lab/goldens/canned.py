"""Services that answer from a case, by rules that every machine computes alike, and keep their requests."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx

from lab.goldens.cases import Case, passages_of
from proto.collections import RankedList, SearchHit, SearchResponse
from proto.kg import KgResponse, KgStatement
from proto.read import PassageReading, ReadCandidate, ReadResponse, ReadSpan
from proto.rerank import RerankResponse, RerankResult
from proto.retrieve import RetrievedPassage, RetrieveResponse
from services.gateway import prompts
from services.kit.budget import DEADLINE_HEADER

# The latency of a call, without the generator's tokens.
SECONDS = {"classifier": 0.02, "retriever": 0.3, "reranker": 0.2, "kg": 0.05, "generator": 0.01}
PREFILL_S, DECODE_S = 1 / 2_000, 1 / 50
FOREVER_S = 10_000.0
LOGPROB = -0.05
MODEL = "canned-8b"
# By words that are in the pattern of no other kind.
_REGEXES = {"reasoning": "frame", "none|": "names", "(, ": "keywords"}
_WORD = re.compile(r"\w+")
Body = dict[str, Any]


@dataclass(slots=True)
class Canned(httpx.AsyncBaseTransport):
    """All services of the gateway behind one transport.

    Args:
        case: the source of the replies.
        faults: service -> `down`, `hanging`, `garbage` or an HTTP status.
        model: the generator's base model.
        adapters: the generator's other models.
        slowness: factor on the generator's time.
    """

    case: Case
    faults: Mapping[str, str] = field(default_factory=dict)
    model: str = MODEL
    adapters: tuple[str, ...] = ()
    slowness: float = 1.0
    calls: list[Body] = field(default_factory=list)
    _tokens: list[str] = field(default_factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        service, path = request.url.host, request.url.path
        content = await request.aread()
        body: Body = json.loads(content) if content else {}
        now = asyncio.get_running_loop().time()
        self.calls.append(
            {
                "at": round(now - self.case.start_s, 3),
                "service": service,
                "call": f"{request.method} {path}",
                "allow_ms": int(request.headers.get(DEADLINE_HEADER, 0)),
                "body": body,
            }
        )
        fault = self.faults.get(service, "")
        if fault == "down":
            raise httpx.ConnectError("connection refused", request=request)
        await asyncio.sleep(FOREVER_S if fault == "hanging" else SECONDS[service])
        if fault == "garbage":
            return httpx.Response(200, content=b"\x00{{{")
        if fault.isdecimal():
            return httpx.Response(int(fault), json={"title": "fault"})
        reply = await self._reply(service, path, body)
        return httpx.Response(404 if reply is None else 200, json=reply)

    async def _reply(self, service: str, path: str, body: Body) -> Any:
        match service, path:
            case _, "/readyz":
                return {"ready": True, "service": service}
            case "classifier", "/classify":
                return {"classification": self.case.classification, "timing": {"elapsed_ms": 5, "inference_ms": 4}}
            case "retriever", "/retrieve":
                return _json(retrieve(body))
            case "retriever", "/collections/harbours":
                return {}
            case "retriever", _ if path.startswith("/collections/harbours/"):
                return _json(self._search(body))
            case "reranker", "/rerank":
                return _json(rerank(body))
            case "reranker", "/read":
                return _json(read(body, self.case.span))
            case "kg", "/kg/query":
                return self.case.graph or _json(KgResponse(status="no_program", program="none", mode="rules", text=""))
            case "kg", "/kg/execute":
                return self.case.records.get(body["program"]) or _json(_no_record(body["program"]))
            case "generator", "/v1/models":
                models: list[Body] = [{"id": self.model, "parent": None}]
                return {"data": models + [{"id": name, "parent": self.model} for name in self.adapters]}
            case "generator", "/v1/chat/completions":
                return await self._chat(body)
            case "generator", "/tokenize":
                self._tokens = tokens(body["prompt"])
                return {"tokens": list(range(len(self._tokens))), "count": len(self._tokens)}
            case "generator", "/detokenize":
                return {"prompt": "".join(self._tokens[: len(body["tokens"])])}
            case _:
                return None

    async def _chat(self, body: Body) -> Body:
        reply = tokens(self.case.reply(kind_of(body)))
        completion = reply[: body["max_tokens"]]
        prompt_tokens = sum(len(tokens(message["content"])) for message in body["messages"])
        await asyncio.sleep(self.slowness * (prompt_tokens * PREFILL_S + len(completion) * DECODE_S))
        logprobs = {"content": [{"token": one, "logprob": LOGPROB} for one in completion]}
        choice = {
            "message": {"role": "assistant", "content": "".join(completion)},
            "finish_reason": "stop" if completion == reply else "length",
            "logprobs": logprobs if "logprobs" in body else None,
        }
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": len(completion)}
        return {"model": body["model"], "choices": [choice], "usage": usage}

    def _search(self, body: Body) -> SearchResponse:
        documents = self.case.documents
        lists, best = [], dict.fromkeys(range(len(documents)), 0.0)
        for index, query in enumerate(body["queries"]):
            scores = {place: overlap(query, text) for place, (_, text) in enumerate(documents)}
            order = sorted(scores, key=lambda place: (-scores[place], place))
            lists.append(
                RankedList(encoder="bm25", query=index, hits=tuple(order), scores=tuple(scores[one] for one in order))
            )
            best = {place: max(best[place], score) for place, score in scores.items()}
        hits = tuple(
            SearchHit(id=f"doc-{place}", title=title, text=text, end=len(text), score=best[place])
            for place, (title, text) in enumerate(documents)
        )
        if body["lists"]:
            return SearchResponse(hits=hits, fused=len(hits), lists=tuple(lists))
        ranked = sorted(hits, key=lambda hit: -hit.score)[: body["top_n"]]
        return SearchResponse(hits=tuple(ranked), fused=len(ranked))


def kind_of(body: Body) -> str:
    """The kind of a request, by its constraint, else by its system prompt."""
    outputs = body.get("structured_outputs", {})
    if "choice" in outputs:
        return "level"
    if "grammar" in outputs:
        return "calculation"
    if "regex" in outputs:
        return next(kind for part, kind in _REGEXES.items() if part in outputs["regex"])
    system = body["messages"][0]["content"]
    return next((name for name in ("knowledge", "summarise", "closed_book") if _system(name) == system), "answer")


@cache
def _system(name: str) -> str:
    return prompts.load(name).system


def retrieve(body: Body) -> RetrieveResponse:
    """The paragraphs of the pages, scored by the words that they share with the query."""
    passages = [
        RetrievedPassage(text=text, score=overlap(body["query"], text), page=page, start=start, end=start + len(text))
        for page, one in enumerate(body["pages"])
        for start, text in passages_of(one["html"])
    ]
    ranked = sorted(passages, key=lambda passage: -passage.score)[: body["top_n"]]
    return RetrieveResponse(passages=tuple(ranked), chunks=len(passages))


def rerank(body: Body) -> RerankResponse:
    """Documents, scored by the words that they share with the query."""
    scores = [overlap(body["query"], text) for text in body["documents"]]
    order = sorted(range(len(scores)), key=lambda place: -scores[place])[: body["top_n"]]
    results = tuple(RerankResult(index=place, relevance_score=scores[place]) for place in order)
    return RerankResponse(model="overlap", results=results)


def read(body: Body, span: str) -> ReadResponse:
    """The span in each passage that has it."""
    places = [(place, one["text"].find(span)) for place, one in enumerate(body["passages"])]
    candidates = tuple(
        ReadCandidate(passage=place, text=span, start=start, end=start + len(span), probability=0.6 / (1 + rank))
        for rank, (place, start) in enumerate(one for one in places if span and one[1] >= 0)
    )
    nothing = 0.3 if candidates else 0.9
    spans = {one.passage: ReadSpan(**one.model_dump(exclude={"passage"})) for one in candidates}
    passages = tuple(
        PassageReading(spans=(spans[place],) if place in spans else (), nothing=nothing) for place, _ in places
    )
    return ReadResponse(model="canned", passages=passages, candidates=candidates, nothing=nothing, threshold=0.5)


def overlap(query: str, text: str) -> float:
    """Share of the query's words that a text has."""
    words, words_of_text = set(_WORD.findall(query.lower())), set(_WORD.findall(text.lower()))
    return round(len(words & words_of_text) / max(1, len(words)), 3)


def tokens(text: str) -> list[str]:
    """Words, and every other character alone."""
    return re.findall(r"\w+|\W", text)


def _no_record(program: str) -> KgResponse:
    statements = tuple(
        KgStatement(source=line, status="no_entity", text="", expected=("northern pier", "the ninth wave"))
        for line in program.splitlines()
    )
    return KgResponse(status="no_entity", program=program, mode="auto", statements=statements, text="")


def _json(message: Any) -> Any:
    return message.model_dump(mode="json")
