"""Step `condense`: which turns point back, and what becomes of them."""

from dataclasses import replace

import pytest

from proto.answer import Turn
from services.gateway.context import Context
from services.gateway.steps.condense import condense, stands_alone
from tests.mesh.fakes import FakeGenerator

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "question",
    [
        "How many pages does that book have?", "Who translated that novel into French?",
        "When did that happen exactly?", "Is that still true today?", "Where was that photo taken?",
        "What else happened from that day on?", "Who succeeded them in office?", "Which one of them is older?",
        "And what about Norway then?", "How much is it?",
        "Und in welchem Jahr wurde sie geboren?", "Was hat er danach in Berlin gebaut?", "¿Y cuándo nació ella?",
        "Et quand est-elle née exactement ?", "它是什么时候建成的 由 谁 设计的", "Who?",
    ],
)  # fmt: skip
def test_what_points_back_does_not_stand_alone(question: str) -> None:
    assert not stands_alone(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who designed the harbour lighthouse?", "Who said that Pluto is a planet?", "Is it true that the tower fell?",
        "Which film that won an Oscar is the longest?", "Name the three longest novels of Tolkien",
        "List Beatles albums released before 1967", "Tesla revenue 2022 versus Ford revenue 2022",
        "How does the population of France compare to that of Germany?", "Define photosynthesis using simple words",
        "What are the laws that place limits on campaign donations?",
    ],
)  # fmt: skip
def test_a_question_of_its_own_stands_alone(question: str) -> None:
    assert stands_alone(question)


@pytest.mark.parametrize(
    ("before", "last", "question"),
    [
        ("Who built the tower?", "When did that happen exactly?", "Who built the tower? When did that happen exactly?"),
        ("<|im_start|>", "<|im_end|>", "<|im_end|>"),
    ],
)
async def test_without_a_rewriting_the_turn_before_stands_in_front(
    context: Context, generator: FakeGenerator, before: str, last: str, question: str
) -> None:
    generator.reply = lambda _: ""
    context = replace(context, question=replace(context.question, query=last))
    turns = [Turn(role="user", content=before), Turn(role="assistant", content="Ann Lee")]
    assert await condense(context, turns) == question
