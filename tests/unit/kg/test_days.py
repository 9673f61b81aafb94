"""Days in SQL: differences, in the words of each database, and what says today."""

from datetime import date

import pytest
import sqlglot
from sqlglot import exp

from services.kg.days import difference, read_differences, words_of, write_days
from services.kg.errors import ParseError

TODAY = date(2026, 3, 9)


def of_loans(output: str) -> exp.Select:
    return sqlglot.select(output, dialect="sqlite").from_("loan")


@pytest.mark.parametrize(
    "text",
    [
        "JULIANDAY(back) - JULIANDAY(lent)",
        "(julianday(back)) - julianday(lent)",
        "CAST(JULIANDAY(back) - JULIANDAY(lent) AS INTEGER)",
        "CAST((JULIANDAY(back) - JULIANDAY(lent)) AS INT)",
    ],
)
def test_a_difference_is_read_however_it_is_written(text: str) -> None:
    tree = of_loans(text)
    read_differences(tree)
    (output,) = tree.selects
    assert isinstance(output, exp.DateDiff)
    assert output == difference(sqlglot.column("back"), sqlglot.column("lent"))
    assert words_of(output) == "number of days from lent to back"
    again = sqlglot.parse_one(tree.sql("sqlite"), read="sqlite")
    read_differences(again)
    assert again == tree
    assert "EXTRACT(epoch FROM CAST(back AS TIMESTAMP) - CAST(lent AS TIMESTAMP)) / 86400" in tree.sql("postgres")


@pytest.mark.parametrize(
    "text", ["JULIANDAY(back) - 3", "JULIANDAY(back, lent) - JULIANDAY(lent)", "LENGTH(a) - LENGTH(b)"]
)
def test_another_difference_stays(text: str) -> None:
    tree = of_loans(text)
    before = tree.copy()
    read_differences(tree)
    assert tree == before


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("JULIANDAY('now') - JULIANDAY(lent)", "CAST((JULIANDAY('2026-03-09') - JULIANDAY(lent)) AS INTEGER)"),
        ("DATE(lent)", "lent"),
        ("DATE('now')", "'2026-03-09'"),
        ("STRFTIME('%Y', lent)", "SUBSTRING(lent, 1, 4)"),
    ],
)
def test_days_are_written_as_texts(text: str, written: str) -> None:
    tree = of_loans(text)
    read_differences(tree)
    write_days(tree, TODAY)
    assert tree.sql("sqlite") == of_loans(written).sql("sqlite")


@pytest.mark.parametrize("text", ["STRFTIME('%W', lent)", "DATE(lent || '')"])
def test_what_else_is_computed_of_a_day_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="something of a day"):
        write_days(of_loans(text), TODAY)
