"""The judge `rules` on pairs of our own, and on numbers changed at random."""

import random
import re
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.evaluator.judge.rules import judge
from lab.evaluator.judge.text import clean
from lab.evaluator.judge.verdict import Case
from services.kit.text.quantities import find
from tests.unit.lab.evaluator.pairs import Pair, pairs

PAIRS = pairs()


def judged_right(pair: Pair) -> bool:
    return judge(Case(pair.question, (pair.gold,), pair.prediction)).outcome == "right"


def test_there_are_enough_pairs_of_each_kind() -> None:
    kinds = Counter((pair.right, pair.kind) for pair in PAIRS)
    assert len(PAIRS) >= 300
    assert sum(pair.right for pair in PAIRS) >= 150
    assert sum(not pair.right for pair in PAIRS) >= 150
    assert kinds[(False, "number")] >= 100
    for kind in ("name", "negation", "part", "further", "swap", "unit", "polarity", "hedge"):
        assert kinds[(False, kind)] >= 3, kind
    assert len({(pair.question, pair.gold, pair.prediction) for pair in PAIRS}) == len(PAIRS)


def test_at_least_95_percent_of_the_pairs_are_judged_right() -> None:
    wrong = [pair for pair in PAIRS if judged_right(pair) != pair.right]
    assert len(wrong) <= 0.05 * len(PAIRS), wrong


def test_nothing_wrong_passes() -> None:
    assert [pair for pair in PAIRS if not pair.right and judged_right(pair)] == []


def test_no_changed_digit_passes() -> None:
    dice = random.Random(7)
    changes = 0
    for pair in PAIRS:
        # A rounding may become another one; what goes beyond the gold answer, or stands beside a yes, may be anything.
        loose = pair.kind in ("round", "more") or pair.gold.startswith("about")
        if not pair.right or loose or not find(clean(pair.gold)):
            continue
        for place in (match.start() for match in re.finditer(r"\d", pair.prediction)):
            other = dice.choice([digit for digit in "0123456789" if digit != pair.prediction[place]])
            changed = pair.prediction[:place] + other + pair.prediction[place + 1 :]
            if amounts(changed) != amounts(pair.prediction):
                changes += 1
                assert judge(Case(pair.question, (pair.gold,), changed)).outcome != "right", (pair.gold, changed)
    assert changes > 300


def amounts(text: str) -> list[tuple[str, Decimal, tuple[int, int, int]]]:
    return [(item.kind, item.value, item.date) for item in find(clean(text))]


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_other_whole_numbers_never_pass(gold: int, said: int) -> None:
    outcome = judge(Case("how many are there?", (str(gold),), f"There are {said:,}.")).outcome
    assert outcome == ("right" if gold == said else "wrong")


@given(st.decimals(min_value=Decimal("0.01"), max_value=10**7, places=2), st.integers(0, 1))
def test_roundings_pass_while_three_digits_are_left(amount: Decimal, places: int) -> None:
    rounded = round(amount, places)
    if rounded == 0 or rounded.adjusted() + places + 1 < 3 or str(rounded)[-1] == "0":
        return
    assert judge(Case("what is the price?", (f"${amount}",), f"${rounded}")).outcome == "right"


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_judged(question: str, gold: str, said: str) -> None:
    assert judge(Case(question, (gold,), said)).outcome in ("right", "missing", "wrong")


@given(st.text(min_size=1, max_size=80).filter(lambda text: any(mark.isalnum() for mark in text)))
def test_a_gold_answer_is_right(gold: str) -> None:
    verdict = judge(Case("?", (gold,), gold))
    assert verdict.outcome == "right" or verdict.reason == "abstention" or "invalid" in gold.lower()


def test_long_texts_take_no_time() -> None:
    said = "the answer is 12 and " * 4_000
    assert judge(Case("how many? " * 200, ("13 or " * 500,), said)).outcome == "wrong"


def test_any_of_several_gold_answers_will_do() -> None:
    case = Case("who sang it?", ("robert zimmerman", "bob dylan"), "It was Bob Dylan.")
    assert judge(case).outcome == "right"


@pytest.mark.parametrize(
    ("gold", "kind", "said", "outcome"),
    [
        ("paris", "answer", "Paris", "right"),
        ("paris", "answer", "i don't know", "missing"),
        ("paris", "answer", "I do not know.", "missing"),
        ("paris", "answer", "Sorry, I don’t know that", "missing"),
        ("paris", "answer", "", "missing"),
        ("paris", "answer", "invalid question", "wrong"),
        ("invalid question", "invalid", "invalid question", "right"),
        ("invalid question", "invalid", "Invalid question.", "right"),
        ("invalid question", "invalid", "paris", "wrong"),
        ("invalid question", "invalid", "i don't know", "missing"),
        ("i don't know", "idk", "paris", "wrong"),
        ("i don't know", "idk", "invalid question", "wrong"),
        ("i don't know", "idk", "i don't know", "missing"),
        ("paris", "idk", "paris", "wrong"),
        ("hotel des invalides", "answer", "Hôtel des Invalides", "right"),
    ],
)
def test_the_protocol(gold: str, kind: str, said: str, outcome: str) -> None:
    verdict = judge(Case("where is it?", (gold,), said, kind))
    assert verdict.outcome == outcome
    assert verdict.by == "protocol"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("$3.45 billion", ["3450000000 usd"]),
        ("nineteen ninety-seven", ["1997"]),
        ("two thousand and five", ["2005"]),
        ("five million two hundred thousand", ["5200000"]),
        ("one hundred twenty-three thousand", ["123000"]),
        ("one and two", ["1", "2"]),
        ("half a million", ["500000"]),
        ("1 hour 30 minutes", ["90 time"]),
        ("5 foot 9", ["69 length"]),
        ("blink-182", ["182"]),
        ("2015-16", ["2015", "2016"]),
        ("-2.5%", ["-2.5 percent"]),
        ("minus 3 °C", ["-3 celsius"]),
        ("the 21st of 1,234,567", ["21", "1234567"]),
        ("henry viii", ["8"]),
        ("no numbers, just a second thought in may", ["2"]),
    ],
)
def test_numbers_are_read(text: str, shown: list[str]) -> None:
    assert [f"{item.value.normalize():f} {item.dimension}".strip() for item in find(clean(text))] == shown


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-17",
        "3/17/2024",
        "17/3/2024",
        "3/17/24",
        "march 17, 2024",
        "Sunday, 17th of March 2024",
        "2024-03-17T00:00:00Z",
    ],
)
def test_dates_are_read(text: str) -> None:
    assert [item.date for item in find(clean(text))] == [(2024, 3, 17)]
