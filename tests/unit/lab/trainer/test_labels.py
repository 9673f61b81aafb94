"""Labels by db3's rules, the check whether texts hold an answer, and programs found by trying."""

from collections.abc import Sequence

import pytest

from lab.trainer.errors import BadLabels
from lab.trainer.labels import JudgedAnswer, best_program, label
from lab.trainer.relevance import days_in, holds, numbers_in, plain

QUERY = "how many keepers run the harbour of velmora?"


@pytest.mark.parametrize(
    ("gold", "context"),
    [
        ("Ilse Marwick", "The harbour master, Ilse MARWICK, has held the post since 2011."),
        ("Ílse Marwick.", "ilse marwick runs it"),
        ("Marwick, Ilse", "ilse marwick runs it"),
        ("$1.2 billion", "worth 1,204,000,000 dollars"),
        ("1204000000", "worth $1.2 billion"),
        ("1,204.50", "the close was 1204.5"),
        ("12.5%", "a margin of 12.5 percent"),
        ("three", "It has 3 cranes."),
        ("3", "It has three cranes."),
        ("February 13, 2024", "paid on 2024-02-13"),
        ("2024-02-13", "on 13 February 2024 it opened"),
        ("13th of Feb 2024", "day 20240213"),
        ("02/13/2024", "Feb. 13, 2024"),
        ("Ada, Bo and Cy", "Bo, Cy, Dee and Ada were there"),
        ("the lighthouse", "near a Lighthouse."),
        ("-0.5", "it fell by -0.5"),
        ("12 keepers run it", "The harbour has 12."),
        ("Apollo 13", "the flight of Apollo 13"),
    ],
)
def test_a_text_that_holds_the_answer(gold: str, context: str) -> None:
    assert holds(["about something else", context], gold, QUERY)


@pytest.mark.parametrize(
    ("gold", "context"),
    [
        ("Ilse Marwick", "The harbour master is Jon Marwick."),
        ("Ilse", "Ilsemarie runs it"),
        ("$1.2 billion", "worth $1.3 billion"),
        ("1.2 million", "worth 1.2 billion"),
        ("1204", "1205"),
        ("12", "in 2012 there were 120"),
        ("three", "thirteen cranes"),
        ("2024-02-13", "2024-02-14"),
        ("February 13, 2024", "13 cranes in February 2024"),
        ("Ada, Bo and Cy", "Ada and Bo were there"),
        ("red", ""),
        ("", "red"),
        ("4.5", "4 and 5"),
        ("Apollo 13", "13 cranes"),
    ],
)
def test_a_text_that_does_not(gold: str, context: str) -> None:
    assert not holds([context], gold, QUERY)


def test_items_of_a_list_may_lie_in_several_texts() -> None:
    assert holds(["Ada is one", "and Bo"], "Ada, Bo", QUERY)


def test_a_yes_can_be_known_where_the_question_is_spoken_of() -> None:
    query = "is the harbour of velmora older than the lighthouse?"
    assert holds(["The harbour of Velmora, older than any, dates from 1702; its lighthouse from 1840."], "Yes", query)
    assert not holds(["A recipe for bread."], "no", query)


def test_dates_and_numbers_are_found_however_they_are_written() -> None:
    assert len(days_in(plain("2024-02-13, Feb 13th, 2024 and 13 february 2024"))) == 1
    assert days_in("2024-13-45 99999999") == set()
    assert numbers_in("$1.2 million, 1,204.5, -3 and four") == [1.2e6, 1204.5, -3.0, 4.0]
    assert numbers_in("b2b 4x4 v1.2.3x") == []


def judged(
    outcome: str, *, label_kind: str = "answer", contexts: Sequence[str] = ("Ilse Marwick runs it",)
) -> JudgedAnswer:
    return JudgedAnswer("q1", QUERY, ("Ilse Marwick", "I. Marwick"), label_kind, outcome, tuple(contexts))


@pytest.mark.parametrize(
    ("case", "said", "kind"),
    [
        (judged("right"), "Ilse Marwick", "answer"),
        (judged("right", contexts=()), "Ilse Marwick", "answer"),
        (judged("wrong"), "Ilse Marwick", "answer"),
        (judged("wrong", contexts=("I. Marwick runs it",)), "Ilse Marwick", "answer"),
        (judged("wrong", contexts=("Jon Vance runs it",)), "i don't know", "unknown"),
        (judged("missing"), "Ilse Marwick", "answer"),
        (judged("missing", contexts=()), "i don't know", "unknown"),
        (judged("right", label_kind="invalid"), "invalid question", "invalid_question"),
        (judged("wrong", label_kind="invalid"), "invalid question", "invalid_question"),
        (judged("wrong", label_kind="idk"), "i don't know", "unknown"),
    ],
)
def test_db3s_rules(case: JudgedAnswer, said: str, kind: str) -> None:
    made = label(case)
    assert (made.completion, made.kind) == (said, kind)


def test_what_has_no_label_is_named() -> None:
    with pytest.raises(BadLabels, match="q1: outcome"):
        label(judged("perhaps"))
    with pytest.raises(BadLabels, match="q1: gold"):
        label(JudgedAnswer("q1", QUERY, (" ",), "answer", "right", ()))


@pytest.mark.anyio
async def test_the_shortest_program_whose_facts_hold_the_answer_wins() -> None:
    facts = {
        "get_long_detour(x, y)": "Ilse Marwick runs it",
        "get_head(x)": "The head is Ilse Marwick.",
        "get_age(x)": "47",
        "get_none(x)": "",
    }
    run: list[str] = []

    async def sample(query: str) -> list[str]:
        assert query == QUERY
        return [*facts, "get_head(x)", " "]

    async def execute(program: str) -> str:
        run.append(program)
        return facts[program]

    best = await best_program(QUERY, ["Ilse Marwick"], sample=sample, execute=execute)
    assert best is not None
    assert (best.program, best.tried, best.correct) == ("get_head(x)", 4, 2)
    assert sorted(run) == sorted(facts)
    assert await best_program(QUERY, ["Jon Vance"], sample=sample, execute=execute) is None
