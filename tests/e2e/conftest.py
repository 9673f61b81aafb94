"""The real embedded mesh as processes: real vLLM, real encoder, real HTTP, on ports of its own."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from services.cli.processes import Process, members
from services.cli.services import Launch, Service, embedded
from services.cli.supervisor import Supervisor
from services.kit.settings import MeshUrls
from tests.conftest import THREADS
from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("gateway", "retriever", "reranker", "classifier", "kg", "generator")


@dataclass(frozen=True)
class RealMesh:
    """A running mesh: where its services are, and who they are."""

    urls: dict[str, str]
    supervisor: Supervisor

    async def pid(self, name: str) -> int:
        pid = next(row.pid for row in await self.supervisor.status() if row.service == name)
        assert pid is not None
        return pid

    async def processes(self, name: str) -> list[Process]:
        """All processes of a service: its own and its workers or engine."""
        return members(await self.pid(name))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def ports() -> dict[str, int]:
    return dict(zip(NAMES, free_ports(len(NAMES)), strict=True))


@pytest.fixture(scope="session")
async def mesh(ports: dict[str, int], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealMesh]:
    urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    env = {f"CRAGMESH_{name.upper()}_URL": url for name, url in urls.items()} | {"CRAGMESH_WARM_UP_S": "10"}
    # Whoever tests may have collections, which a retriever holds from its start.
    env |= {"CRAGMESH_QDRANT_PATH": str(tmp_path_factory.mktemp("collections"))}
    env |= {"CRAGMESH_GENERATOR_PORT": str(ports["generator"])}
    table = embedded(MeshUrls.model_validate({f"{name}_url": url for name, url in urls.items() if name != "generator"}))
    services = [replace(_with(service, env), url=urls[service.name]) for service in table if service.name in NAMES]
    supervisor = Supervisor(services, tmp_path_factory.mktemp("run"), cwd=ROOT)
    with pytest.MonkeyPatch.context() as patch:
        # These processes are as a user's: what holds the tests themselves to one core is not for them.
        for variable in THREADS:
            patch.delenv(variable, raising=False)
        try:
            # The launcher reads it when the generator starts; other tests must not.
            with pytest.MonkeyPatch.context() as starting:
                starting.setenv("CRAGMESH_GENERATOR_PORT", env["CRAGMESH_GENERATOR_PORT"])
                await supervisor.up()
            yield RealMesh(urls, supervisor)
        finally:
            await supervisor.down()


def _with(service: Service, env: dict[str, str]) -> Service:
    def launch() -> Launch:
        assert service.launch is not None
        launch = service.launch()
        return Launch(launch.argv, {**launch.env, **env})

    return replace(service, launch=launch)


@pytest.fixture
async def client(mesh: RealMesh) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=mesh.urls["gateway"], timeout=60) as client:
        yield client
