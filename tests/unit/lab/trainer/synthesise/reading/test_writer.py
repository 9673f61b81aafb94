"""The writer: what a scripted model makes of a brief, and what of it is kept."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from lab.trainer.pairs import Pair
from lab.trainer.synthesise.reading.briefs import QUESTIONS, draw
from lab.trainer.synthesise.reading.writer import Outcome, Writer
from services.kit.client import ServiceClient, http_client
from services.kit.errors import ServiceFailure
from services.kit.llm import LLM
from tests.mesh.fakes import FakeGenerator
from tests.unit.lab.trainer.synthesise.reading.script import OPEN, PAIRS, PASSAGE, Script

pytestmark = pytest.mark.anyio

BRIEF = replace(draw(1, 1), title="The Velna Bridge", spare=("4", "Kalbro"), words=220)


async def written(script: Script) -> tuple[Outcome, FakeGenerator]:
    generator = FakeGenerator(script.reply)
    async with http_client(httpx.ASGITransport(generator.app)) as http:
        writer = Writer(LLM(ServiceClient("generator", "http://generator", http)), requests=3)
        return await writer.write("1-1", BRIEF), generator


def by_id(items: list[Pair]) -> dict[str, Pair]:
    return {item.id.rpartition("-")[2]: item for item in items}


async def test_items_of_every_way() -> None:
    result, _ = await written(Script())
    items = by_id(result.items)
    assert items.keys() == {"q0", "q1", "open0", "open1", "swap0", "swap1", "cut0", "cut1"}
    for item in items.values():
        assert item.passage[item.start :].startswith(item.answer) if item.answer else item.start == -1
        assert bool(item.answer) == item.id.rpartition("-")[2].startswith("q")
        assert item.title == "The Velna Bridge"
    # The model's own answer is the shorter span.
    assert (items["q0"].answer, items["q0"].start) == ("1911", PASSAGE.index("1911"))
    assert [items["open0"].question, items["open1"].question] == OPEN
    assert items["swap0"].question == "When was the Kalbro Bridge opened?"
    assert items["cut1"].question == items["q1"].question
    assert items["cut1"].passage == PASSAGE.replace(
        " Because the old ferry had sunk, the town paid for it with a loan.", ""
    )
    assert result.rejected == {"answer is not in the passage": 1}


async def test_requests_of_the_model() -> None:
    """Each kept question is answered twice, once by chance; they share the beginning of their prompt."""
    result, generator = await written(Script())
    for item in result.items:
        order = f"Text: {item.passage}\n\nQuestion: {item.question}"
        heats = [body["temperature"] for body in generator.requests if body["messages"][-1]["content"] == order]
        # What names something else has no answer whatever the model says.
        assert len(heats) == (0 if "-swap" in item.id else 2)
        assert not heats or heats[0] == 0 < heats[1]
    reading = [body["messages"] for body in generator.requests if body["messages"][-1]["content"].startswith("Text: ")]
    assert len(reading) > 5
    assert all(messages[:-1] == reading[0][:-1] for messages in reading)
    schemas = [
        body["response_format"]["json_schema"]["schema"] for body in generator.requests if "response_format" in body
    ]
    assert sorted(schema["minItems"] for schema in schemas) == [len(OPEN), QUESTIONS]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (["1990", "1911"], "own answer: another"),
        (["1911", "1990"], "own answer: another"),
        (["none", "1911"], "own answer: none"),
        (["1911", "None."], "own answer: none"),
    ],
)
async def test_both_of_its_own_answers_must_agree(answers: list[str], reason: str) -> None:
    script = Script(pairs=json.dumps(PAIRS[:1]), open="[]", answers={str(PAIRS[0]["q"]): answers})
    result, _ = await written(script)
    assert (result.items, result.rejected[reason]) == ([], 1)


@pytest.mark.parametrize(
    ("answers", "kept"),
    [(["1911", "none"], True), (["none", "1911"], True), (["none", "none"], True), (["1911", "Ida Morsen"], False)],
)
async def test_a_question_without_answer_is_dropped_where_the_model_never_says_so(
    answers: list[str], kept: bool
) -> None:
    result, _ = await written(Script(pairs="[]", answers={OPEN[0]: answers}))
    assert by_id(result.items).keys() == ({"open0", "open1"} if kept else {"open1"})
    assert result.rejected["open: answered all the same"] == (not kept)


@pytest.mark.parametrize(
    ("replies", "kept"),
    [(["none", "none"], True), (["240 metres", "a loan"], True), (["1911", "none"], False), (["none", "1911"], False)],
)
async def test_over_a_passage_that_lost_the_answer_only_that_answer_is_wrong(replies: list[str], kept: bool) -> None:
    question = str(PAIRS[0]["q"])
    script = Script(pairs=json.dumps(PAIRS[:1]), open="[]", answers={question: ["1911", "1911", *replies]})
    result, _ = await written(script)
    assert ("cut0" in by_id(result.items)) == kept
    assert result.rejected["cut: answered all the same"] == (not kept)


async def test_a_question_comes_once() -> None:
    result, _ = await written(Script(pairs=json.dumps([PAIRS[0], PAIRS[0]])))
    assert [item.id for item in result.items if item.answer] == ["1-1-q0"]
    assert result.rejected["asked twice"] == 1


@pytest.mark.parametrize(
    "pairs",
    [
        '[{"q": "When was the Velna Bri',
        '[{"q": "When was the Velna Bridge opened?", "a": ""}]',
        '[{"q": "When was the Velna Bridge opened?", "a": "1911", "x": "y"}]',
        json.dumps([PAIRS[0]] * (QUESTIONS + 1)),
    ],
)
async def test_a_reply_that_breaks_the_schema_loses_its_questions_alone(pairs: str) -> None:
    result, _ = await written(Script(pairs=pairs))
    assert by_id(result.items).keys() == {"open0", "open1"}
    assert result.rejected == {"reply breaks the schema": 1}


async def test_a_passage_of_no_use_is_asked_nothing() -> None:
    script = Script(passage="Too short.")
    result, _ = await written(script)
    assert (result.items, dict(result.rejected), len(script.asked)) == ([], {"passage's length": 1}, 1)


@pytest.mark.parametrize(
    "passage", [f"# **The Velna Bridge**\n\n{PASSAGE}", f"Certainly! Here is a text about a bridge:\n\n{PASSAGE}"]
)
async def test_marks_and_talk_are_taken_off_a_passage(passage: str) -> None:
    result, _ = await written(Script(passage=passage))
    assert result.items
    assert result.items[0].passage.removeprefix("The Velna Bridge\n") == PASSAGE


async def test_a_passage_that_was_cut_off_ends_with_a_sentence() -> None:
    result, _ = await written(Script(passage=f"{PASSAGE} {'And so on ' * 300}"))
    assert result.items[0].passage == PASSAGE


async def test_a_server_that_fails_is_the_callers_matter() -> None:
    def refuse(_: httpx.Request) -> Any:
        return httpx.Response(500)

    async with http_client(httpx.MockTransport(refuse)) as http:
        writer = Writer(LLM(ServiceClient("generator", "http://generator", http), model="m"), requests=3)
        with pytest.raises(ServiceFailure):
            await writer.write("1-1", BRIEF)
