"""Labels by db3's rules, the check whether texts hold an answer, and programs found by trying."""

import pytest

from lab.evaluator.data import Item
from lab.trainer.errors import BadLabels
from lab.trainer.labelling import best_program, label
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


@pytest.mark.parametrize("gold", ["No", "no.", "Yes, since 1702", "true", "No, it was 1702", "no they are not"])
def test_a_yes_or_a_no_is_known_from_what_the_question_is_about(gold: str) -> None:
    assert holds(["The keepers of Velmora run a harbour."], gold, QUERY)


@pytest.mark.parametrize("gold", ["No Country for Old Men", "No Doubt", "True Grit", "Yes Man", "No. 10"])
def test_a_name_that_begins_like_a_yes_or_a_no_stands_in_the_text(gold: str) -> None:
    assert not holds(["The keepers of Velmora run a harbour."], gold, QUERY)
    assert holds([f"It is {gold}."], gold, QUERY)


def test_dates_and_numbers_are_found_however_they_are_written() -> None:
    assert len(days_in(plain("2024-02-13, Feb 13th, 2024 and 13 february 2024"))) == 1
    assert days_in("2024-13-45 99999999") == set()
    assert numbers_in("$1.2 million, 1,204.5, -3 and four") == [1.2e6, 1204.5, -3.0, 4.0]
    assert numbers_in("b2b 4x4 v1.2.3x") == []


def item(label_kind: str = "answer", gold: tuple[str, ...] = ("Ilse Marwick", "I. Marwick")) -> Item:
    return Item("q1", QUERY, gold, label_kind, {}, "questions.jsonl:1")


@pytest.mark.parametrize(
    ("label_kind", "outcome", "context", "completion", "kind"),
    [
        ("answer", "right", "", "Ilse Marwick", "answer"),
        ("answer", "wrong", "Ilse Marwick runs it", "Ilse Marwick", "answer"),
        ("answer", "wrong", "I. Marwick runs it", "Ilse Marwick", "answer"),
        ("answer", "wrong", "Jon Vance runs it", "i don't know", "unknown"),
        ("answer", "missing", "Ilse Marwick runs it", "Ilse Marwick", "answer"),
        ("answer", "missing", "", "i don't know", "unknown"),
        ("invalid", "wrong", "", "invalid question", "invalid_question"),
        ("idk", "wrong", "", "i don't know", "unknown"),
    ],
)
def test_db3s_rules(label_kind: str, outcome: str, context: str, completion: str, kind: str) -> None:
    made = label(item(label_kind), outcome, [context])
    assert made[:2] == (completion, kind)


def test_what_has_no_label_is_named() -> None:
    with pytest.raises(BadLabels, match="q1: outcome"):
        label(item(), "perhaps", [])
    with pytest.raises(BadLabels, match="q1: gold"):
        label(item(gold=(" ",)), "right", [])


@pytest.mark.anyio
async def test_the_shortest_program_whose_facts_hold_the_answer_wins() -> None:
    facts = {
        "get_long_detour(x, y)": "Ilse Marwick runs it",
        "get_head(x)": "The head is Ilse Marwick.",
        "get_age(x)": "47",
        "get_none(x)": "",
    }
    executed: list[str] = []

    async def execute(program: str) -> str:
        executed.append(program)
        return facts[program]

    assert await best_program(item(), [*facts, "get_head(x)", " "], execute) == "get_head(x)"
    assert sorted(executed) == sorted(facts)
    assert await best_program(item(gold=("Jon Vance",)), facts, execute) == ""
