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
