"""A list that a SELECT found is told whole."""

import json
from typing import Any

import pytest

from proto.kg import KgResponse, KgStatement
from services.gateway.steps.knowledge_graph import MAX_LISTED, with_whole_list

FOUND = "SELECT name FROM exam WHERE hall = 1"
TWO = [{"name": "Una Brand"}, {"name": "Cal Dorne"}]
TIE = ("the same count: Southend",)
TIES = ("the same count: Ash, Ltd; Elm",)
MANY = ("the same count: Elm, Fig, Gum, others",)


def facts(
    rows: list[dict[str, Any]], *, count: int = 0, notes: tuple[str, ...] = (), mode: Any = "sql", source: str = FOUND
) -> KgResponse:
    statement = KgStatement(
        source=source,
        status="ok",
        rows_json=json.dumps(rows),
        row_count=count or len(rows),
        notes=notes,
        text="Exams (hall 1) (2): Una Brand; Cal Dorne.",
    )
    return KgResponse(status="ok", mode=mode, statements=(statement,), text="")


@pytest.mark.parametrize(
    ("answer", "found", "whole"),
    [
        ("Una Brand", facts(TWO), "Una Brand, Cal Dorne"),
        ("una brand", facts(TWO), "Una Brand, Cal Dorne"),
        ("Cal Dorne and Una Brand", facts(TWO), "Cal Dorne and Una Brand"),
        ("Northgate", facts([{"hall": "Northgate", "count": 4}], notes=TIE), "Northgate, Southend"),
        ("A, B", facts([{"title": "A, B"}, {"title": "C"}]), "A, B"),
        ("C", facts([{"title": "A, B"}, {"title": "C"}]), "A, B; C"),
        ("Oak", facts([{"name": "Oak"}], notes=TIES), "Oak; Ash, Ltd; Elm"),
        ("Oak", facts([{"name": "Oak"}], notes=MANY), "Oak"),
        # As the rows have them: a letter is lost, a word stands before a name, or they are called what they are.
        ("Una Brant", facts(TWO[:1]), "Una Brand"),
        ("examinee Una Brand", facts(TWO), "Una Brand, Cal Dorne"),
        ("Exams", facts(TWO), "Una Brand, Cal Dorne"),
        ("Exam", facts(TWO), "Exam"),
        ("Exams", facts(TWO[:1]), "Exams"),
        ("Una Blake", facts(TWO[:1]), "Una Blake"),
        # What is told beside the names may be a reason, and what is no name of a row another answer.
        ("Una Brand", facts(TWO, source="SELECT name, age FROM exam WHERE hall = 1"), "Una Brand"),
        ("Una Brand", facts([{"no": 1} | TWO[0], {"no": 2} | TWO[1], {"no": 3} | TWO[0]]), "Una Brand, Cal Dorne"),
        ("everyone but Cal Dorne", facts(TWO), "everyone but Cal Dorne"),
        ("not Cal Dorne", facts(TWO), "not Cal Dorne"),
        ("2", facts(TWO), "2"),
        ("yes", facts([{"name": "Una Brand"}]), "yes"),
        ("Una Brand", facts(TWO, count=3), "Una Brand"),
        ("Una Brand", facts(TWO, mode="rules"), "Una Brand"),
        ("3", facts([{"value": 3}, {"value": 4}]), "3"),
        ("0", facts([{"name": str(number)} for number in range(MAX_LISTED + 1)]), "0"),
        ("i don't know", facts([]), "i don't know"),
    ],
)  # fmt: skip
def test_a_list_is_told_whole(answer: str, found: KgResponse, whole: str) -> None:
    assert with_whole_list(answer, "who failed?", found) == whole


def test_one_of_a_list_may_be_wanted() -> None:
    assert with_whole_list("Una Brand", "name one who failed", facts(TWO)) == "Una Brand"
    assert with_whole_list("Una Brand", "whose name begins with U?", facts(TWO)) == "Una Brand"
