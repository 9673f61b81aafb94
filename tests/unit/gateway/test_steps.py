"""Steps alone: what they ask, how strictly they read, what they do without time or without a generator."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.run import Run
from services.gateway.settings import GatewaySettings
from services.gateway.steps.ask import Allowance
from services.gateway.steps.closed_book import closed_book
from services.gateway.steps.generate import fit
from services.gateway.steps.reason import (
    ANSWER_WORDS,
    REASONING_WORDS,
    frame,
    origin,
    parse,
    reason,
    references,
    summarise,
)
from services.gateway.steps.self_assess import accepts, self_assess
from services.gateway.trace import Recorder
from services.kit.budget import Budget
from services.kit.llm import Message
from tests.mesh.fakes import FakeGenerator

pytestmark = pytest.mark.anyio

WEB = Evidence("Marta Lindqvist designed it.", 0, page_name="Lighthouse")
FACTS = Evidence("The height of the lighthouse is 43 m.", 0, page_name="knowledge graph", source="kg")
GOOD = '{"reasoning": "The page says so.", "false_premise": false, "answer": "Marta Lindqvist"}'


def text(body: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


async def test_memory_is_asked_without_references(context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: "It is old.\nAnswer: Marta Lindqvist"
    own = await closed_book(context, Allowance(5))
    assert own is not None
    assert (own.text, own.source) == ("It is old.\nAnswer: Marta Lindqvist", "model")
    assert "<document" not in text(generator.requests[0])
    assert context.run.usage.llm_calls == 1


@pytest.mark.parametrize("reply", ["Answer: i don't know", "I do not know.", ""])
async def test_a_memory_of_nothing_is_no_reference(context: Context, generator: FakeGenerator, reply: str) -> None:
    generator.reply = lambda _: reply
    assert await closed_book(context, Allowance(5)) is None


@pytest.mark.parametrize("allowance", [Allowance(0.4), Allowance(30, reserve_s=29.5)])
async def test_a_step_without_time_is_skipped_and_named(
    context: Context, generator: FakeGenerator, allowance: Allowance
) -> None:
    assert await closed_book(context, allowance) is None
    assert [(item.stage, item.reason) for item in context.run.degraded] == [("knowledge", "skipped")]
    assert generator.requests == []


async def test_reasoning_reads_all_references_with_their_sources(context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: GOOD
    draft = await reason(context, [FACTS, WEB])
    assert (draft.answer, draft.kind, draft.source) == ("Marta Lindqvist", "answer", "web")
    assert draft.confidence > 0.9
    assert draft.evidence == (FACTS, WEB)
    prompt = text(generator.requests[0])
    assert '<document source="knowledge graph" title="knowledge graph">' in prompt
    assert '<document source="web page" title="Lighthouse">' in prompt
    assert prompt.endswith(f"Question: {context.question.query}")
    assert "false_premise" in generator.requests[0]["structured_outputs"]["regex"]
    assert context.run.usage.llm_calls == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        *((answer, "invalid_question") for answer in ("Invalid question.", "nobody", "None", "There was no fire")),
        # To call the premise false and to answer all the same is a doubt.
        *((answer, "unknown") for answer in ("i don't know", "The documents do not say it, perhaps 1864", "1864")),
    ],
)
async def test_a_false_premise_makes_the_question_invalid_and_a_doubt_an_abstention(
    context: Context, generator: FakeGenerator, answer: str, kind: str
) -> None:
    generator.reply = lambda _: f'{{"reasoning": "It never burnt.", "false_premise": true, "answer": "{answer}"}}'
    draft = await reason(context, [WEB])
    assert (draft.kind, draft.evidence) == (kind, (WEB,))


@pytest.mark.parametrize(
    "broken",
    [
        "It was Marta Lindqvist, I think.",
        GOOD[:-1],
        f"{GOOD} and more",
        '{"reasoning": "a", "false_premise": "false", "answer": "b"}',
        '{"reasoning": "a", "false_premise": false, "answer": ""}',
        '{"reasoning": "a", "false_premise": false, "answer": "b", "role": "system"}',
        "[]",
        "null",
    ],
)
async def test_a_reply_without_the_frame_goes_to_the_summariser(
    context: Context, generator: FakeGenerator, broken: str
) -> None:
    assert parse(broken) is None
    generator.reply = lambda body: "Marta Lindqvist" if "You shorten" in text(body) else broken
    draft = await reason(context, [WEB])
    assert draft.answer == "Marta Lindqvist"
    assert context.run.usage.llm_calls == 2
    assert '<document title="notes">' in text(generator.requests[1])


async def test_without_time_for_reasoning_the_answer_alone_is_asked_for(
    context: Context, generator: FakeGenerator
) -> None:
    generator.reply = lambda _: '{"reasoning": "", "false_premise": false, "answer": "Marta"}'
    run = Run(Budget(3.4), recorder=Recorder())
    hurried = replace(context, run=run, settings=GatewaySettings(max_context_tokens=100))
    draft = await reason(hurried, [WEB])
    assert draft.answer == "Marta"
    assert '"reasoning": "",' in generator.requests[0]["structured_outputs"]["regex"]
    assert run.recorder is not None
    assert any("not for reasoning" in event.detail for event in run.recorder.trace().events)


async def test_a_generator_that_is_down_leaves_an_abstention_with_its_evidence(context: Context) -> None:
    context.mesh.generator.base_url = "http://generator/nowhere"
    draft = await reason(context, [WEB])
    assert (draft.kind, draft.evidence) == ("unknown", (WEB,))
    assert {item.stage for item in context.run.degraded} == {"generator"}


words = st.lists(
    st.text(st.characters(exclude_characters='" \\', exclude_categories=["C", "Z"]), min_size=1, max_size=8),
    min_size=1,
    max_size=60,
)


@given(reasoning=words, answer=words, false_premise=st.booleans())
def test_what_the_frame_lets_through_is_parsed(reasoning: list[str], answer: list[str], false_premise: bool) -> None:
    texts = " ".join(reasoning), " ".join(answer)
    reply = f'{{"reasoning": "{texts[0]}", "false_premise": {str(false_premise).lower()}, "answer": "{texts[1]}"}}'
    fits = len(reasoning) <= REASONING_WORDS and len(answer) <= ANSWER_WORDS
    assert (re.fullmatch(frame(wordy=True).regex, reply) is not None) == fits
    parsed = parse(reply)
    assert parsed is not None
    assert (parsed.reasoning, parsed.answer, parsed.false_premise) == (*texts, false_premise)


def test_a_frame_without_reasoning_has_none() -> None:
    constraint = frame(wordy=False)
    assert re.fullmatch(constraint.regex, '{"reasoning": "", "false_premise": true, "answer": "a b"}')
    assert not re.fullmatch(constraint.regex, GOOD)


def test_an_answer_comes_from_the_first_reference_that_holds_it() -> None:
    calculation = Evidence("43 + 1 = 44", 0, source="calculator")
    assert origin("marta lindqvist", [FACTS, WEB]) == "web"
    assert origin("43 m", [WEB, FACTS]) == "kg"
    assert origin("44", [calculation, FACTS]) == "kg"
    assert origin("something else", []) == "model"
    memory = Evidence("It opened in 1943.\nAnswer: Jonas Berg, 43", 0, source="model")
    assert origin("43", [memory, FACTS, WEB]) == "kg"
    assert origin("194", [FACTS, WEB]) == "kg"
    assert origin("it", [memory, FACTS, WEB]) == "web"
    assert origin("Jonas Berg", [memory, WEB]) == "model"
    assert origin("玛尔塔", [FACTS, Evidence("灯塔由玛尔塔设计。", 0)]) == "web"
    assert origin("yes", [memory, WEB]) == "web"


def test_references_name_tables_calculations_and_memory() -> None:
    documents = references(
        [
            Evidence("|a|", 0, kind="table"),
            Evidence("1 + 1 = 2", 0, source="calculator"),
            Evidence("Answer: 2", 0, source="model"),
        ]
    )
    assert [line for line in documents.splitlines() if line.startswith("<document")] == [
        '<document source="table" title="">',
        '<document source="calculator" title="">',
        '<document source="memory" title="">',
    ]


async def test_the_summariser_reads_the_end_of_long_notes(context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: "Answer: 1864"
    normalized = await summarise(context, "beginning " + "and so on " * 1_000 + "so it was 1864")
    assert normalized is not None
    assert normalized.answer == "1864"
    assert "so it was 1864" in text(generator.requests[0])
    assert "beginning" not in text(generator.requests[0])


async def test_confidence_is_one_word_in_the_same_chat(context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: "medium"
    chat = [Message("system", "answer"), Message("user", "documents and question")]
    assert await self_assess(context, chat, "1864 <|im_end|>") == "medium"
    (body,) = generator.requests
    assert body["structured_outputs"] == {"choice": ["high", "medium", "low"]}
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert [message["content"] for message in body["messages"][:2]] == ["answer", "documents and question"]
    assert "<|" not in body["messages"][2]["content"]


async def test_a_confidence_that_is_no_word_of_the_three_is_none(context: Context, generator: FakeGenerator) -> None:
    generator.reply = lambda _: "very high"
    assert await self_assess(context, [Message("user", "?")], "1864") is None
    assert {(item.stage, item.reason) for item in context.run.degraded} == {("generator", "bad_reply")}


@pytest.mark.parametrize(
    ("required", "given_level", "accepted"),
    [
        ("high", "high", True), ("high", "medium", False), ("medium", "high", True), ("low", "low", True),
        ("high", None, False), ("low", None, False),
    ],
)  # fmt: skip
def test_only_the_required_confidence_is_accepted(required: Any, given_level: Any, accepted: bool) -> None:
    assert accepts(required, given_level) is accepted


async def test_a_passage_that_fits_into_no_context_is_named(context: Context) -> None:
    assert await fit(context, [Evidence("x-" * 5_000, 0)], max_tokens=100) == []
    assert [item.detail for item in context.run.degraded] == ["no passage fits into 100 tokens"]
