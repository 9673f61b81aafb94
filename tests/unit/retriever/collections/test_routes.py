"""Collections through the retriever's HTTP: made, filled, searched, listed and deleted."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.unit.retriever.collections.conftest import MINILM

pytestmark = pytest.mark.anyio

DOCUMENTS: list[dict[str, Any]] = [
    {
        "id": "lighthouse",
        "title": "Harbour lighthouse",
        "url": "https://example.org/lighthouse",
        "text": "The tower on the northern mole was built between 1861 and 1864 from local granite. It was designed by "
        "Marta Lindqvist, who also drew the plans of the customs house.",
        "fields": {"kind": "building", "year": 1864, "height": 43.5, "open": True, "changed": "2024-01-31T10:00:00Z"},
    },
    {
        "id": "bakery",
        "title": "The old bakery",
        "text": "<html><body><p>It sells rye bread, cinnamon rolls and a plum cake that people travel for.</p></body>",
        "format": "html",
        "fields": {"kind": "shop", "year": 1923, "height": 9.0, "open": False, "changed": "2024-02-14"},
    },
    {
        "id": "ferry",
        "text": "# Island ferry\n\nThe **ferry** crosses to the island *four times a day*.\n\n"
        "| day | crossings |\n|---|---|\n| Monday | 4 |\n| Sunday | 2 |\n",
        "format": "markdown",
        "fields": {"kind": "boat", "year": 1990, "open": True, "changed": "2024-03-01"},
    },
]


async def create(client: httpx.AsyncClient, name: str, **options: Any) -> None:
    reply = await client.put(f"/collections/{name}", json=options)
    assert reply.status_code == 201, reply.text


async def post(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = await client.post(f"/collections/{path}", json=body)
    assert reply.status_code == 200, reply.text
    response: dict[str, Any] = reply.json()
    return response


async def ingest(client: httpx.AsyncClient, name: str, documents: list[dict[str, Any]]) -> dict[str, Any]:
    return await post(client, f"{name}/documents", {"documents": documents})


async def search(client: httpx.AsyncClient, name: str, *queries: str, **options: Any) -> dict[str, Any]:
    return await post(client, f"{name}/search", {"queries": queries, **options})


@pytest.fixture(scope="module")
async def harbour(retriever: httpx.AsyncClient) -> str:
    await create(retriever, "harbour", indexed_fields={"year": "integer"})
    response = await ingest(retriever, "harbour", DOCUMENTS)
    assert (response["added"], response["unchanged"], response["replaced"], response["skipped"]) == (3, 0, 0, [])
    return "harbour"


async def test_a_document_is_found_by_its_words_and_by_its_meaning(retriever: httpx.AsyncClient, harbour: str) -> None:
    for query, document in (("who designed the lighthouse?", "lighthouse"), ("pastries", "bakery")):
        hits = (await search(retriever, harbour, query))["hits"]
        assert hits[0]["id"] == document
    by_words = await search(retriever, harbour, "granite", encoders=["bm25"])
    assert [hit["id"] for hit in by_words["hits"]] == ["lighthouse"]
    assert (await search(retriever, harbour, "of the", encoders=["bm25"]))["hits"] == []
    hit = by_words["hits"][0]
    assert (hit["title"], hit["url"]) == ("Harbour lighthouse", "https://example.org/lighthouse")
    assert hit["fields"] == DOCUMENTS[0]["fields"]
    assert hit["text"] == DOCUMENTS[0]["text"][hit["start"] : hit["end"]]


async def test_markdown_is_read_as_what_it_says(retriever: httpx.AsyncClient, harbour: str) -> None:
    hits = (await search(retriever, harbour, "how often does the ferry cross on Sunday?", top_n=2))["hits"]
    assert {hit["id"] for hit in hits} == {"ferry"}
    assert {hit["title"] for hit in hits} == {"Island ferry"}
    prose, table = sorted((hit["text"] for hit in hits), key=lambda text: "|" in text)
    assert "The ferry crosses to the island four times a day." in prose
    assert "| Sunday | 2 |" in table


@pytest.mark.parametrize(
    ("condition", "documents"),
    [
        ({"field": "kind", "equals": "shop"}, {"bakery"}),
        ({"field": "year", "equals": 1864}, {"lighthouse"}),
        ({"field": "height", "equals": 43.5}, {"lighthouse"}),
        ({"field": "height", "equals": 9.0}, {"bakery"}),
        ({"field": "open", "equals": True}, {"lighthouse", "ferry"}),
        ({"field": "kind", "equals": "castle"}, set()),
        ({"field": "absent", "equals": 1}, set()),
        ({"field": "kind", "any_of": ["shop", "castle"]}, {"bakery"}),
        ({"field": "height", "any_of": [9.0, 43.5, "x", True]}, {"bakery", "lighthouse"}),
        ({"field": "year", "range": {"gt": 1864}}, {"bakery", "ferry"}),
        ({"field": "year", "range": {"gte": 1864, "lt": 1923}}, {"lighthouse"}),
        ({"field": "changed", "range": {"since": "2024-02-01", "until": "2024-03-01T00:00:00Z"}}, {"bakery"}),
        ({"field": "height", "exists": True}, {"bakery", "lighthouse"}),
        ({"field": "height", "exists": False}, {"ferry"}),
        ({"field": "year", "exists": True, "range": {"lte": 1900}}, {"lighthouse"}),
    ],
)
async def test_filters(
    retriever: httpx.AsyncClient, harbour: str, condition: dict[str, object], documents: set[str]
) -> None:
    for lists in (False, True):
        response = await search(
            retriever, harbour, "what is there?", "granite bread ferry", filters=[condition], lists=lists
        )
        assert {hit["id"] for hit in response["hits"]} == documents
    counted = await retriever.get(f"/collections/{harbour}", params={"filter": json.dumps(condition)})
    assert counted.json()["documents"] == len(documents)


@pytest.mark.parametrize(
    "condition",
    ["", "team", "a.b=1", "{}", '{"field": "kind"}', '{"field": "kind", "is": 1}', '{"field": "year", "range": {}}'],
)
async def test_a_filter_that_says_nothing_is_refused(
    retriever: httpx.AsyncClient, harbour: str, condition: str
) -> None:
    reply = await retriever.get(f"/collections/{harbour}", params={"filter": condition})
    assert (reply.status_code, reply.json()["errors"][0]["field"]) == (422, "filter")


async def test_the_lists_and_their_fusion_agree_with_qdrants_own(retriever: httpx.AsyncClient, harbour: str) -> None:
    queries = ("who designed the lighthouse?", "plum cake", "the of")
    fused = await search(retriever, harbour, *queries, top_n=3)
    response = await search(retriever, harbour, *queries, top_n=3, lists=True)
    assert [(item["encoder"], item["query"]) for item in response["lists"]] == [
        (MINILM, 0), (MINILM, 1), (MINILM, 2), ("bm25", 0), ("bm25", 1),
    ]  # fmt: skip
    assert response["fused"] == 3
    assert len(response["hits"]) == 4
    assert [hit["id"] for hit in response["hits"][:3]] == [hit["id"] for hit in fused["hits"]]
    assert [hit["score"] for hit in response["hits"][:3]] == pytest.approx([hit["score"] for hit in fused["hits"]])
    for ranked in response["lists"]:
        assert ranked["scores"] == sorted(ranked["scores"], reverse=True)
        assert len(ranked["hits"]) == len(set(ranked["hits"])) == len(ranked["scores"])
    bare = await search(retriever, harbour, "plum cake", texts=False)
    assert all(hit["text"] == "" for hit in bare["hits"])


@pytest.fixture(scope="module")
async def mirrored(retriever: httpx.AsyncClient) -> str:
    """Eight pages with the same notice, one with its own, and two with a line that says nothing without a title."""
    await create(retriever, "mirrored")
    notice = (
        "The ferry to the island leaves from the northern pier at eight every morning, and comes back when the last "
        "of the visitors has had enough of the wind."
    )
    pages = [{"id": f"copy-{i}", "title": f"Copy {i}", "text": notice} for i in range(8)]
    pages.append({"id": "other", "text": "Ferries carry bicycles, dogs and a grand piano once a year."})
    pages += [{"id": year, "title": f"Ferry times in {year}", "text": "See below."} for year in ("1931", "1932")]
    await ingest(retriever, "mirrored", pages)
    return "mirrored"


@pytest.mark.parametrize("lists", [False, True])
async def test_a_text_that_many_pages_hold_is_found_once(
    retriever: httpx.AsyncClient, mirrored: str, lists: bool
) -> None:
    query = "when does the ferry leave?"
    response = await search(retriever, mirrored, query, top_n=4, lists=lists)
    assert (response["fused"], len(response["hits"])) == (4, 4)
    assert {hit["id"][:4] for hit in response["hits"]} == {"copy", "othe", "1931", "1932"}
    for ranked in response["lists"]:
        assert sorted(ranked["hits"]) == list(range(len(ranked["hits"])))
        assert ranked["scores"] == sorted(ranked["scores"], reverse=True)
        assert len(ranked["hits"]) == len(ranked["scores"])
    bare = await search(retriever, mirrored, query, top_n=4, lists=lists, texts=False)
    assert {hit["id"][:4] for hit in bare["hits"]} == {"copy", "othe", "1931", "1932"}
    assert {hit["text"] for hit in bare["hits"]} == {""}


@pytest.mark.parametrize("lists", [False, True])
async def test_documents_are_found_under_each_of_their_ids_when_asked_for(
    retriever: httpx.AsyncClient, mirrored: str, lists: bool
) -> None:
    response = await search(retriever, mirrored, "when does the ferry leave?", distinct=False, lists=lists)
    assert len({hit["id"] for hit in response["hits"]}) == 11


async def test_ingesting_twice_changes_nothing(retriever: httpx.AsyncClient, harbour: str) -> None:
    before = (await retriever.get(f"/collections/{harbour}")).json()
    backend = before.pop("backend")
    assert backend in ("local", "server")
    response = await ingest(retriever, harbour, DOCUMENTS)
    assert (response["added"], response["unchanged"], response["replaced"], response["points"]) == (0, 3, 0, 0)
    assert (await retriever.get(f"/collections/{harbour}")).json() == before | {"backend": backend}
    assert before == {"name": "harbour", "encoders": [MINILM], "chunked": True, "documents": 3, "points": 4}


async def test_another_version_of_a_document_replaces_it_whole(retriever: httpx.AsyncClient) -> None:
    await create(retriever, "versions")
    long = " ".join(f"Sentence number {index} is about walruses." for index in range(100))
    assert (await ingest(retriever, "versions", [{"id": "a", "text": long}]))["points"] > 3
    response = await ingest(retriever, "versions", [{"id": "a", "text": "A note on pelicans."}])
    assert (response["added"], response["replaced"]) == (0, 1)
    info = (await retriever.get("/collections/versions")).json()
    assert (info["documents"], info["points"]) == (1, 1)
    assert (await search(retriever, "versions", "walruses", encoders=["bm25"]))["hits"] == []
    seen = {"id": "a", "text": "A note on pelicans.", "fields": {"seen": True}}
    assert (await ingest(retriever, "versions", [seen]))["replaced"] == 1


async def test_what_cannot_be_indexed_is_named_and_skipped(retriever: httpx.AsyncClient) -> None:
    await create(retriever, "odd")
    response = await ingest(
        retriever,
        "odd",
        [
            {"id": "good", "text": "A document on pelicans."},
            {"id": "empty", "text": "<html><body><script>x()</script></body></html>", "format": "html"},
            {"id": "picture", "text": "\x89PNG\x00\x01\x02 not a text"},
            {"text": "\ufffd\ufffd\x01\ufffd" * 50},
            {"id": "good", "text": "A later document on pelicans."},
        ],
    )
    assert [(item["stage"], item["reason"]) for item in response["skipped"]] == [
        ("document:0", "duplicate"),
        ("document:1", "empty"),
        ("document:2", "failed"),
        ("document:3", "failed"),
    ]
    assert response["skipped"][3]["detail"].startswith("number 4: ")
    assert response["added"] == 1
    hits = (await search(retriever, "odd", "pelicans"))["hits"]
    assert [hit["text"] for hit in hits] == ["A later document on pelicans."]


async def test_whole_documents_stay_whole(retriever: httpx.AsyncClient) -> None:
    await create(retriever, "abstracts", chunked=False)
    text = " ".join(f"Sentence number {index} is about walruses." for index in range(100))
    response = await ingest(retriever, "abstracts", [{"text": text, "title": "On walruses"}, {"text": "x" * 20_001}])
    assert (response["added"], response["points"]) == (1, 1)
    assert "`chunked`" in response["skipped"][0]["detail"]
    hits = (await search(retriever, "abstracts", "walruses"))["hits"]
    assert [(hit["text"], hit["start"], hit["end"]) for hit in hits] == [(text, 0, len(text))]
    assert len(hits[0]["id"]) == 32


async def test_the_same_build_is_no_conflict_and_another_is(retriever: httpx.AsyncClient) -> None:
    await create(retriever, "built", encoders=[MINILM], chunked=False)
    assert (await retriever.put("/collections/built", json={"encoders": [MINILM], "chunked": False})).status_code == 200
    indexed = {"chunked": False, "indexed_fields": {"a": "bool"}}
    for options, words in (
        ({"chunked": True}, "it has whole documents, not chunks of documents"),
        (indexed, "it has indexed fields none, not indexed fields a:bool"),
    ):
        reply = await retriever.put("/collections/built", json=options)
        assert reply.status_code == 409
        assert reply.headers["content-type"] == "application/problem+json"
        assert words in reply.json()["detail"]
    assert (await retriever.get("/collections/built")).json()["chunked"] is False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoders": ["word2vec"]}, "all-MiniLM-L6-v2"),
        ({"encoders": ["bm25"]}, "no encoder to name"),
        ({"encoders": [MINILM, MINILM]}, "twice"),
        ({"indexed_fields": {"a": "picture"}}, "indexed_fields"),
        ({"indexed_fields": {"a.b": "bool"}}, "indexed_fields"),
        ({"encoder": [MINILM]}, "no such field"),
    ],
)
async def test_what_cannot_be_built_is_refused(
    retriever: httpx.AsyncClient, options: dict[str, Any], words: str
) -> None:
    reply = await retriever.put("/collections/refused", json=options)
    assert reply.status_code == 422
    assert words in reply.json()["detail"]
    assert reply.json()["errors"][0]["field"].partition(".")[0] == next(iter(options))
    assert (await retriever.get("/collections/refused")).status_code == 404


@pytest.mark.parametrize("name", ["Upper", "a b", "..", "%2e%2e%2fetc", "-a", "a" * 64])
async def test_names_are_no_paths(retriever: httpx.AsyncClient, name: str) -> None:
    reply = await retriever.put(f"/collections/{name}", json={})
    assert reply.status_code in (404, 405, 422)


@pytest.mark.parametrize("id", [".", "..", "two\nlines"])
async def test_an_id_that_addresses_read_otherwise_is_refused(
    retriever: httpx.AsyncClient, harbour: str, id: str
) -> None:
    documents = f"/collections/{harbour}/documents"
    for path, body in (
        (documents, {"documents": [{"id": id, "text": "The light of Port Ansel is 43 metres tall."}]}),
        (f"/collections/{harbour}/moves", {"moves": [{"id": "light", "to": id}]}),
    ):
        reply = await retriever.post(path, json=body)
        assert (reply.status_code, reply.json()["errors"][0]["field"].rpartition(".")[2]) in ((422, "id"), (422, "to"))
    # As it stands: httpx would resolve it.
    escaped = "".join(f"%{ord(letter):02X}" for letter in id)
    request = httpx.Request("DELETE", httpx.URL("http://retriever", raw_path=f"{documents}/{escaped}".encode()))
    assert (await retriever.send(request)).status_code in (404, 422)
    # What a browser makes of `documents/..`.
    assert (await retriever.delete(f"/collections/{harbour}/")).status_code == 404
    assert (await retriever.get(f"/collections/{harbour}")).status_code == 200


async def test_what_is_not_there_is_not_found(retriever: httpx.AsyncClient, harbour: str) -> None:
    for method, path, body in (
        ("GET", "/collections/none", None),
        ("DELETE", "/collections/none", None),
        ("POST", "/collections/none/documents", {"documents": [{"text": "a text"}]}),
        ("POST", "/collections/none/search", {"queries": ["a query"]}),
        *((method, "/collections/none/documents/x", None) for method in ("GET", "DELETE")),
    ):
        reply = await retriever.request(method, path, json=body)
        assert reply.status_code == 404
        assert reply.json()["detail"] == "there is no collection 'none'"
    reply = await retriever.post(f"/collections/{harbour}/search", json={"queries": ["a"], "encoders": ["bge-m3"]})
    assert reply.status_code == 422
    assert "bge-m3" in reply.json()["detail"]


async def test_a_deleted_collection_is_gone(retriever: httpx.AsyncClient) -> None:
    await create(retriever, "short-lived")
    await ingest(retriever, "short-lived", DOCUMENTS[:1])
    assert "short-lived" in [item["name"] for item in (await retriever.get("/collections")).json()["collections"]]
    assert (await retriever.delete("/collections/short-lived")).status_code == 204
    assert "short-lived" not in [item["name"] for item in (await retriever.get("/collections")).json()["collections"]]
    await create(retriever, "short-lived", chunked=False)
    assert (await search(retriever, "short-lived", "lighthouse"))["hits"] == []


async def test_a_deletion_among_other_requests(retriever: httpx.AsyncClient) -> None:
    await create(retriever, "contested")
    path = "/collections/contested"
    replies = await asyncio.gather(
        *(retriever.post(f"{path}/documents", json={"documents": [item]}) for item in DOCUMENTS),
        retriever.delete(path),
        *(retriever.post(f"{path}/documents", json={"documents": [item]}) for item in DOCUMENTS),
        *(retriever.post(f"{path}/search", json={"queries": [item["text"]]}) for item in DOCUMENTS),
    )
    assert {reply.status_code for reply in replies} <= {200, 204, 404}
    assert (await retriever.get(path)).status_code == 404
