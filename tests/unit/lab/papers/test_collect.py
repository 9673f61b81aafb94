"""Collecting lists: by the gateway's own steps, kept in files, gone on with after a kill."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from lab.evaluator.errors import Unreachable
from lab.evaluator.store import read_lines
from lab.papers.collect import ENHANCEMENTS, LISTS, Collector, Enhancement, StoredPool, collection_name, reranker_model
from lab.papers.data import Benchmark, Text
from proto.collections import CollectionInfo, CollectionName
from services.gateway.mesh import Mesh
from services.gateway.papers.enhance import Prompts
from services.gateway.papers.ensemble import rank
from services.gateway.papers.weights import EQUAL
from services.gateway.settings import GatewaySettings
from services.kit.client import http_client
from tests.mesh.conftest import HOSTS, Router
from tests.unit.gateway.papers.conftest import Corner

pytestmark = pytest.mark.anyio
BENCHMARK = Benchmark(
    "harbour",
    {},
    {"q1": Text("why two tides?", "<p>each day</p>"), "q2": Text("what lifts water in a storm?")},
    {"q1": {"tide": 1}, "q2": {"surge": 1}},
)
INFO = CollectionInfo(name="harbour", encoders=("letters",), chunked=False, documents=4, points=4, backend="local")
MODELS = {"reranker": "fake/words", "letters": "a1b2"}


@pytest.fixture
def corner() -> Corner:
    return Corner()


@pytest.fixture
async def collector(corner: Corner, tmp_path: Path) -> AsyncIterator[Collector]:
    settings = GatewaySettings.model_validate(HOSTS)
    async with http_client(Router(corner.faults)) as http:
        yield Collector(BENCHMARK, Mesh.connect(settings, http), settings, tmp_path, INFO, MODELS)


async def test_what_was_written_is_not_asked_for_again(collector: Collector, corner: Corner) -> None:
    prompts, steps = Prompts.read(), list[int]()
    first = await collector.enhanced(prompts, ask=True, concurrency=2, on_step=steps.append)
    assert set(first) == {"q1", "q2"}
    assert set(first["q1"]) == {"keywords", "answer"}
    assert (len(corner.generator.requests), sum(steps)) == (4, 2)
    again = await collector.enhanced(prompts, ask=True, concurrency=2, on_step=steps.append)
    assert again == first
    assert len(corner.generator.requests) == 4
    assert "keywords for 2" in collector.description(first)
    # Other prompts make other enhancements.
    changed = Prompts(prompts.answer, prompts.keywords)
    assert await collector.enhanced(changed, ask=False, concurrency=1, on_step=lambda _: None) == {}


async def test_a_generator_that_fails_stops_it_and_leaves_what_there_is(collector: Collector, corner: Corner) -> None:
    corner.faults["generator"].fault = "500"
    with pytest.raises(Unreachable, match="enhancement"):
        await collector.enhanced(Prompts.read(), ask=True, concurrency=1, on_step=lambda _: None)
    assert list(read_lines(collector.folder / ENHANCEMENTS, Enhancement)) == []


async def test_lists_are_found_once_and_read_again(collector: Collector, corner: Corner) -> None:
    forms = await collector.enhanced(Prompts.read(), ask=True, concurrency=2, on_step=lambda _: None)
    pools = await collector.pools(forms, Prompts.read(), lambda _: None)
    assert next(iter(rank(pools["q1"], EQUAL))) == "tide"
    assert len(pools["q1"].lists) == 2 * 4 + 1
    searches = len(corner.retriever.requests)
    again = await collector.pools(forms, Prompts.read(), lambda _: None)
    assert len(corner.retriever.requests) == searches
    assert [rank(pool, EQUAL) for pool in again.values()] == [rank(pool, EQUAL) for pool in pools.values()]
    # With other forms they are others.
    await collector.pools({}, Prompts.read(), lambda _: None)
    assert len(corner.retriever.requests) > searches


@pytest.mark.parametrize(
    "other",
    [
        {"models": MODELS | {"reranker": "fake/letters"}},
        {"models": MODELS | {"letters": "c3d4"}},
        {"collection": INFO.model_copy(update={"documents": 5})},
    ],
)
async def test_lists_of_other_models_and_documents_are_not_taken(
    collector: Collector, corner: Corner, other: dict[str, Any]
) -> None:
    await collector.pools({}, Prompts.read(), lambda _: None)
    changed, searches = replace(collector, **other), len(corner.retriever.requests)
    await changed.pools({}, Prompts.read(), lambda _: None)
    assert len(corner.retriever.requests) == 2 * searches


def test_a_collection_is_named_by_what_is_in_it() -> None:
    documents = {"a": Text("Tides", "Twice a day."), "b": Text("Surges", "In a storm.")}
    name = collection_name(documents)
    assert name == collection_name(dict(reversed(documents.items())))
    TypeAdapter(CollectionName).validate_python(name)
    others = [documents | {"a": Text("Tides", "Once a day.")}, documents | {"c": Text("More")}, {"b": documents["a"]}]
    assert len({name, *map(collection_name, others)}) == 4


async def test_the_reranker_names_its_model() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/readyz"
        return httpx.Response(status, json={"ready": True, "service": "reranker", "model": "fake/words"})

    settings = GatewaySettings.model_validate(HOSTS)
    async with http_client(httpx.MockTransport(answer)) as http:
        status = 200
        assert await reranker_model(Mesh.connect(settings, http)) == "fake/words"
        status = 503
        with pytest.raises(Unreachable, match="re-scoring"):
            await reranker_model(Mesh.connect(settings, http))


async def test_a_torn_line_is_found_again(collector: Collector, corner: Corner) -> None:
    pools = await collector.pools({}, Prompts.read(), lambda _: None)
    path = collector.folder / LISTS
    path.write_bytes(path.read_bytes()[:-20])
    assert len(list(read_lines(path, StoredPool))) == 1
    again = await collector.pools({}, Prompts.read(), lambda _: None)
    assert [rank(pool, EQUAL) for pool in again.values()] == [rank(pool, EQUAL) for pool in pools.values()]


async def test_what_falls_short_is_tried_again_and_never_kept(collector: Collector, corner: Corner) -> None:
    corner.retriever.fails_on = {1}
    assert len(await collector.pools({}, Prompts.read(), lambda _: None)) == 2
    corner.faults["reranker"].fault = "500"
    (collector.folder / LISTS).unlink()
    with pytest.raises(Unreachable, match="reranker"):
        await collector.pools({}, Prompts.read(), lambda _: None)
    assert list(read_lines(collector.folder / LISTS, StoredPool)) == []
