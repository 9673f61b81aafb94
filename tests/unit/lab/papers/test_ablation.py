"""The ablation's steps: what is ranked with what, and that weights are never measured where they were tuned."""

import random

import pytest

from lab.papers.ablation import ablate, columns, rankings, tune
from lab.papers.data import Benchmark, Text, halves
from lab.papers.measures import MAP, measure
from proto.collections import BM25
from services.gateway.papers.candidates import Candidate, Listing, Pool, Role
from services.gateway.papers.query_forms import FEEDBACK, QUESTION, Form
from services.gateway.papers.weights import EQUAL, Weights

# Of each list the weight of what is relevant.
SOURCES: list[tuple[str, Form, float, Role]] = [
    (BM25, QUESTION, 0.3, "retrieval"),
    ("mini", QUESTION, 0.6, "retrieval"),
    (BM25, FEEDBACK, 0.0, "retrieval"),
    ("mini", FEEDBACK, 0.0, "retrieval"),
    ("fake/words", QUESTION, 0.4, "rescore"),
]


def made(questions: int, seed: int = 0) -> tuple[dict[str, Pool], Benchmark]:
    """Pools in which the encoder knows what is relevant, BM25 half of it, and the feedback nothing."""
    draw = random.Random(seed)
    pools, qrels = {}, {}
    for number in range(questions):
        names = [f"d{index}" for index in range(40)]
        relevant = set(draw.sample(names, 4))

        lists = []
        for source, form, weight, role in SOURCES:
            scores = {name: draw.random() + weight * (name in relevant) for name in names}
            best = dict(sorted(scores.items(), key=lambda item: -item[1])[:30])
            lists.append(Listing(source, form, best, role=role))
        pools[f"q{number}"] = Pool({name: Candidate(name) for name in names}, lists)
        qrels[f"q{number}"] = dict.fromkeys(relevant, 1)
    return pools, Benchmark("made", {}, {query: Text(query) for query in pools}, qrels)


def test_every_step_is_there_in_order() -> None:
    pools, benchmark = made(40)
    # A list that a question lacks is no obstacle.
    pools["q3"].lists.pop(2)
    ablation = ablate(pools, benchmark, [])
    assert [step.name for step in ablation.steps] == [
        "bm25 alone",
        "+ mini",
        "+ feedback",
        "+ re-scoring",
        "+ weights tuned on the other half",
    ]
    assert [step.name for step in ablation.forms] == ["question, all retrievers", "+ feedback"]
    assert ablation.best_single.name == "mini, question"
    assert {step.name for step in ablation.others} == {"bm25, feedback", "mini, feedback", "re-scoring"}
    assert (ablation.steps[0].values[MAP] == ablation.singles[0].values[MAP]).all()
    assert ablation.steps[-1].values[MAP].mean() > ablation.steps[-2].values[MAP].mean()


def test_weights_are_measured_on_the_other_half() -> None:
    pools, benchmark = made(20, seed=3)
    one, other = halves(list(pools))
    full = ablate(pools, benchmark, []).steps[-1].values[MAP]
    for tuned, reported in ((one, other), (other, one)):
        weights = tune(pools, benchmark, tuned, tuned_on="").weights
        expected = measure(rankings({query: pools[query] for query in reported}, weights), benchmark.qrels)[MAP]
        places = [list(pools).index(query) for query in reported]
        assert full[places] == pytest.approx(expected)


def test_what_was_tuned_is_what_the_ensemble_ranks_by() -> None:
    pools, benchmark = made(30, seed=1)
    choice = tune(pools, benchmark, list(pools), tuned_on="made")
    ranked = measure(rankings(pools, choice.weights), benchmark.qrels)[MAP].mean()
    assert ranked == pytest.approx(choice.value)
    assert choice.value >= measure(rankings(pools, EQUAL), benchmark.qrels)[MAP].mean()


def test_weights_stand_for_other_encoders_too() -> None:
    pools, benchmark = made(20)
    weights = tune(pools, benchmark, list(pools), tuned_on="made").weights
    assert weights.of("another", "question") == weights.of("mini", "question")
    assert weights.of("any/reranker", "question", "rescore") == weights.weights["rescore"]["question"]
    assert Weights.model_validate_json(weights.model_dump_json()) == weights


def test_a_ranking_has_only_what_its_lists_found() -> None:
    pools, _ = made(1)
    ranked = rankings(pools, EQUAL, lambda item: item.source == BM25 and item.form == QUESTION)
    assert ranked["q0"] == list(pools["q0"].lists[0].scores)
    assert len(columns(pools)) == 5
