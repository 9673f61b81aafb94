"""Step `read`: what is sent to the extractive reader, what is believed of its reply, and when it answers alone."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from proto.answer import MAX_CANDIDATES, MAX_EXCERPT_CHARS
from proto.read import PassageReading, ReadCandidate, ReadResponse, ReadSpan
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.mesh import Mesh
from services.gateway.run import Draft, Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.read import behind, extract, read
from services.kit.client import http_client

pytestmark = pytest.mark.anyio

TEXT = "The tower was built by Marta Lindqvist."
EVIDENCE = (
    Evidence("6 * 7 = 42", 0, source="calculator"),
    Evidence("Bread is baked here.", 1, "Bakery"),
    Evidence(TEXT, 2, "Tower"),
    Evidence("facts", 3, "knowledge graph", source="kg"),
)


def span(text: str = "Marta Lindqvist", probability: float = 0.8, *, passage: int = 2) -> ReadCandidate:
    start = TEXT.index(text) if text in TEXT else 0
    return ReadCandidate(passage=passage, text=text, start=start, end=start + len(text), probability=probability)


def reply(*candidates: ReadCandidate, **change: Any) -> ReadResponse:
    """A reading in which each passage says nothing with the probability that all of them have."""
    spans: dict[int, list[ReadSpan]] = {}
    for item in candidates:
        spans.setdefault(item.passage, []).append(ReadSpan(**item.model_dump(exclude={"passage"})))
    passages = tuple(
        PassageReading(spans=tuple(spans.get(index, ())), nothing=0.1) for index in range(max(spans, default=-1) + 1)
    )
    fields = {"model": "reader/fp32", "candidates": candidates, "passages": passages, "nothing": 0.1, "threshold": 0.6}
    return ReadResponse(**fields | change)


class Scripted:
    """A reader's service that says what a test wants."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answer: Callable[[], httpx.Response] = lambda: httpx.Response(200, content=reply().model_dump_json())

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert (request.url.host, request.url.path) == ("reranker", "/read")
        self.requests.append(json.loads(request.content))
        return self.answer()


@pytest.fixture
def reader() -> Scripted:
    return Scripted()


@pytest.fixture
async def mesh(reader: Scripted) -> AsyncIterator[Mesh]:
    settings = GatewaySettings(reranker_url="http://reranker")
    async with http_client(httpx.MockTransport(reader)) as http:
        yield Mesh.connect(settings, http)


async def test_passages_go_in_order_without_calculations(context: Context, reader: Scripted) -> None:
    reader.answer = lambda: httpx.Response(200, content=reply(span(passage=1)).model_dump_json())
    response = await read(context, "who built it?", EVIDENCE)
    assert [item["text"] for item in reader.requests[0]["passages"]] == [item.text for item in EVIDENCE[1:]]
    # What the graph's facts are called says nothing of them.
    assert [item["title"] for item in reader.requests[0]["passages"]] == ["Bakery", "Tower", ""]
    assert response is not None
    # Numbered as the prompt's passages are.
    assert EVIDENCE[response.candidates[0].passage].text == TEXT
    assert "read" in context.run.timings
    assert context.run.degraded == []


@pytest.mark.parametrize(
    ("evidence", "cap_s"), [((), 5.0), (EVIDENCE[:1], 5.0), ((Evidence(" ", 0),), 5.0), (EVIDENCE, 0.0)]
)
async def test_nothing_to_read_is_no_call(
    context: Context, reader: Scripted, evidence: tuple[Evidence, ...], cap_s: float
) -> None:
    hurried = replace(context, settings=GatewaySettings(read_cap_s=cap_s))
    assert await read(hurried, "who?", evidence) is None
    assert reader.requests == []
    assert context.run.degraded == []


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        (reply(span(passage=7)).model_dump_json(), 200, "bad_reply"),
        (reply(span("Jonas", passage=1)).model_dump_json(), 200, "bad_reply"),
        (reply(span("", passage=1)).model_dump_json(), 200, "bad_reply"),
        ("{}", 200, "bad_reply"),
        ("{}", 503, "unavailable"),
        ("{}", 404, "error"),
    ],
)
async def test_a_reader_that_fails_is_named_and_ranking_goes_on(
    context: Context, reader: Scripted, content: str, status: int, reason: str
) -> None:
    reader.answer = lambda: httpx.Response(status, content=content)
    for _ in range(12):
        assert await read(context, "who?", EVIDENCE) is None
    assert ("reader", reason) in {(item.stage, item.reason) for item in context.run.degraded}
    assert context.mesh.reranker.breaker.state == "closed"


async def test_what_was_not_read_is_said(context: Context, reader: Scripted) -> None:
    partly = reply(degraded=({"stage": "read", "reason": "timeout", "detail": "1 of 3"},))
    reader.answer = lambda: httpx.Response(200, content=partly.model_dump_json())
    await read(context, "who?", EVIDENCE)
    assert [(item.stage, item.reason) for item in context.run.degraded] == [("read", "timeout")]


def drafted(run: Run, response: ReadResponse, *, query: str = "who?", threshold: float | None = None) -> Draft:
    return extract(run, query, response, EVIDENCE, "web", threshold=threshold)


def test_a_likely_span_is_an_answer(run: Run) -> None:
    draft = drafted(run, reply(span()))
    assert (draft.answer, draft.kind, draft.confidence, draft.source) == ("Marta Lindqvist", "answer", 0.8, "web")


@pytest.mark.parametrize(
    ("response", "query", "threshold"),
    [
        (reply(span(probability=0.5)), "who?", None),
        (reply(span()), "who?", 0.9),
        (reply(), "who?", 0.0),
        (reply(span()), "is it true that marta lindqvist built it?", None),
        (reply(span()), "  Did Marta build it?", 0.0),
    ],
)
def test_otherwise_it_is_shown_and_no_answer(
    run: Run, response: ReadResponse, query: str, threshold: float | None
) -> None:
    draft = drafted(run, response, query=query, threshold=threshold)
    assert (draft.answer, draft.kind, draft.source) == ("i don't know", "unknown", "none")
    assert [item.span for item in draft.candidates] == [item.text for item in response.candidates]
    assert draft.evidence == EVIDENCE


DESIGNED = ("Nordre tower is old.", "Brennvik light was designed by Marta.", "It was designed by Jonas.")


@pytest.mark.parametrize(
    ("scores", "probabilities", "order"),
    [
        # What is far from the question is not shown, however sure the reader is of it.
        ((0.881, 0.003, 0.002), (0.01, 0.9, 0.05), [0]),
        # Among near passages both count.
        ((0.9, 0.8, 0.1), (0.01, 0.4, 0.5), [1, 2, 0]),
        # Texts that nobody has ranked are level.
        ((0.0, 0.0, 0.0), (0.01, 0.9, 0.05), [1, 2, 0]),
    ],
)
def test_an_abstention_shows_what_ranking_finds_near(
    run: Run, scores: tuple[float, ...], probabilities: tuple[float, ...], order: list[int]
) -> None:
    shown = [Evidence(text, page, score=score) for page, (text, score) in enumerate(zip(DESIGNED, scores, strict=True))]
    spans = [
        ReadCandidate(passage=page, text=text.split()[0], start=0, end=len(text.split()[0]), probability=probability)
        for page, (text, probability) in enumerate(zip(DESIGNED, probabilities, strict=True))
    ]
    # The reader's own list is short: it may lack all spans of the nearest passage.
    reading = reply(*spans).model_copy(update={"candidates": (spans[1],)})
    draft = extract(run, "who designed the nordre tower?", reading, shown, "web", threshold=1.0)
    assert [item.citation for item in draft.candidates] == order
    assert [round(item.probability, 4) for item in draft.candidates] == [probabilities[page] for page in order]


def test_a_choice_between_two_is_answered(run: Run) -> None:
    assert drafted(run, reply(span()), query="was it marta or jonas who built it?").kind == "answer"


@pytest.mark.parametrize("words", ["invalid question", "I don't know", "...", " \u2028 "])
def test_a_page_does_not_put_words_in_our_mouth(run: Run, words: str) -> None:
    shown = (Evidence(words, 0),)
    one = ReadCandidate(passage=0, text=words, start=0, end=len(words), probability=0.99)
    draft = extract(run, "who?", reply(one), shown, "web", threshold=None)
    assert (draft.answer, draft.kind) == ("i don't know", "unknown")


@pytest.mark.parametrize("place", [0, 300, 5_000, 9_985])
def test_a_candidate_stands_in_its_excerpt(run: Run, place: int) -> None:
    words = "Marta Lindqvist"
    text = "a" * place + words + "b" * (10_000 - place - len(words))
    one = ReadCandidate(passage=0, text=words, start=place, end=place + len(words), probability=0.2)
    draft = extract(run, "who?", reply(one), (replace(EVIDENCE[2], text=text),), "web", threshold=None)
    (candidate,) = draft.candidates
    assert candidate.passage[candidate.start : candidate.end] == candidate.span == words
    assert len(candidate.passage) == MAX_EXCERPT_CHARS
    assert candidate.citation == 0


def test_no_more_are_shown_than_a_reader_of_the_reply_wants(run: Run) -> None:
    many = reply(*(span(word, 0.1) for word in ("The", "tower", "was", "built", "Marta")))
    assert len(drafted(run, many).candidates) == MAX_CANDIDATES


def test_candidates_keep_their_passages_behind_calculations(run: Run) -> None:
    before = drafted(run, reply(span(probability=0.1))).candidates
    assert [item.citation for item in behind(before, 2)] == [before[0].citation + 2]
