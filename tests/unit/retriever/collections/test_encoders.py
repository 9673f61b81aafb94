"""Collections of several encoders, and of encoders that are no longer what they were."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.unit.kit.tiny import tiny_model
from tests.unit.retriever.collections.conftest import MINILM, running, settings

STATIC = f"{MINILM}-static"
pytestmark = pytest.mark.anyio

DOCUMENTS = {"documents": [{"id": "walrus", "text": "A note on walruses."}, {"id": "seal", "text": "A note on seals."}]}


def defined(file: Path, **models: Path | str) -> Path:
    file.write_text("".join(f"{name}: {{pooling: cls, model: {model}}}\n" for name, model in models.items()))
    return file


@pytest.fixture(scope="module")
async def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `model` and, in `collections`, collections of encoders that it was, each named like its own."""
    folder = tmp_path_factory.mktemp("built")
    model = tiny_model(folder / "model")
    own = defined(folder / "encoders.yaml", tiny=model, narrow=model, spoken=model, gone=model)
    # On a busy machine torch takes longer to import than a request may.
    async with running(settings(folder / "collections", encoders_file=own, max_deadline_s=300)) as client:
        for name in ("tiny", "narrow", "spoken", "gone"):
            encoders = [name, MINILM] if name == "tiny" else [name]
            reply = await client.put(f"/collections/{name}", json={"encoders": encoders})
            assert reply.json()["encoders"] == encoders
            assert (await client.post(f"/collections/{name}/documents", json=DOCUMENTS)).json()["added"] == 2
    return folder


@pytest.fixture(scope="module")
async def client(built: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A retriever over that folder, where `tiny` is what it was and no other encoder is."""
    model, narrow = built / "model", tiny_model(built / "narrow", dimension=16)
    (built / "empty").mkdir()
    spoken = f"{model}, passage_instruction: 'passage: '"
    own = defined(built / "later.yaml", tiny=model, narrow=narrow, spoken=spoken, broken=built / "empty")
    async with running(settings(built / "collections", encoders_file=own, max_deadline_s=300)) as client:
        yield client


async def test_each_encoder_has_its_own_vectors(client: httpx.AsyncClient) -> None:
    body = {"queries": ["walruses"], "lists": True}
    response = (await client.post("/collections/tiny/search", json=body)).json()
    assert [item["encoder"] for item in response["lists"]] == ["tiny", MINILM, "bm25"]
    assert [len(item["hits"]) for item in response["lists"]] == [2, 2, 1]
    assert response["hits"][response["lists"][1]["hits"][0]]["id"] == "walrus"
    one = (await client.post("/collections/tiny/search", json=body | {"encoders": ["tiny"]})).json()
    assert [item["encoder"] for item in one["lists"]] == ["tiny"]


async def test_passages_of_static_vectors_are_found_by_whole_questions(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "collections", max_deadline_s=300)) as client:
        reply = await client.put("/collections/quick", json={"encoders": [STATIC]})
        assert reply.json()["encoders"] == [STATIC]
        texts = ["Herring is sold at the quay from four on.", "The lighthouse was first lit in 1864."]
        documents = {"documents": [{"text": text} for text in texts]}
        assert (await client.post("/collections/quick/documents", json=documents)).json()["added"] == 2
        for query, text in zip(("where can I buy fish?", "when did the beacon shine?"), texts, strict=True):
            body = {"queries": [query], "encoders": [STATIC]}
            response = (await client.post("/collections/quick/search", json=body)).json()
            assert response["hits"][0]["text"] == text


@pytest.mark.parametrize(
    ("name", "words"),
    [("narrow", "32 dimensions"), ("spoken", "built with another spoken"), ("gone", "not defined here")],
)
async def test_another_model_of_that_name_is_a_conflict(client: httpx.AsyncClient, name: str, words: str) -> None:
    for path, body in (("search", {"queries": ["walruses"]}), ("documents", {"documents": [{"text": "More."}]})):
        reply = await client.post(f"/collections/{name}/{path}", json=body)
        assert reply.status_code == 409
        assert words in reply.json()["detail"]
    file = await client.put(
        f"/collections/{name}/documents/more", content=b"More.", headers={"content-type": "text/plain"}
    )
    assert (file.status_code, words in file.json()["detail"]) == (409, True)
    if name != "gone":
        again = await client.put(f"/collections/{name}", json={"encoders": [name]})
        assert again.status_code == 409
        assert "nothing was changed" in again.json()["detail"]
    # Its words are no model's, and a list of them needs none.
    words_only = await client.post(f"/collections/{name}/search", json={"queries": ["walruses"], "encoders": ["bm25"]})
    assert [hit["id"] for hit in words_only.json()["hits"]] == ["walrus"]
    assert (await client.get(f"/collections/{name}")).json()["documents"] == 2


async def test_an_encoder_that_cannot_be_loaded_is_named(client: httpx.AsyncClient) -> None:
    reply = await client.put("/collections/never", json={"encoders": ["broken"]})
    assert reply.status_code == 503
    assert "the encoder broken cannot be loaded" in reply.json()["detail"]
    assert (await client.get("/collections/never")).status_code == 404
