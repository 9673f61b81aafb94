"""Scores are in 0..1, in order, and mean the same in every request."""

import copy
import math
import pathlib
import time
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch

from services.reranker.scorers import (
    LEAST,
    LIKELIHOOD,
    LIKELY_MIDDLE,
    LIKELY_POOL,
    LIKELY_STEEPNESS,
    PASSAGE_TOKENS,
    PIECE_CHARS,
    QUERY_TOKENS,
    SCORERS,
    LateInteraction,
    Pairs,
    QueryLikelihood,
    Scorer,
    _unit,
    build_scorer,
)
from services.reranker.settings import ScorerName
from tests.unit.conftest import FP32
from tests.unit.kit.tiny import TINY, saved

QUERY = "when was K2 first climbed?"
ANSWER = "K2 was first climbed on 31 July 1954 by Lino Lacedelli and Achille Compagnoni."
NEAR = "Mount Everest was first climbed in 1953 by Edmund Hillary and Tenzing Norgay."
FAR = "Bread is baked from flour, water, salt and yeast."


@pytest.fixture(scope="session")
def late_interaction() -> Scorer:
    scorer = build_scorer("late-interaction", model="", precision=FP32, batch_tokens=1_024)
    scorer.load()
    return scorer


@pytest.fixture(scope="session")
def tiny_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(3)
    model = BertForSequenceClassification(BertConfig(**TINY | {"num_labels": 1}))
    return saved(model, tmp_path_factory.mktemp("cross-encoder"))


@pytest.fixture(scope="session")
def loaded_likelihood(language_model: pathlib.Path) -> QueryLikelihood:
    scorer = QueryLikelihood(str(language_model), FP32, 1_024)
    # However busy the machine.
    scorer.allow_s = 60.0
    scorer.load()
    return scorer


@pytest.fixture
def likelihood(loaded_likelihood: QueryLikelihood) -> QueryLikelihood:
    """A copy, for tests that give it less time."""
    return copy.copy(loaded_likelihood)


def test_the_answer_comes_before_the_near_and_the_far(late_interaction: Scorer) -> None:
    scores = late_interaction.score(Pairs(QUERY, (FAR, ANSWER, NEAR)))
    assert scores[1] > scores[2] > scores[0]
    assert all(0 <= score <= 1 for score in scores)
    assert scores[1] > 0.5 > scores[0]
    assert max(late_interaction.score(Pairs(QUERY, (FAR, "Cats sleep most of the day.")))) < 0.5, "the best of bad ones"


@pytest.mark.parametrize("query", ["the of and", "🏔️", " ", "why " * 600])
@pytest.mark.parametrize("name", ["late_interaction", "likelihood"])
def test_odd_queries_and_passages(name: str, query: str, request: pytest.FixtureRequest) -> None:
    scorer: Scorer = request.getfixturevalue(name)
    scores = scorer.score(Pairs(query, ("", " ", "🏔️", "?", ANSWER * 30)))
    assert len(scores) == 5
    assert all(0 <= score <= 1 for score in scores)


def test_likelihood_is_the_models_own(likelihood: QueryLikelihood) -> None:
    model, tokenizer = likelihood.language_model, likelihood.tokenizer

    def after(passage: str) -> float:
        text = f"Passage: {passage}\n\nA question that this passage answers:"
        prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
        question = tokenizer(f" {QUERY}", add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            every = model(input_ids=torch.tensor([prompt + question])).logits[0].log_softmax(-1)
        own = [float(every[len(prompt) + place - 1, token]) for place, token in enumerate(question)]
        return sum(own) / len(own)

    passages = [ANSWER * 3, FAR, NEAR, "", ANSWER, FAR * 2, NEAR * 2]
    gains = likelihood.gains(QUERY, passages)
    assert gains == pytest.approx([after(passage) - after("") for passage in passages], abs=1e-4)


def test_what_is_no_english_is_cut_by_tokens(likelihood: QueryLikelihood) -> None:
    assert len(likelihood.prompt("\u4e16\u754c" * 400)) < PASSAGE_TOKENS + 20
    assert likelihood.gains(QUERY, ["\u4e16\u754c" * 400, ANSWER])


def test_the_sum_of_both_is_what_is_mapped(
    likelihood: QueryLikelihood, late_interaction: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(late_interaction, LateInteraction)
    passages = tuple(f"{ANSWER if number % 2 else FAR} {number}" for number in range(LIKELY_POOL + 8))
    values, _ = late_interaction.read(Pairs(QUERY, passages))
    best = sorted(range(len(passages)), key=lambda index: -values[index])
    # As if there had been time for three: two gain more than the third, and the rest as little as that.
    monkeypatch.setattr(likelihood, "gains", lambda *_: [2.0, -1.0, 0.5])
    gains = dict.fromkeys(range(len(passages)), -1.0) | {best[0]: 2.0, best[2]: 0.5}
    expected = [
        1 / (1 + math.exp(-LIKELY_STEEPNESS * (values[index] + LIKELIHOOD * gains[index] - LIKELY_MIDDLE)))
        for index in range(len(passages))
    ]
    assert likelihood.score(Pairs(QUERY, passages)) == pytest.approx(expected, abs=1e-5)
    assert likelihood.unread == LIKELY_POOL - 3


def test_nothing_is_begun_when_the_time_is_up(likelihood: QueryLikelihood) -> None:
    passages = [f"{ANSWER if number % 2 else FAR} {number}" for number in range(LIKELY_POOL)]
    reached = likelihood.gains(QUERY, passages)
    likelihood.score(Pairs(QUERY, tuple(passages)))
    assert (len(reached), likelihood.unread) == (LIKELY_POOL, 0)
    likelihood.allow_s = 0
    in_time = likelihood.gains(QUERY, passages)
    assert 0 < len(in_time) < LIKELY_POOL
    assert in_time == pytest.approx(reached[: len(in_time)], abs=1e-4)


def test_nothing_is_begun_that_would_come_too_late(likelihood: QueryLikelihood) -> None:
    pairs = Pairs(QUERY, (FAR, ANSWER, NEAR), until=time.monotonic() + 60)
    likelihood.score(pairs)
    assert likelihood.unread == 0
    likelihood.score(replace(pairs, until=time.monotonic()))
    assert likelihood.unread == len(pairs.passages)


def test_who_waits_is_let_pass(likelihood: QueryLikelihood, late_interaction: Scorer) -> None:
    pairs = Pairs(QUERY, tuple(f"{ANSWER if number % 2 else FAR} {number}" for number in range(LIKELY_POOL)))
    answers = iter([False, False, True])
    likelihood.others_wait = lambda: next(answers)
    likelihood.score(pairs)
    assert 0 < likelihood.unread < LIKELY_POOL
    likelihood.others_wait = lambda: True
    assert likelihood.score(pairs) == pytest.approx(late_interaction.score(pairs), abs=1e-5)
    assert likelihood.unread == LIKELY_POOL


def test_the_best_piece_is_what_the_language_model_reads(
    likelihood: QueryLikelihood, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    def gains(query: str, passages: list[str], until: float) -> list[float]:
        shown.extend(passages)
        return [1.0] * len(passages)

    monkeypatch.setattr(likelihood, "gains", gains)
    likelihood.score(Pairs(QUERY, (FAR * 40 + ANSWER, FAR)))
    assert ANSWER[-30:] in shown[0]
    assert all(len(piece) <= PIECE_CHARS for piece in shown)


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("Хлеб пекут из муки, воды и соли. ", "Маяк построен в 1864 году."),
        ("面包由面粉、水和盐制成。", "灯塔由玛尔塔于1864年建造。"),
    ],
)
def test_the_end_of_a_passage_in_another_script_is_read(
    late_interaction: LateInteraction, sentence: str, answer: str
) -> None:
    passage = (sentence * 40)[:600] + answer
    _, (piece,) = late_interaction.read(Pairs(answer, (passage,)))
    assert answer[:10] in piece
    assert len(piece) < len(passage) / 2


def test_a_long_question_is_cut(likelihood: QueryLikelihood) -> None:
    words = " ".join(f"word{number}" for number in range(QUERY_TOKENS))
    assert likelihood.gains(f"{words} why", [ANSWER]) == likelihood.gains(f"{words} when", [ANSWER])


@pytest.mark.parametrize("overflowing", ["", ANSWER])
def test_numbers_that_overflow(
    likelihood: QueryLikelihood, late_interaction: Scorer, monkeypatch: pytest.MonkeyPatch, overflowing: str
) -> None:
    model, bad = likelihood.language_model, torch.tensor(likelihood.prompt(overflowing))

    def computed(*, input_ids: torch.Tensor, **options: Any) -> Any:
        reply = model(input_ids=input_ids, **options)
        for row, ids in enumerate(input_ids):
            if f" {' '.join(map(str, bad.tolist()))} " in f" {' '.join(map(str, ids.tolist()))} ":
                reply.logits[row] = float("nan")
        return reply

    computed.device = model.device  # type: ignore[attr-defined]
    monkeypatch.setattr(likelihood, "language_model", computed)
    pairs = Pairs(QUERY, (FAR, ANSWER, NEAR))
    if overflowing:
        assert likelihood.gains(QUERY, pairs.passages)[1] == LEAST
        assert likelihood.score(pairs)[1] < 0.5
    else:
        assert likelihood.gains(QUERY, pairs.passages) == []
        assert likelihood.score(pairs) == pytest.approx(late_interaction.score(pairs), abs=1e-5)


def test_the_best_piece_speaks_for_a_long_passage(late_interaction: Scorer) -> None:
    buried, without = late_interaction.score(Pairs(QUERY, (FAR * 60 + ANSWER, FAR * 62)))
    assert buried > without


def test_both_cross_encoder_engines_give_the_same_probabilities(tiny_cross_encoder: pathlib.Path) -> None:
    passages = (FAR, ANSWER, NEAR, "", ANSWER * 20)
    both = []
    for name in ("cross-encoder", "flag-embedding"):
        scorer = build_scorer(name, model=str(tiny_cross_encoder), precision=FP32, batch_tokens=2_048)
        scorer.load()
        scorer.warm_up()
        both.append(scorer.score(Pairs(QUERY, passages)))
        assert all(0 < score < 1 for score in both[-1])
        alone = [scorer.score(Pairs(QUERY, (passage,)))[0] for passage in passages]
        assert np.allclose(both[-1], alone, atol=1e-4)
    assert np.allclose(both[0], both[1], atol=1e-4)


def test_what_is_no_number_is_irrelevant() -> None:
    assert _unit([float("nan"), float("inf"), -0.1, 1.5, 0.25]) == [0.0, 0.0, 0.0, 1.0, 0.25]


def test_every_scorer_of_the_settings_is_one_and_needs_its_model() -> None:
    assert set(SCORERS) == set(get_args(ScorerName))
    with pytest.raises(ValueError, match="needs CRAGMESH_RERANKER_MODEL"):
        build_scorer("cross-encoder", model="", precision=FP32, batch_tokens=1)
