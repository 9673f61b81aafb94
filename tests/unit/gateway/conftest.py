"""What tests of the gateway's steps share: a mesh whose every service is a scripted generator."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest

from services.gateway.context import Context
from services.gateway.mesh import Mesh
from services.gateway.question import Question
from services.gateway.run import Run
from services.gateway.settings import GatewaySettings
from services.gateway.trace import Recorder
from services.kit.budget import Budget
from services.kit.client import http_client
from tests.mesh.fakes import FakeGenerator


@pytest.fixture
def generator() -> FakeGenerator:
    return FakeGenerator()


@pytest.fixture
async def mesh(generator: FakeGenerator) -> AsyncIterator[Mesh]:
    async with http_client(httpx.ASGITransport(generator.app)) as http:
        yield Mesh.connect(GatewaySettings(), http)


@pytest.fixture
def run() -> Run:
    return Run(Budget(30), recorder=Recorder())


@pytest.fixture
def context(run: Run, mesh: Mesh) -> Context:
    question = Question("who designed the lighthouse?", datetime(2024, 2, 28, 10, 4, tzinfo=UTC))
    return Context(question, run, mesh, GatewaySettings())
