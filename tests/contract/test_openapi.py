"""The OpenAPI documents are current, and document errors as they are answered."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli import contracts
from services.cli.ending import PROBLEM
from services.cli.main import app

ROOT = Path(__file__).parents[2]
# Contracts of somebody else.
OPENAI = " /v1/"
# Not an error of the request: a service that is not ready says what it waits for.
READINESS = "GET /readyz 503"
METHODS = {"get", "put", "post", "delete", "patch", "options", "head", "trace"}


@pytest.fixture(scope="module", params=sorted(contracts.APPS))
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def rendered(service: str) -> str:
    return contracts.render_openapi(service)


@pytest.fixture(scope="module")
def document(rendered: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(rendered)
    return parsed


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in METHODS:
                yield f"{method.upper()} {path}", operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_the_committed_document_is_current(service: str, rendered: str) -> None:
    assert contracts.drift(ROOT, {contracts.OPENAPI_DIR / f"{service}.json": rendered}) == []


def test_every_operation_documents_its_problems(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        failures = {status: reply for status, reply in operation["responses"].items() if status >= "400"}
        assert failures, name
        for status, reply in failures.items():
            if (answer := f"{name} {status}") != READINESS:
                expected = "application/json" if OPENAI in name else "application/problem+json"
                assert list(reply.get("content", {})) == [expected], answer


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for reference in set(references(document)):
        target: Any = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in target, reference
            target = target[part]


def test_every_operation_is_named_and_summed_up(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(names) == len(set(names))
    assert all(operation.get("summary") for _, operation in operations(document))


def test_every_route_that_takes_a_message_is_in_a_proto(document: dict[str, Any]) -> None:
    protos = "\n".join(path.read_text() for path in (ROOT / contracts.PROTO_DIR).glob("*.proto"))
    posts = [name for name, _ in operations(document) if name.startswith("POST ")]
    assert all(f"`{name}`" in protos for name in posts if OPENAI not in name), posts


def test_a_wrong_setting_ends_the_command_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAGMESH_MAX_DEADLINE_S", "soon")
    result = CliRunner().invoke(app, ["contracts", "--check"])
    assert (result.exit_code, "CRAGMESH_MAX_DEADLINE_S: " in result.stderr) == (PROBLEM, True)
