"""A gateway asks a question of its own before it is ready, where the mesh is whole."""

import pytest

from tests.mesh.conftest import Services

pytestmark = pytest.mark.anyio


async def test_the_first_caller_finds_a_generator_that_was_asked(services: Services) -> None:
    async with services.gateway(warm_up_s=20) as gateway:
        assert services.generator.requests
        metrics = (await gateway.get("/metrics")).text
    # Nobody asked it, so nothing is counted.
    assert "cragmesh_answers_total{" not in metrics


@pytest.mark.parametrize("fault", ["killed", "503"])
async def test_nothing_is_asked_of_a_mesh_that_is_not_whole(services: Services, fault: str) -> None:
    services.faults["reranker"].fault = fault
    async with services.gateway(warm_up_s=20) as gateway:
        assert not services.generator.requests
        assert (await gateway.get("/readyz")).status_code == 200


async def test_a_slow_generator_delays_the_start_no_longer_than_allowed(services: Services) -> None:
    services.generator.seconds = 3600.0
    async with services.gateway(warm_up_s=0.5) as gateway:
        assert (await gateway.get("/healthz")).status_code == 200
    assert services.generator.cancelled == len(services.generator.requests)
