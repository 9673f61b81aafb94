"""The reranker that asks a language model, with the embedded generator's own."""

from pathlib import Path

import pytest

from services.generator.settings import GeneratorSettings
from services.kit.precision import choose_precision
from services.reranker.definitions import chosen
from services.reranker.scorers import Pairs, QueryLikelihood, build_scorer
from services.reranker.settings import RerankerSettings

pytestmark = pytest.mark.e2e

NAME = "SmolLM2-135M-Instruct"
QUERY = "when was K2 first climbed?"
PASSAGES = (
    "Bread is baked from flour, water, salt and yeast.",
    "Mount Everest was first climbed in 1953 by Edmund Hillary and Tenzing Norgay.",
    "K2 was first climbed on 31 July 1954 by Lino Lacedelli and Achille Compagnoni.",
)


def test_the_generators_model_finds_the_answer() -> None:
    folder = GeneratorSettings().models_dir / NAME
    defined = chosen(RerankerSettings(reranker_model=NAME))
    assert Path(defined.model) == Path("models", NAME)
    scorer = build_scorer(defined.scorer, model=str(folder), precision=choose_precision("fp32"), batch_tokens=4_096)
    scorer.load()
    far, near, answer = scorer.score(Pairs(QUERY, PASSAGES))
    assert 0 < far < near < 0.5 < answer < 1
    assert isinstance(scorer, QueryLikelihood)
    far, near, answer = scorer.gains(QUERY, PASSAGES)
    assert far < 0 < near < answer
