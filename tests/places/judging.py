"""Whether a program's statements answer a question: they must show the right values and no others."""

import re
from collections.abc import Sequence
from typing import Any, Literal

from services.kg.outcome import Outcome
from tests.places.questions import Question

Verdict = Literal["right", "wrong", "silent"]
Gold = Sequence[tuple[Any, ...]]

WITH_FACTS = frozenset({"ok", "stale"})
# Numbers are as good as the question's own precision.
TOLERANCE = 1e-3
# A statement returns the first rows of a longer list.
MOST_ROWS = 50


def judge(question: Question, gold: Gold, outcomes: Sequence[Outcome]) -> Verdict:
    """`silent` where nothing was asserted, which is right for what the tables do not hold.

    Args:
        question: its kind says how it is judged.
        gold: the right answer's rows; of a comparison (name, value), the winner first.
        outcomes: of the program's statements.
    """
    facts = [outcome for outcome in outcomes if outcome.status in WITH_FACTS]
    if not facts:
        return "silent"
    if question.kind == "unknown":
        return "wrong"
    if question.kind == "comparison" and _compares(gold, facts):
        return "right"
    if question.kind == "arithmetic":
        # The sign of a difference depends on the order of its operands.
        computed = [abs(outcome.value) for outcome in facts if isinstance(outcome.value, int | float)]
        return "right" if any(_equal(value, gold[0][0]) for value in computed) else "wrong"
    values = [row[0] for row in gold]
    columns = [column for outcome in facts for column in _columns(outcome)]
    if question.kind == "comparison":
        values = values[:1]
    answers = [[value] for value in values] if question.any else [values]
    return "right" if any(_same(column, answer) for column in columns for answer in answers) else "wrong"


def _compares(gold: Gold, facts: Sequence[Outcome]) -> bool:
    """Whether each side's value is shown, so that a reader can tell the winner."""
    values = [column for outcome in facts for column in _columns(outcome) if len(column) == 1]
    return len(facts) == len(gold) and all(any(_equal(value, column[0]) for column in values) for _, value in gold)


def _columns(outcome: Outcome) -> list[list[Any]]:
    """The values of an outcome: its aggregate, or those of each key that it shows."""
    if outcome.value is not None:
        return [[outcome.value]]
    if any(len(entity.entity_ids) > 1 for entity in outcome.entities):
        # All namesakes are shown, the best known first.
        first = outcome.rows[:1]
        return [[row.get(key) for row in rows] for key in outcome.shown for rows in (first, outcome.rows)]
    # A statement that projects nothing tells its rows' names as well.
    keys = outcome.shown
    if outcome.function is not None and keys == outcome.function.default:
        keys += outcome.function.subject
    return [[row.get(key) for row in outcome.rows] for key in keys]


def _same(values: Sequence[Any], answer: Sequence[Any]) -> bool:
    """Whether both hold the same distinct values in any order; of a cut list only those that it has are compared."""
    left, right = _distinct(values), _distinct(answer)
    if len(values) == MOST_ROWS and len(right) > MOST_ROWS:
        return all(any(_equal(one, other) for other in right) for one in left)
    return len(left) == len(right) and all(any(_equal(one, other) for other in left) for one in right)


def _distinct(values: Sequence[Any]) -> list[Any]:
    return list({_plain(value): value for value in values if value is not None}.values())


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= TOLERANCE * max(abs(one), abs(other))
    return _plain(one) == _plain(other)


def _plain(value: Any) -> str:
    return re.sub(r"\W+", " ", str(value).casefold()).strip()
