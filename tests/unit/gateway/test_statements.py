"""Statements in plain text: read strictly, and settled only where the question asks for just that."""

from datetime import date

import pytest

from services.gateway.question import plain
from services.gateway.steps.statements import Statement, read, settle_texts

# A Wednesday.
ASKED_ON = date(2024, 2, 28)
BUDGETS = ("the budget of Northern Pier is 900000", "the budget of The Ninth Wave is $70,000,000.")


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("the budget of Heat Wave is 60000000", Statement("budget", "heat wave", "", "60000000")),
        ("Close price of ACME on 2024-02-27 is 101.04.", Statement("close price", "acme", "2024-02-27", "101.04")),
        ("the release_date of Tides is 1999-08-06", Statement("release_date", "tides", "", "1999-08-06")),
    ],
)
def test_a_statement_is_read(text: str, statement: Statement) -> None:
    assert read(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the budget of Heat Wave is 60000000 but was later corrected",
        "the budget of Heat Wave is unknown",
        "the budget of Heat Wave is 60000000. The budget of Tides is 1.",
        "the " + "x" * 100_000 + " of y is 1",
    ],
)
def test_other_texts_are_not(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("which movie had the higher budget, northern pier or the ninth wave?", "the ninth wave"),
        ("which film has a lower budget, the ninth wave or northern pier?", "northern pier"),
        ("did the ninth wave have a bigger budget than northern pier?", "yes"),
        ("what is the difference between the budgets of northern pier and the ninth wave?", "$69,100,000"),
    ],
)
def test_a_comparison_is_settled(question: str, answer: str) -> None:
    settled = settle_texts(question, BUDGETS, ASKED_ON)
    assert settled is not None
    assert settled.answer == answer


@pytest.mark.parametrize(
    "question",
    [
        "which movie has the higher rating, northern pier or the ninth wave?",
        "which movie had the higher budget, northern pier or tides?",
        "which movie did not have the higher budget, northern pier or the ninth wave?",
        "which movie had the higher opening-week budget, northern pier or the ninth wave?",
        "what do northern pier and the ninth wave have in common?",
    ],
)
def test_what_the_texts_do_not_settle_is_left_to_the_model(question: str) -> None:
    assert settle_texts(question, BUDGETS, ASKED_ON) is None


def test_one_statement_and_statements_of_different_days_settle_nothing() -> None:
    question = "which stock had the higher closing price, acme or bolt?"
    one, other = "the close price of ACME on 2024-02-27 is 3", "the close price of BOLT on 2024-02-26 is 4"
    assert settle_texts(question, (one,), ASKED_ON) is None
    assert settle_texts(question, (one, other), ASKED_ON) is None
    assert settle_texts(question, (one, other.replace("26", "27")), ASKED_ON) is not None


@pytest.mark.parametrize(
    ("when", "day", "settled"),
    [
        ("on 2024-02-27", "2024-02-27", True),
        ("on 2024-03-01", "2024-02-27", False),
        ("on 2024-13-41", "2024-02-27", False),
        ("yesterday", "20240227", True),
        ("yesterday", "2024-02-26", False),
        ("the day before yesterday", "2024-02-26", True),
        ("today", "2024-02-28", True),
        ("on the last trading day", "2024-02-27", True),
        ("on the last trading day of 2023", "2023-12-29", True),
        ("on the last trading day of 2022", "2023-12-29", False),
        ("last week", "2024-02-27", False),
        ("on february 27", "2024-02-27", False),
    ],
)
def test_statements_of_a_day_settle_what_is_asked_of_that_day(when: str, day: str, settled: bool) -> None:
    texts = tuple(f"the close price of {name} on {day} is {price}" for name, price in (("ACME", 3), ("BOLT", 4)))
    question = f"which stock had the higher closing price {when}, acme or bolt?"
    assert (settle_texts(question, texts, ASKED_ON) is not None) == settled


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("can you tell me who built the light?", "who built the light?"),
        ("Could you please give me the price of acme?", "the price of acme?"),
        ("please tell us when it opened", "when it opened"),
        ("i would like to know who sang it", "who sang it"),
        ("who can tell me apart from my twin?", "who can tell me apart from my twin?"),
        ("are you able to say who won?", "who won?"),
        ("can you tell?", "can you tell?"),
        ("are you kidding me?", "are you kidding me?"),
        ("did you know her?", "did you know her?"),
    ],
)
def test_the_favour_is_not_part_of_the_question(query: str, shown: str) -> None:
    assert plain(query) == shown
