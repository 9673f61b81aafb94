"""The adapters: what each API is asked, and its reply read as its documentation has it."""

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import ValidationError

from services.kit.errors import ServiceUnavailable
from services.searcher.engines import ENGINES
from services.searcher.engines.base import Engine
from services.searcher.queries import queries
from services.searcher.settings import EngineName

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HIT = {"url": "https://example.org/", "title": "The <strong>harbour</strong> &amp; quay"}
REPLIES: dict[EngineName, Any] = {
    "searxng": {"results": [HIT | {"content": "A light.", "publishedDate": "2026-03-01T00:00:00", "engines": ["x"]}]},
    "brave": {"web": {"results": [HIT | {"description": "A light.", "page_age": "2026-03-01T00:00:00"}]}},
    "tavily": {"results": [HIT | {"content": "A light.", "published_date": "2026-03-01T00:00:00", "score": 0.5}]},
}
NOTHING: dict[EngineName, Any] = {"searxng": {"results": []}, "brave": {"type": "search"}, "tavily": {"results": []}}


def engine_of(name: EngineName, *, count: int = 20) -> Engine:
    return ENGINES[name](key="secret", language="de", count=count)


@pytest.mark.parametrize("name", ENGINES)
def test_a_reply_is_read_as_hits(name: EngineName) -> None:
    engine = engine_of(name)
    (hit,) = engine.hits(json.dumps(REPLIES[name]).encode())
    assert (hit.url, hit.title, hit.snippet) == (HIT["url"], "The harbour & quay", "A light.")
    assert hit.published == "2026-03-01T00:00:00"
    assert engine.hits(json.dumps(NOTHING[name]).encode()) == []


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("field", ["title", "content", "description", "publishedDate", "page_age", "published_date"])
def test_null_where_a_text_is_expected_costs_that_text(name: EngineName, field: str) -> None:
    reply = REPLIES[name]["web"]["results"] if name == "brave" else REPLIES[name]["results"]
    broken = [reply[0] | {field: None}]
    assert engine_of(name).hits(json.dumps({"results": broken, "web": {"results": broken}}).encode())


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("reply", [b"", b"<html>", b"[]", b'{"results": 1, "web": 1}', b'{"results": [{"url": 1}]}'])
def test_what_is_no_reply_is_an_error(name: EngineName, reply: bytes) -> None:
    if name == "brave" and reply.startswith(b'{"results": ['):
        return
    with pytest.raises(ValidationError):
        engine_of(name).hits(reply)


def test_searxng_is_asked_for_json() -> None:
    call = engine_of("searxng").call("who & what?")
    assert urlsplit(call.path).path == "/search"
    assert parse_qs(urlsplit(call.path).query) == {"q": ["who & what?"], "format": ["json"], "language": ["de"]}
    assert (call.method, call.body) == ("GET", None)


def test_a_searxng_that_nobody_answers_is_no_empty_result() -> None:
    reply = json.dumps({"results": [], "unresponsive_engines": [["duckduckgo", "CAPTCHA"], ["brave", "timeout"]]})
    with pytest.raises(ServiceUnavailable, match="hears nothing from duckduckgo: CAPTCHA; brave: timeout"):
        engine_of("searxng").hits(reply.encode())


def test_brave_has_its_token_and_limits() -> None:
    engine = engine_of("brave", count=50)
    assert engine.headers["x-subscription-token"] == "secret"
    params = parse_qs(urlsplit(engine.call("word " * 90).path).query)
    assert (params["count"], params["search_lang"], len(params["q"][0].split())) == (["20"], ["de"], 50)


def test_tavily_has_its_token_and_body() -> None:
    engine = engine_of("tavily", count=7)
    assert engine.headers == {"authorization": "Bearer secret"}
    call = engine.call("x" * 900)
    assert (call.method, call.path) == ("POST", "/search")
    assert call.body == {"query": "x" * 400, "max_results": 7, "search_depth": "basic"}


@pytest.mark.parametrize(
    ("question", "count", "first"),
    [
        ("who built the harbour light?", 1, ["who built the harbour light?"]),
        ("who built the harbour light?", 2, ["who built the harbour light?", "built harbour light"]),
        ("harbour light", 2, ["harbour light"]),
        ("why is that?", 2, ["why is that?"]),
        ("what is the latest price of C++ courses?", 2, ["what is the latest price of C++ courses?"]),
    ],
)
def test_a_question_becomes_queries(question: str, count: int, first: list[str]) -> None:
    texts = queries(question, NOON, count)
    assert texts[: len(first)] == first
    assert ("March 2026" in texts[-1]) is ("latest" in question)
    assert len(texts) <= count
