"""The questions stand before the words: what they are made of, and that the data answer them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import pytest

from tests.places.questions import gold_rows, open_tables, questions


@pytest.fixture(scope="module")
def connection(places_folder: Path) -> Iterator[Connection]:
    with closing(open_tables(places_folder / "csv")) as opened:
        yield opened


def test_the_halves_are_sixty_each_and_share_nothing() -> None:
    work, held_out = questions("work"), questions("held-out")
    assert len({one.text.lower() for one in (*work, *held_out)}) == 120
    assert len(work) == len(held_out) == 60
    assert {one.kind for one in work} == {one.kind for one in held_out}


def test_every_question_has_an_answer_in_the_data_or_is_beyond_them(connection: Connection) -> None:
    for question in (*questions("work"), *questions("held-out")):
        answers = gold_rows(question, connection)
        if question.kind == "unknown":
            assert not answers, question.text
        else:
            assert answers, question.text
            assert all(None not in row for row in answers), question.text


def test_a_comparison_has_one_winner(connection: Connection) -> None:
    for question in (*questions("work"), *questions("held-out")):
        if question.kind == "comparison":
            values = [value for _, value in gold_rows(question, connection)]
            assert len(values) >= 2, question.text
            assert values[0] != values[1], question.text
