"""Answers as chat completions: whole, and in chunks with the stages as reasoning."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proto.answer import AnswerResponse, StageEvent
from services.gateway.asking import address_of, title_of
from services.gateway.normalize import INVALID

DONE = "data: [DONE]\n\n"
ABSTENTION = "I don't know."
FALSE_PREMISE = "The question takes something for granted that is not so (invalid question)."


@dataclass(frozen=True, slots=True)
class Naming:
    """The fields that all chunks of one completion share."""

    id: str
    model: str
    created: int

    def envelope(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, **fields}


def text_of(response: AnswerResponse) -> str:
    """The answer as a message; an abstention says so and quotes the nearest passage."""
    if response.kind == "answer":
        return response.answer
    if response.answer == INVALID:
        return FALSE_PREMISE
    if not response.candidates:
        return ABSTENTION
    nearest = response.candidates[0]
    name = response.citations[nearest.citation].page_name if nearest.citation < len(response.citations) else ""
    where = f' of "{name}"' if name else ""
    return f'{ABSTENTION} Not sure enough to answer; a passage{where} says: "{" ".join(nearest.passage.split())}"'


def completion(naming: Naming, response: AnswerResponse) -> dict[str, Any]:
    """`chat.completion`: one choice, its sources as annotations, the mesh's own fields under `cragmesh`."""
    text = text_of(response)
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": annotations(response, text)}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return naming.envelope("chat.completion", choices=[choice], usage=usage(response), cragmesh=account(response))


def chunks(naming: Naming, response: AnswerResponse, *, include_usage: bool) -> Iterator[dict[str, Any]]:
    """`chat.completion.chunk`s of the judged answer: its text in one, the end, and its usage where it is wanted."""
    text = text_of(response)
    yield chunk(naming, {"content": text, "annotations": annotations(response, text)})
    yield chunk(naming, {}, finish_reason="stop") | {"cragmesh": account(response)}
    if include_usage:
        yield naming.envelope("chat.completion.chunk", choices=[], usage=usage(response))


def chunk(naming: Naming, delta: dict[str, Any], *, finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return naming.envelope("chat.completion.chunk", choices=[choice])


def stage_line(event: StageEvent) -> str:
    """A stage that has ended, in words; empty for one that starts."""
    if event.status == "started":
        return ""
    duration = f"{event.timing.elapsed_ms / 1000:.1f} s" if event.status != "skipped" else "skipped"
    detail = f": {event.detail}" if event.detail else ""
    return f"{event.stage} ({duration}){detail}\n"


def annotations(response: AnswerResponse, text: str) -> list[dict[str, Any]]:
    """Sources of an answer, each once, over the whole of its text; an abstention rests on none."""
    if response.kind == "unknown":
        return []
    sources = dict.fromkeys((address_of(citation), title_of(citation)) for citation in response.citations)
    whole = {"start_index": 0, "end_index": len(text)}
    return [{"type": "url_citation", "url_citation": {"url": url, "title": title} | whole} for url, title in sources]


def usage(response: AnswerResponse) -> dict[str, int]:
    prompt, completion = response.usage.prompt_tokens, response.usage.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def account(response: AnswerResponse) -> dict[str, Any]:
    """The mesh's own fields beside OpenAI's."""
    fields = {"kind", "confidence", "source", "query", "degraded", "strategy", "generator", "request_id"}
    return response.model_dump(mode="json", include=fields)


def frame(content: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return f"data: {json.dumps(content)}\n\n".encode()
