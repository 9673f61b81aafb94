"""The extractive reader through the real mesh: it answers where no generator does, and is a signal beside one."""

import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from services.gateway import confidence
from services.gateway.confidence import Confidence
from tests.mesh.conftest import BAKERY, LATE_S, LIGHTHOUSE, Services, answer_to, head

pytestmark = pytest.mark.anyio

BUDGET_S = 4.0
EVIDENCE = {
    "query": "who designed the harbour lighthouse?",
    "evidence": [
        "The old bakery sells rye bread.",
        "The harbour lighthouse opened in 1864. It was designed by Marta Lindqvist.",
    ],
    "budget_s": BUDGET_S,
}
PAGES = {"query": EVIDENCE["query"], "search_results": [BAKERY, LIGHTHOUSE], "budget_s": BUDGET_S}


@pytest.fixture
async def gateway(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    # A line that the shipped weights are far above, and those of tomorrow too.
    async with services.usual(reader_threshold=0.05, prefill_tokens_per_s=20_000) as client:
        yield client


@pytest.fixture
async def cautious(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    async with services.usual(reader_threshold=1.0, prefill_tokens_per_s=20_000) as client:
        yield client


async def ask(gateway: httpx.AsyncClient, question: dict[str, Any] = EVIDENCE) -> dict[str, Any]:
    began = time.monotonic()
    body = await answer_to(gateway, question)
    assert time.monotonic() - began < BUDGET_S + LATE_S
    return body


def abstains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every answer be kept back."""
    monkeypatch.setattr(confidence, "load", lambda: {"generic": Confidence(answer=head(intercept=-5.0))})


@pytest.mark.parametrize(("fault", "question"), [("killed", EVIDENCE), ("frozen", EVIDENCE), ("garbage", PAGES)])
async def test_a_generator_that_is_down_leaves_the_answer_to_the_reader(
    services: Services, gateway: httpx.AsyncClient, fault: str, question: dict[str, Any]
) -> None:
    services.faults["generator"].fault = fault
    body = await ask(gateway, question)
    assert (body["answer"], body["kind"], body["source"]) == ("Marta Lindqvist", "answer", "web")
    assert 0.05 <= body["confidence"] <= 1
    assert any("Marta Lindqvist" in citation["text"] for citation in body["citations"])
    assert "generator" in {item["stage"] for item in body["degraded"]}
    assert "candidates" not in body or body["candidates"] == []


async def test_no_time_for_the_generator_leaves_it_to_the_reader_too(services: Services) -> None:
    async with services.usual(reader_threshold=0.05, prefill_tokens_per_s=1) as gateway:
        body = await ask(gateway)
    assert (body["answer"], body["kind"]) == ("Marta Lindqvist", "answer")
    assert ("generate", "skipped") in {(item["stage"], item["reason"]) for item in body["degraded"]}
    assert services.generator.requests == []


async def test_below_its_threshold_the_reader_only_shows(services: Services, cautious: httpx.AsyncClient) -> None:
    services.faults["generator"].fault = "killed"
    body = await ask(cautious)
    assert (body["answer"], body["kind"], body["source"]) == ("i don't know", "unknown", "none")
    best = body["candidates"][0]
    assert best["span"] == "Marta Lindqvist"
    assert best["passage"][best["start"] : best["end"]] == best["span"]
    assert best["passage"] in body["citations"][best["citation"]]["text"]
    assert 0 < best["probability"] < 1


async def test_beside_a_generator_it_is_a_signal_and_no_answer(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.reply = lambda _: "Marta Lindqvist"
    same = await ask(gateway)
    services.generator.reply = lambda _: "Jonas Berg"
    other = await ask(gateway)
    assert (same["answer"], other["answer"]) == ("Marta Lindqvist", "Jonas Berg")
    assert same["signals"]["reader_same"] == 1 > other["signals"]["reader_same"] == 0
    assert same["signals"]["reader_span"] > other["signals"]["reader_span"]
    assert same["signals"]["reader_says"] == pytest.approx(other["signals"]["reader_says"])
    assert same["candidates"] == other["candidates"] == []


async def test_an_abstention_shows_what_the_nearest_passage_says(
    services: Services, gateway: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.generator.reply = lambda _: "i don't know"
    body = await ask(gateway)
    assert (body["kind"], body["candidates"][0]["span"]) == ("unknown", "Marta Lindqvist")
    abstains(monkeypatch)
    services.generator.reply = lambda _: "Marta Lindqvist"
    async with services.usual(reader_threshold=0.05) as anew:
        body = await ask(anew)
    assert (body["answer"], body["kind"]) == ("i don't know", "unknown")
    assert body["candidates"][0]["span"] == "Marta Lindqvist"


@pytest.mark.parametrize("fault", ["killed", "frozen"])
async def test_a_reader_that_is_down_takes_nothing_from_the_answer(services: Services, fault: str) -> None:
    services.faults["reranker"].fault = fault
    services.generator.reply = lambda _: "Marta Lindqvist"
    async with services.usual(reader_threshold=0.05, read_cap_s=0.3) as gateway:
        body = await ask(gateway)
    assert body["answer"] == "Marta Lindqvist"
    assert "reader" in {item["stage"] for item in body["degraded"]}
    assert not {name for name in body["signals"] if name.startswith("reader_")}


async def test_it_reads_beside_the_generator(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.seconds = 0.5
    body = await ask(gateway)
    reading, generating = body["timings"]["read"], body["timings"]["generate"]
    assert reading["start_ms"] < generating["start_ms"] + 400
    assert reading["start_ms"] + reading["elapsed_ms"] < generating["start_ms"] + generating["elapsed_ms"] + 1_500


async def test_it_can_be_left_out(services: Services) -> None:
    async with services.usual(read_cap_s=0) as gateway:
        body = await ask(gateway)
    assert "read" not in body["timings"]
    assert "reader" not in {item["stage"] for item in body["degraded"]}
