"""Rerankers by name, as data."""

from functools import lru_cache
from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict

from services.reranker.settings import RerankerSettings, ScorerName


class RerankerDefinition(BaseModel):
    """One entry of `rerankers.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model: str
    scorer: ScorerName


@lru_cache(maxsize=1)
def definitions() -> dict[str, RerankerDefinition]:
    """The definitions that ship."""
    text = resources.files("services.reranker").joinpath("rerankers.yaml").read_text(encoding="utf-8")
    return {name: RerankerDefinition.model_validate(entry) for name, entry in yaml.safe_load(text).items()}


def chosen(settings: RerankerSettings) -> RerankerDefinition:
    """The reranker of the settings: a defined one with its own scorer, or any model with the configured one."""
    defined = definitions().get(settings.reranker_model)
    by_encoder = settings.reranker_scorer == "late-interaction"
    model = settings.reranker_model or (settings.encoder_model if by_encoder else "")
    return defined or RerankerDefinition(model=model, scorer=settings.reranker_scorer)
