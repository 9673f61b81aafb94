"""What each service's settings read from the environment, and what else a deployment may name."""

from pydantic import HttpUrl
from pydantic_settings import BaseSettings

from lab.evaluator.settings import EvaluatorSettings
from services.classifier.settings import ClassifierSettings
from services.cli.settings import CliSettings
from services.gateway.settings import GatewaySettings
from services.generator.settings import GeneratorSettings
from services.kg.settings import KgSettings
from services.kit.admission import BODIES_BYTES
from services.kit.settings import MeshUrls
from services.reranker.settings import RerankerSettings
from services.retriever.settings import RetrieverSettings
from services.searcher.settings import SearcherSettings

SETTINGS: dict[str, tuple[type[BaseSettings], ...]] = {
    "gateway": (GatewaySettings,),
    "retriever": (RetrieverSettings,),
    "reranker": (RerankerSettings,),
    "classifier": (ClassifierSettings,),
    "kg": (KgSettings,),
    "searcher": (SearcherSettings,),
    "generator": (GeneratorSettings,),
    "evaluator": (EvaluatorSettings, MeshUrls),
    "graph-loader": (KgSettings,),
    "calibrator": (EvaluatorSettings, MeshUrls),
    "cli": (CliSettings, MeshUrls),
}


# The mesh with all that may be part of it.
EVERY = MeshUrls(searcher_url=HttpUrl("http://127.0.0.1:8006"))


def variable(settings: type[BaseSettings], name: str) -> str:
    """The environment variable of a field."""
    alias = settings.model_fields[name].validation_alias
    return str(alias or f"{settings.model_config['env_prefix']}{name}").upper()


def names(service: str) -> set[str]:
    """Environment variables that a service's settings read."""
    return {variable(settings, field) for settings in SETTINGS[service] for field in settings.model_fields}


def all_names() -> set[str]:
    return set().union(*(names(service) for service in SETTINGS))


def defaults() -> dict[str, object]:
    """Default of each variable that has a plain one."""
    return {
        variable(settings, name): field.default
        for kinds in SETTINGS.values()
        for settings in kinds
        for name, field in settings.model_fields.items()
    }


def secrets() -> set[str]:
    """Variables whose values nobody may see: those that settings leave out of what they show of themselves."""
    return {
        variable(settings, name)
        for kinds in SETTINGS.values()
        for settings in kinds
        for name, field in settings.model_fields.items()
        if not field.repr
    }


def bodies_mib() -> int:
    """Memory for all bodies that a service has in hand: each as bytes, as text of up to four bytes a character, and as
    JSON for another service."""
    return 6 * BODIES_BYTES // 2**20
