"""The kind of answer that a question asks for, and whether an answer is of it."""

import pytest

from services.gateway.answer_kinds import fits, kind_asked


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("When did the Harbour Light open?", "time"),
        ("in which year did it open, and who built it?", "time"),
        ("who opened the pier when it was built?", "person"),
        ("Can you tell me who built the lighthouse?", "person"),
        ("whose lamp is it?", "person"),
        ("how many lamps have they?", "number"),
        ("how old is the keeper?", "number"),
        ("Is the lamp lit?", "decision"),
        ("did the pier open when the lamp was lit?", "decision"),
        ("is the pier older or the lamp?", None),
        ("what is the lamp made of?", None),
        ("how did the keeper climb?", None),
        ("the whole pier", None),
        ("", None),
    ],
)
def test_the_kind_that_a_question_asks_for(query: str, kind: str | None) -> None:
    assert kind_asked(query) == kind


@pytest.mark.parametrize(
    ("query", "answer", "fit"),
    [
        ("when did it open?", "1864", True),
        ("when did it open?", "in late autumn", True),
        ("when did it open?", "Marta Lindqvist", False),
        ("how many lamps have they?", "seven lamps", True),
        ("how many lamps have they?", "12", True),
        ("how many lamps have they?", "the keeper's", False),
        ("who built it?", "Marta Lindqvist", True),
        ("who built it?", "1,240 visitors", False),
        ("who built it?", "yes", False),
        ("is it lit?", "Yes, it is", True),
        ("is it lit?", "Nordlund", False),
        ("what is it made of?", "1864", True),
    ],
)
def test_an_answer_is_of_the_kind_or_not(query: str, answer: str, fit: bool) -> None:
    assert fits(query, answer) is fit
