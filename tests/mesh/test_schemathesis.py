"""Schemathesis against the OpenAPI of every service, over real HTTP."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from proto.collections import MEDIA_TYPES
from services.classifier.app import create_app as create_classifier
from services.classifier.settings import ClassifierSettings
from services.gateway.app import create_app as create_gateway
from services.gateway.settings import GatewaySettings
from services.reranker.app import create_app as create_reranker
from services.reranker.settings import RerankerSettings
from services.retriever.app import create_app as create_retriever
from services.retriever.settings import RetrieverSettings
from services.searcher.app import create_app as create_searcher
from services.searcher.settings import SearcherSettings
from tests.mesh.fakes import FakeGenerator
from tests.serving import served

OPENAPI = Path(__file__).resolve().parents[2] / "proto" / "openapi"
CHECKS: list[Callable[..., Any]] = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]
# A question may take its whole budget of 30 seconds.
PATIENCE_S = 240
for kind in MEDIA_TYPES:
    schemathesis.openapi.media_type(kind, st.binary(max_size=64))
fuzzed = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    retriever = RetrieverSettings(qdrant_path=tmp_path_factory.mktemp("collections"), threads=1)
    # Nobody is there.
    searcher = SearcherSettings.model_validate({"searxng_url": "http://127.0.0.1:9"})
    with ExitStack() as stack:
        urls = {
            "retriever": stack.enter_context(served(create_retriever(retriever))),
            "reranker": stack.enter_context(served(create_reranker(RerankerSettings(threads=1)))),
            "classifier": stack.enter_context(served(create_classifier(ClassifierSettings(threads=1)))),
            "searcher": stack.enter_context(served(create_searcher(searcher))),
            "generator": stack.enter_context(served(FakeGenerator().app)),
        }
        named = {f"{name}_url": url for name, url in urls.items()}
        gateway = create_gateway(GatewaySettings.model_validate(named))
        urls["gateway"] = stack.enter_context(served(gateway))
        yield urls


def schema_of(service: str, *, systematic: bool) -> BaseSchema:
    """The committed contract, which the drift test keeps equal to the app's.

    Args:
        systematic: whether each bound of each field is tried beside random cases, which takes as many requests.
    """
    schema = schemathesis.openapi.from_path(OPENAPI / f"{service}.json")
    schema.config.phases.coverage.enabled = systematic
    return schema


def fuzzing(service: str, *, systematic: bool = True) -> Any:
    @schema_of(service, systematic=systematic).parametrize()
    @fuzzed
    def test(case: Case[Any], urls: dict[str, str]) -> None:
        case.call_and_validate(base_url=urls[service], checks=CHECKS, timeout=PATIENCE_S)

    return test


# A question is dear, and has dozens of fields; their bounds are tried in tests/contract.
test_gateway = fuzzing("gateway", systematic=False)
test_retriever, test_reranker = fuzzing("retriever"), fuzzing("reranker")
test_classifier, test_searcher = fuzzing("classifier"), fuzzing("searcher")
