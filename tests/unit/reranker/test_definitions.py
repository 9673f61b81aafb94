"""Rerankers by name bring their scorer; any other model takes the one beside it."""

from services.reranker.definitions import RerankerDefinition, chosen, definitions
from services.reranker.scorers import SCORERS
from services.reranker.settings import RerankerSettings


def test_the_published_rerankers_ship() -> None:
    published = {"bge-reranker-v2-m3", "bge-reranker-large", "bce-reranker-base_v1"}
    assert set(definitions()) == published | {"SmolLM2-135M-Instruct"}
    assert all(item.scorer in SCORERS and "/" in item.model for item in definitions().values())


def test_a_name_brings_its_scorer_and_any_other_model_takes_the_one_beside_it() -> None:
    name = "bce-reranker-base_v1"
    assert chosen(RerankerSettings(reranker_model=name)) == definitions()[name]
    settings = RerankerSettings(reranker_model="/models/own", reranker_scorer="cross-encoder")
    assert chosen(settings) == RerankerDefinition(model="/models/own", scorer="cross-encoder")
    assert chosen(RerankerSettings()) == RerankerDefinition(model="", scorer="late-interaction")
    assert chosen(RerankerSettings(encoder_model="/models/encoder")).model == "/models/encoder"
