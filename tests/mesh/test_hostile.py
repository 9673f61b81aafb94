"""Hostile pages through the whole mesh: a normal answer, at most a page in `degraded`, never a stuck worker."""

import time
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.mesh.conftest import LATE_S, LIGHTHOUSE, Services, answer_to, missing

pytestmark = pytest.mark.anyio

QUESTION = {"query": "Who designed the harbour lighthouse?"}
MIB = 1024 * 1024
PAGES = {
    "nested": "<div>" * 50_000 + "deep" + "</div>" * 50_000,
    "unclosed": "<b><i><font>" * 30_000,
    "many rows": "<table>" + "<tr><td>1</td><td>2</td></tr>" * 30_000 + "</table>",
    "huge spans": "<table><tr><td rowspan=999999 colspan=999999>x</td><td>y</td></tr><tr><td>z</td></tr></table>"
    * 2_000,
    "attributes": "<p " + " ".join(f"a{n}=1" for n in range(80_000)) + ">text</p>",
    "nuls": "<p>lighthouse\x00\x00 designed by</p>" * 5_000,
    "no markup": "lighthouse " * (4 * MIB // 11),
    "one word": "x" * (4 * MIB),
    "binary": "".join(map(chr, range(256))) * 2_000,
    "unfinished": "<html><body><script>" + "var a = '<p>';" * 50_000,
    "entities": "&#x1F600;&nbsp;&lt;script&gt;" * 20_000,
    "lists": "<ul><li>" * 20_000,
    "replacement": "\ufffd\ufeff\u202e" * 20_000,
}


@pytest.fixture
async def gateway(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    # A busy machine takes longer for so much text than a user waits for it.
    async with services.usual(rerank_cap_s=20, read_cap_s=20) as client:
        yield client


@pytest.mark.parametrize("name", PAGES)
async def test_a_hostile_page_costs_itself_at_most(gateway: httpx.AsyncClient, name: str) -> None:
    assert len(PAGES[name]) <= 4 * MIB
    results = [{"page_name": "hostile", "page_result": PAGES[name]}, LIGHTHOUSE]
    began = time.monotonic()
    body = await answer_to(gateway, QUESTION | {"search_results": results, "budget_s": 20})
    assert time.monotonic() - began < 20 + LATE_S
    assert any("Marta Lindqvist" in citation["text"] for citation in body["citations"])
    assert {item["stage"] for item in missing(body)} <= {"page:0"}


async def test_the_workers_are_well_afterwards(gateway: httpx.AsyncClient) -> None:
    body = await answer_to(gateway, QUESTION | {"search_results": [LIGHTHOUSE]})
    assert missing(body) == []
    assert body["answer"] == "Paris"
