"""Weights and the ensemble."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.papers.candidates import Candidate, Listing, Pool
from services.gateway.papers.ensemble import normalised, rank
from services.gateway.papers.query_forms import KEYWORDS, QUESTION
from services.gateway.papers.weights import EQUAL, Weights

SCORES = st.lists(st.floats(-1e6, 1e6, allow_nan=False), max_size=30)


def listing(*scores: float, source: str = "bm25") -> Listing:
    ordered = sorted(scores, reverse=True)
    return Listing(source, QUESTION, {f"d{place}": score for place, score in enumerate(ordered)})


def pool(*lists: Listing) -> Pool:
    names = dict.fromkeys(name for item in lists for name in item.scores)
    return Pool({name: Candidate(name) for name in names}, list(lists))


@given(SCORES)
def test_normalised_scores_keep_their_order_within_the_unit(scores: list[float]) -> None:
    values = list(normalised(listing(*scores)).values())
    assert values == sorted(values, reverse=True)
    assert all(0 <= value <= 1 for value in values)


def test_the_best_of_a_list_is_1_and_its_worst_0() -> None:
    assert normalised(listing(3, 2, 1)) == {"d0": 1.0, "d1": 0.5, "d2": 0.0}
    assert normalised(listing(7)) == {"d0": 1.0}


def test_lists_add_up_by_their_weights() -> None:
    one = Listing("bm25", QUESTION, {"a": 2.0, "b": 1.0})
    two = Listing("mini", QUESTION, {"b": 0.9, "c": 0.5, "a": 0.1})
    both = pool(one, two)
    assert list(rank(both, EQUAL)) == ["a", "b", "c"]
    heavy = Weights(weights={"bm25": {"question": 1}, "mini": {"question": 3}})
    ranked = rank(both, heavy)
    assert list(ranked) == ["b", "c", "a"]
    assert list(ranked.values()) == pytest.approx([0.75, 0.375, 0.25])


def test_a_list_that_is_missing_shifts_nothing() -> None:
    weights = Weights(weights={"bm25": {"question": 1, "keywords": 3}})
    one = Listing("bm25", QUESTION, {"a": 2.0, "b": 1.0})
    assert rank(pool(one), weights)["a"] == pytest.approx(1.0)


def test_lists_without_weight_count_only_where_there_are_no_others() -> None:
    weights = Weights(weights={"bm25": {"question": 1}})
    one = Listing("bm25", QUESTION, {"a": 2.0, "b": 1.0})
    other = Listing("mini", KEYWORDS, {"b": 2.0, "a": 1.0})
    assert next(iter(rank(pool(one, other), weights))) == "a"
    assert next(iter(rank(pool(other), weights))) == "b"
    assert rank(Pool(), weights) == {}


def test_the_rescorers_weight_is_for_whichever_it_is() -> None:
    weights = Weights(weights={"*": {"question": 2}, "rescore": {"question": 5}, "bm25": {"question": 1}})
    assert weights.of("late-interaction/mini", "question", "rescore") == 5
    assert weights.of("any", "question") == 2
    assert weights.of("bm25", "question") == 1
    assert weights.of("bm25", "answer") == 0
    assert EQUAL.of("any", "answer") == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", '{"weights": {"bm25": {"question": -1}}}', '{"weights": {"bm25": {"question": NaN}}}',
        '{"weights": {"bm25": {"question": 0}}}', '{"normalise": "zscore"}', '{"wieghts": {}}',
    ],
)  # fmt: skip
def test_a_file_that_holds_no_weights_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "weights.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="weights of /papers"):
        Weights.read(file)
    with pytest.raises(ValueError, match="cannot be read"):
        Weights.read(tmp_path / "none.json")


def test_a_file_may_name_the_normalisation(tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    file.write_text('{"normalise": "minmax", "weights": {"bm25": {"question": 2}}}')
    assert Weights.read(file).of("bm25", "question") == 2


def test_the_shipped_weights_are_usable() -> None:
    shipped = Weights.read()
    assert shipped.of("bm25", "question") > 0
    assert shipped.of("an encoder of one's own", "question") > 0
