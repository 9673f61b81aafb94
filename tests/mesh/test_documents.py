"""Documents through the gateway: written, followed, listed and removed by those who may, and unseen by others."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from proto.collections import Filter
from services.gateway.access import OWNER, Scope
from tests.keys import bearer, write_keys
from tests.mesh.conftest import Services
from tests.mesh.doors import AGENT, tool
from tests.unit.retriever.formats.files import pdf

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

KEYS = {
    "owner": OWNER,
    "hr": Scope(collections=("desk",), filters=(Filter(field="team", equals="hr"),)),
    "writer": Scope(collections=("desk",), rights=frozenset({"ask", "write"})),
    "stranger": Scope(collections=("other",), rights=frozenset({"ask", "write"})),
}
PDF = {"content-type": "application/pdf"}
DOCUMENT = "/collections/desk/documents/a%2Fb.pdf"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_keys(tmp_path_factory.mktemp("keys") / "keys", KEYS)


@pytest.fixture
async def gateway(services: Services, keys: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with services.usual(api_keys_file=keys) as client:
        (await client.put("/collections/desk", json={}, headers=bearer("owner"))).raise_for_status()
        content = pdf("The keeper of the light was Marta Lindqvist.", "The vault opens with the word pelican.")
        given: dict[str, str | int] = {"url": "file:a/b.pdf", "fields": '{"team": "ops"}', "wait_s": 20}
        reply = await client.put(DOCUMENT, content=content, headers=PDF | bearer("writer"), params=given)
        assert (reply.status_code, reply.json()["pages"]) == (200, 2), reply.text
        yield client


async def cited(gateway: httpx.AsyncClient, query: str) -> tuple[list[dict[str, Any]], list[set[tuple[str, str]]]]:
    """The citations of an answer, and the addresses and titles of the sources at the two other doors."""
    headers, question = bearer("owner"), {"collection": "desk", "strategy": "naive-rag", "budget_s": 20}
    answer = (await gateway.post("/answer", json=question | {"query": query}, headers=headers)).json()
    chat = {"model": "cragmesh/naive-rag@desk", "messages": [{"role": "user", "content": query}]}
    reply = (await gateway.post("/v1/chat/completions", json=chat, headers=headers)).json()
    annotations = [one["url_citation"] for one in reply["choices"][0]["message"]["annotations"]]
    call = tool("answer", question | {"question": query})
    result = (await gateway.post("/mcp", json=call, headers=AGENT | headers)).json()["result"]
    doors = (annotations, result["structuredContent"]["sources"])
    return answer["citations"], [{(one["url"], one["title"]) for one in sources} for sources in doors]


async def test_a_citation_names_the_page(services: Services, gateway: httpx.AsyncClient) -> None:
    services.generator.reply = lambda _: "pelican"
    citations, doors = await cited(gateway, "which word opens the vault?")
    assert ("a/b.pdf", 2) in {(one["document"], one["page_number"]) for one in citations}
    assert all(("file:a/b.pdf#page=2", "b.pdf, p. 2") in sources for sources in doors)


@pytest.mark.parametrize(("params", "name"), [({"url": "file:sea/ferry.txt"}, "ferry.txt"), ({}, "sea:ferry")])
async def test_a_text_without_a_title_goes_by_its_files_name_or_its_id(
    services: Services, gateway: httpx.AsyncClient, params: dict[str, str], name: str
) -> None:
    sent = bearer("owner") | {"content-type": "text/plain"}
    path = "/collections/desk/documents/sea:ferry"
    (await gateway.put(path, content="The ferry leaves at seven.", headers=sent, params=params)).raise_for_status()
    services.generator.reply = lambda _: "at seven"
    citations, doors = await cited(gateway, "when does the ferry leave?")
    titles = {one["document"]: one["page_name"] for one in citations}
    assert titles["sea:ferry"] == (name if params else "")
    source = params.get("url", "urn:cragmesh:document:sea:ferry"), name
    assert all(source in sources for sources in doors)
    await gateway.delete(path, headers=bearer("owner"))


async def test_who_may_not_read_a_document_learns_nothing_of_it(gateway: httpx.AsyncClient) -> None:
    listed = "/collections/desk/documents"
    assert [one["id"] for one in (await gateway.get(listed, headers=bearer("writer"))).json()["documents"]] == [
        "a/b.pdf"
    ]
    assert (await gateway.get(listed, headers=bearer("hr"))).json()["documents"] == []
    assert (await gateway.get(listed, headers=bearer("hr"), params={"filter": "team=ops"})).json()["documents"] == []
    absent = await gateway.get("/collections/desk/documents/absent", headers=bearer("hr"))
    hidden = await gateway.get(DOCUMENT, headers=bearer("hr"))
    assert (absent.status_code, hidden.status_code) == (404, 404)
    assert hidden.json()["detail"].replace("a/b.pdf", "absent") == absent.json()["detail"]
    for method in ("GET", "PUT", "DELETE"):
        reply = await gateway.request(method, DOCUMENT, content=b"x", headers=PDF | bearer("stranger"))
        assert reply.status_code == 404
        assert reply.json()["detail"].startswith("there is no ")
    moves = {"moves": [{"id": "a/b.pdf", "to": "mine"}]}
    assert (await gateway.post("/collections/desk/moves", json=moves, headers=bearer("stranger"))).status_code == 404
    assert (await gateway.post("/collections/desk/moves", json=moves, headers=bearer("hr"))).status_code == 403


async def test_what_the_retriever_refuses_is_refused_in_its_words(gateway: httpx.AsyncClient) -> None:
    for content, kind, status, why in (
        (b"%PDF-1.4", "application/pdf", 422, "it is damaged"),
        (b"x", "application/zip", 415, "application/pdf"),
        # Bytes of a header that are no ASCII are read as Latin-1.
        (b"x", "text/plän", 415, "application/pdf"),
    ):
        headers = [*bearer("writer").items(), ("content-type", kind)]
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        reply = await gateway.put("/collections/desk/documents/broken", content=content, headers=encoded)
        assert (reply.status_code, why in reply.json()["detail"]) == (status, True), reply.text


async def test_long_work_is_taken_and_removed(gateway: httpx.AsyncClient) -> None:
    path = "/collections/desk/documents/long.pdf"
    headers = PDF | bearer("writer")
    content = pdf(*(f"Ship {number} came in." for number in range(40)))
    reply = await gateway.put(path, content=content, headers=headers, params={"wait_s": 0})
    assert (reply.status_code, reply.headers["location"]) == (202, path)
    assert (await gateway.get(path, headers=headers)).json()["id"] == "long.pdf"
    assert (await gateway.delete(path, headers=headers)).status_code == 204
