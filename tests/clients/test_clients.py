"""Others' clients against the gateway's `/v1`, over real HTTP: `make test-clients`."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.gateway.app import create_app
from services.gateway.settings import GatewaySettings
from tests.keys import write_keys
from tests.mesh.fakes import FakeGenerator
from tests.serving import served

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-clients" / "bin" / "python"
NOBODY = "http://127.0.0.1:9"

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no environment of clients: `make test-clients` makes it")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A gateway over a scripted generator; no other service is there."""
    with served(FakeGenerator().app) as there:
        names = ("retriever", "reranker", "classifier", "kg")
        settings = {f"{name}_url": NOBODY for name in names} | {"generator_url": there, "warm_up_s": 0}
        given = GatewaySettings.model_validate(settings | {"api_keys_file": write_keys(tmp_path / "keys", ("alice",))})
        with served(create_app(given)) as gateway:
            yield gateway


@pytest.mark.parametrize("client", ["langchain", "haystack"])
def test_a_client_gets_its_answer(url: str, client: str) -> None:
    environment = {**os.environ, "HAYSTACK_TELEMETRY_ENABLED": "False", "LANGSMITH_TRACING": "false"}
    ran = subprocess.run(  # noqa: S603 - our own
        (str(PYTHON), str(HERE / f"ask_{client}.py"), url, "What is the capital of France?"),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=environment,
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout.splitlines()[-1])
    assert report["answer"] == report["streamed"] == "Paris"
    assert report["refused"] == "AuthenticationError"
    assert report["tokens"] > 0
