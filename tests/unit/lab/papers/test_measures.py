"""Measures and the search for weights, against hand-made numbers and against each other."""

import random

import numpy as np
import pytest

from lab.papers.measures import MAP, difference, mean, measure, relative
from lab.papers.tune import Objective, Scored, coordinate_search


def scored_at_random(questions: int, lists: int, seed: int) -> tuple[dict[str, Scored], dict[str, dict[str, int]]]:
    """Questions whose first list knows what is relevant, a little; the others are noise."""
    rng = np.random.default_rng(seed)
    scored: dict[str, Scored] = {}
    qrels = {}
    for number in range(questions):
        count = int(rng.integers(5, 60))
        names = tuple(f"d{index}" for index in range(count))
        relevant = rng.random(count) < 0.15
        features = rng.random((count, lists))
        features[:, 0] += 0.6 * relevant
        scored[f"q{number}"] = names, features
        grades = {name: int(is_relevant) for name, is_relevant in zip(names, relevant, strict=True)}
        qrels[f"q{number}"] = grades | {"not found": 1}
    return scored, qrels


def test_measures_by_hand() -> None:
    qrels = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 1}}
    values = measure({"q1": ["b", "a", "c"], "q2": ["b"]}, qrels)
    assert values[MAP] == pytest.approx([(1 / 2 + 2 / 3) / 2, 0])
    assert values["MRR"] == pytest.approx([0.5, 0])
    assert values["Recall@150"] == pytest.approx([1, 0])


@pytest.mark.parametrize(
    ("rankings", "expected"),
    [
        # A question without a ranking is worth nothing, and a document ranked twice counts once.
        ({"q2": [], "q1": ["a", "b"]}, [0, 1]),
        ({"q1": ["a", "a", "b"]}, [1]),
    ],
)
def test_rankings_that_are_empty_or_repeat(rankings: dict[str, list[str]], expected: list[float]) -> None:
    assert measure(rankings, {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}})[MAP] == pytest.approx(expected)


def test_the_objective_is_trec_evals_map() -> None:
    scored, qrels = scored_at_random(60, 3, 0)
    weights = np.array([0.5, 2.0, 0.0])
    rankings = {
        query: [ids[index] for index in np.argsort(-(features @ weights), kind="stable")]
        for query, (ids, features) in scored.items()
    }
    expected = measure(rankings, qrels)[MAP]
    assert Objective(scored, qrels).each(weights) == pytest.approx(expected)


def test_the_search_finds_the_list_that_knows() -> None:
    scored, qrels = scored_at_random(80, 4, 1)
    objective = Objective(scored, qrels)
    weights, value = coordinate_search(objective, 4)
    assert value == pytest.approx(objective(weights))
    assert value > objective(np.ones(4)) + 0.02
    assert weights[0] == max(weights)


def test_where_nothing_is_to_gain_weights_stay_equal() -> None:
    features = np.array([[1.0, 1.0], [0.5, 0.5], [0.0, 0.0]])
    weights, _ = coordinate_search(Objective({"q": (("a", "b", "c"), features)}, {"q": {"a": 1}}), 2)
    assert weights.tolist() == [1.0, 1.0]
    assert coordinate_search(Objective({}, {}), 2)[1] == 0.0


def test_estimates_hold_their_value() -> None:
    values = np.array([random.Random(number).random() for number in range(60)])
    base = values - 0.05
    assert mean(values).low < values.mean() < mean(values).high
    gap = difference(values, base)
    # Paired: a gain that all questions have alike is certain.
    assert (gap.low, gap.value, gap.high) == pytest.approx((0.05, 0.05, 0.05))
    ratio = relative(values, base)
    assert 0 < ratio.low < values.mean() / base.mean() - 1 < ratio.high
