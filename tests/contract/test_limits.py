"""What requests may hold beyond what their OpenAPI documents say: `POST /answer` and `POST /retrieve`."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from proto.answer import MAX_BUDGET_S, MIN_BUDGET_S, AnswerRequest
from proto.base import MAX_PAGE_CHARS, MAX_PAGES, MAX_PAGES_CHARS, MAX_PASSAGE_CHARS, MAX_QUERY_CHARS, Contract
from proto.retrieve import RetrieveRequest

REQUESTS: list[type[Contract]] = [AnswerRequest, RetrieveRequest]
PAGES_FIELD: dict[type[Contract], tuple[str, str]] = {
    AnswerRequest: ("search_results", "page_result"),
    RetrieveRequest: ("pages", "html"),
}

RECORD: dict[str, Any] = {
    "interaction_id": "6f6c8a0e-0000-4000-8000-000000000001",
    "query_time": "03/10/2024, 23:19:21 PT",
    "domain": "open",
    "question_type": "simple",
    "static_or_dynamic": "static",
    "query": "which river runs through the town of Ardmoor?",
    "answer": "the Lenn",
    "alt_ans": ["River Lenn"],
    "split": 0,
    "popularity": "",
    "search_results": [
        {
            "page_name": "Ardmoor",
            "page_url": "https://example.org/ardmoor",
            "page_snippet": "Ardmoor lies on the <strong>Lenn</strong>.",
            "page_result": "<html><body><p>Ardmoor lies on the Lenn.</p></body></html>",
            "page_last_modified": "Tue, 05 Mar 2024 08:00:00 GMT",
        },
        {"page_name": "Rivers", "page_snippet": None, "page_result": "", "page_last_modified": None},
    ],
}


def request(model: type[Contract], **fields: Any) -> Contract:
    return model.model_validate({"query": "why?", PAGES_FIELD[model][0]: []} | fields)


def pages(model: type[Contract], *texts: str) -> dict[str, Any]:
    field, text_field = PAGES_FIELD[model]
    return {field: [{text_field: text} for text in texts]}


def rejected(model: type[Contract], **fields: Any) -> str:
    """The error's location as a dotted path."""
    with pytest.raises(ValidationError) as caught:
        request(model, **fields)
    assert "xxxxx" not in str(caught.value), "an error repeats a page"
    return ".".join(str(part) for part in caught.value.errors()[0]["loc"])


@pytest.mark.parametrize("model", REQUESTS)
def test_a_query_has_its_limits(model: type[Contract]) -> None:
    for query in ("?", "q" * MAX_QUERY_CHARS, " \n" + "q" * MAX_QUERY_CHARS + "\t ", "為" * 2_000):
        assert request(model, query=query).model_dump()["query"] == query.strip()
    for wrong in ("", " \t\n", "q" * (MAX_QUERY_CHARS + 1), None, 7, ["q"]):
        assert rejected(model, query=wrong) == "query"


@pytest.mark.parametrize("model", REQUESTS)
def test_pages_as_large_in_all_as_allowed_and_no_larger(model: type[Contract]) -> None:
    full = ["x" * MAX_PAGE_CHARS] * (MAX_PAGES_CHARS // MAX_PAGE_CHARS)
    request(model, **pages(model, *full))
    # The limit spans the pages, so that no single field is to blame.
    assert rejected(model, **pages(model, *full, "x")) == ""


def test_evidence_has_its_limits() -> None:
    request(AnswerRequest, evidence=["x" * MAX_PASSAGE_CHARS] * MAX_PAGES)
    assert rejected(AnswerRequest, evidence=["", "x" * (MAX_PASSAGE_CHARS + 1)]) == "evidence.1"
    assert rejected(AnswerRequest, evidence=["x"] * (MAX_PAGES + 1)) == "evidence"


def test_a_budget_has_its_limits() -> None:
    for budget, seconds in ((MIN_BUDGET_S, 0.5), (MAX_BUDGET_S, 30.0), (7, 7.0), (None, 30.0), ("12.5", 12.5)):
        assert AnswerRequest.model_validate({"query": "why?", "budget_s": budget}).budget_s == seconds
    outside: tuple[object, ...] = (
        0,
        0.49,
        30.01,
        -1,
        1e308,
        math.inf,
        -math.inf,
        math.nan,
        "NaN",
        "Infinity",
        "soon",
        {},
    )
    for wrong in outside:
        assert rejected(AnswerRequest, budget_s=wrong) == "budget_s"
    for word in ("NaN", "Infinity", "-Infinity"):
        with pytest.raises(ValidationError):
            AnswerRequest.model_validate_json(f'{{"query": "why?", "budget_s": {word}}}')


def test_a_query_time_is_read_and_reads_back_as_the_same_moment() -> None:
    for written, moment in {
        "02/28/2024, 10:04:54 PT": "2024-02-28T18:04:54",
        "07/28/2024, 10:04:54 PT": "2024-07-28T17:04:54",
        "07/28/2024, 10:04:54 UTC": "2024-07-28T10:04:54",
        "  02/28/2024, 10:04:54 PT ": "2024-02-28T18:04:54",
        "2024-02-28T18:04:54Z": "2024-02-28T18:04:54",
        "2024-02-28T18:04:54.25+05:30": "2024-02-28T12:34:54.250000",
        "2024-02-28 18:04:54": "2024-02-28T18:04:54",
        "2024-02-28": "2024-02-28T00:00:00",
        # The hour that summer time repeats, and the one that it skips.
        "11/03/2024, 01:30:00 PT": "2024-11-03T08:30:00",
        "03/10/2024, 02:30:00 PT": "2024-03-10T10:30:00",
        # Local mean time, with seconds in its offset.
        "01/01/1880, 12:00:00 PT": "1880-01-01T19:52:58",
        "2024-02-28T18:04:54+01:02:03": "2024-02-28T17:02:51",
    }.items():
        sent = AnswerRequest.model_validate({"query": "why?", "query_time": written})
        received = AnswerRequest.model_validate_json(sent.model_dump_json())
        assert received == sent
        for read in (sent, received):
            assert read.query_time is not None
            assert read.query_time.astimezone(UTC).replace(tzinfo=None).isoformat() == moment, written


@pytest.mark.parametrize(
    "written",
    [
        "", "yesterday", "02/30/2024, 10:04:54 PT", "28/02/2024, 10:04:54 PT", "02/28/2024, 10:04:54 EST",
        "02/28/2024", "2024-02-28T25:00:00Z", "0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00", 1709143494,
        {},
    ],
)  # fmt: skip
def test_a_query_time_that_cannot_be_read(written: object) -> None:
    assert rejected(AnswerRequest, query_time=written) == "query_time"


@pytest.mark.parametrize("model", REQUESTS)
def test_unknown_fields_are_ignored(model: type[Contract]) -> None:
    field, text_field = PAGES_FIELD[model]
    plain = request(model, **pages(model, "x"))
    assert request(model, **{field: [{text_field: "x", "rank": 1}], "alt_ans": [], "split": 0}) == plain


@pytest.mark.parametrize("model", REQUESTS)
def test_null_means_the_default(model: type[Contract]) -> None:
    field, text_field = PAGES_FIELD[model]
    optional = [name for name, info in model.model_fields.items() if not info.is_required()]
    for name in optional:
        assert request(model, **{name: None}) == request(model, **{field: []})
    assert request(model, **{field: [{text_field: None}]}) == request(model, **{field: [{}]})


def test_a_record_of_crag_posts_as_it_is() -> None:
    read = AnswerRequest.model_validate_json(json.dumps(RECORD))
    assert (read.query, read.interaction_id) == (RECORD["query"], RECORD["interaction_id"])
    assert read.query_time == datetime(2024, 3, 11, 6, 19, 21, tzinfo=UTC)
    assert [page.page_name for page in read.search_results] == ["Ardmoor", "Rivers"]
    assert read.search_results[0].model_dump() == RECORD["search_results"][0]
    assert (read.search_results[1].page_snippet, read.search_results[1].page_last_modified) == ("", "")
    assert read.budget_s == MAX_BUDGET_S
