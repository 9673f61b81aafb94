"""What services count, read from their own `/metrics`."""

import re

import httpx
import pytest

from tests.mesh.conftest import BAKERY, Services, page

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def looked_up(client: httpx.AsyncClient) -> dict[str, float]:
    text = (await client.get("/metrics")).text
    found = re.findall(r'^cragmesh_cache_total{cache="page",result="(\w+)",service="retriever"} (\S+)$', text, re.M)
    return {result: float(value) for result, value in found}


async def test_pages_found_in_the_cache_are_counted_and_those_never_parsed_are_not(services: Services) -> None:
    new = page("A mill that only this test asks about", "The water mill at the ford ground barley until 1911. " * 5)
    texts = [new["page_result"], new["page_result"], "", BAKERY["page_result"]]
    asked = {"query": "until when did the mill grind?", "pages": [{"name": "page", "html": html} for html in texts]}
    async with services.client("retriever") as client:
        seen = [await looked_up(client)]
        for _ in range(2):
            assert (await client.post("/retrieve", json=asked)).status_code == 200
            seen.append(await looked_up(client))
    before, first, second = seen
    assert first["miss"] - before.get("miss", 0.0) == 2, "one page twice, one empty"
    assert first.get("hit", 0.0) == before.get("hit", 0.0)
    assert (second["hit"] - first["hit"], second["miss"] - first["miss"]) == (2, 0)


async def test_what_waits_and_what_is_worked_on_is_told_under_the_names_that_alerts_and_panels_ask_for(
    services: Services,
) -> None:
    asked = {
        "retriever": ("/retrieve", {"query": "bread", "pages": [{"name": "page", "html": BAKERY["page_result"]}]}),
        "reranker": ("/rerank", {"query": "bread", "documents": ["a lighthouse", "a bakery"]}),
        "classifier": ("/classify", {"query": "who directed jaws?"}),
        "kg": ("/kg/query", {"query": "who directed jaws?"}),
    }
    told: set[tuple[str, str, str]] = set()
    async with services.client("reranker") as client:
        read = {"query": "bread", "passages": [{"text": "a bakery"}]}
        assert (await client.post("/read", json=read)).status_code == 200
    for name, (path, body) in asked.items():
        async with services.client(name) as client:
            assert (await client.post(path, json=body)).status_code == 200
            text = (await client.get("/metrics")).text
        found = re.findall(r'^cragmesh_stage_seconds_count{part="(\w+)",service="(\w+)",stage="(\w+)"} ', text, re.M)
        told |= {(service, stage, part) for part, service, stage in found}
    # Another test of the process may have filled a collection, or searched it.
    assert {one for one in told if one[1] not in ("search", "ingest")} == {
        ("retriever", "extract", "inference"),
        ("retriever", "rank", "queue"),
        ("retriever", "rank", "inference"),
        ("reranker", "rerank", "queue"),
        ("reranker", "rerank", "inference"),
        ("reranker", "read", "queue"),
        ("reranker", "read", "inference"),
        ("classifier", "classify", "queue"),
        ("classifier", "classify", "inference"),
        ("kg", "write", "inference"),
        ("kg", "execute", "inference"),
    }
