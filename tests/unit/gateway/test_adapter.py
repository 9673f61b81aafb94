"""An adapter that the generator does not serve: what should be there is named, what is asked for by default is not."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from services.gateway.context import Context
from services.gateway.mesh import Mesh
from services.gateway.settings import GatewaySettings
from services.gateway.steps.generate import serves_adapter
from services.generator.launch import base_model, shipped_adapters
from services.generator.settings import PROFILES, GeneratorSettings
from services.kit.client import http_client
from services.kit.llm import log_missing
from tests.mesh.fakes import FakeGenerator

pytestmark = pytest.mark.anyio
DEFAULT = GatewaySettings.model_fields["web_answer_adapter"].default


@pytest.fixture(autouse=True)
def logged() -> Iterator[Any]:
    log_missing.cache_clear()
    with capture_logs() as lines:
        yield lines


@pytest.mark.parametrize(
    ("adapter", "served", "missed", "replies"),
    [
        (DEFAULT, True, [], []),
        # Somebody chose it.
        ("mine", False, [("adapter:mine", "unavailable")], []),
        # A generator of one's own needs none.
        (DEFAULT, False, [], [("adapter not served", DEFAULT, "fake")]),
    ],
    ids=["served", "chosen", "default"],
)
async def test_what_should_be_there_is_named_once(
    context: Context, generator: FakeGenerator, logged: Any, adapter: str, served: bool, missed: Any, replies: Any
) -> None:
    generator.adapters = [adapter] if served else []
    # The graph's answer and the web's ask for it in turn.
    for _ in range(2):
        assert await serves_adapter(context, adapter) == served
    assert [(item.stage, item.reason) for item in context.run.degraded] == missed
    assert [(line["event"], line["adapter"], line["replies"]) for line in logged] == replies


@pytest.mark.parametrize("profile", sorted(path.stem for path in PROFILES.glob("*.yaml")))
async def test_the_shipped_adapter_is_missed_by_the_model_that_it_is_made_for(
    context: Context, generator: FakeGenerator, profile: str
) -> None:
    model = base_model(GeneratorSettings(profile=profile))
    settings = GatewaySettings(generator_model=model.rpartition("/")[2])
    async with http_client(httpx.ASGITransport(generator.app)) as http:
        assert not await serves_adapter(replace(context, mesh=Mesh.connect(settings, http)), DEFAULT)
    missed = [item.stage for item in context.run.degraded] == [f"adapter:{DEFAULT}"]
    assert missed == (DEFAULT in shipped_adapters(model))
