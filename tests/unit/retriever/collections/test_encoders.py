"""Collections of several encoders, and of encoders that are no longer what they were."""

from pathlib import Path

import pytest

from tests.unit.kit.tiny import tiny_model
from tests.unit.retriever.collections.conftest import MINILM, running, settings

pytestmark = pytest.mark.anyio

DOCUMENTS = {"documents": [{"id": "walrus", "text": "A note on walruses."}, {"id": "seal", "text": "A note on seals."}]}


def defined(file: Path, model: Path, more: str = "") -> Path:
    file.write_text(f"tiny: {{model: {model}, pooling: cls{more}}}\n")
    return file


async def test_each_encoder_has_its_own_vectors(tmp_path: Path) -> None:
    own = defined(tmp_path / "encoders.yaml", tiny_model(tmp_path / "model"))
    async with running(settings(tmp_path / "collections", encoders_file=own)) as client:
        reply = await client.put("/collections/two", json={"encoders": ["tiny", MINILM]})
        assert reply.json()["encoders"] == ["tiny", MINILM]
        assert (await client.post("/collections/two/documents", json=DOCUMENTS)).json()["added"] == 2
        body = {"queries": ["walruses"], "lists": True}
        found = (await client.post("/collections/two/search", json=body)).json()
        assert [item["encoder"] for item in found["lists"]] == ["tiny", MINILM, "bm25"]
        assert [len(item["hits"]) for item in found["lists"]] == [2, 2, 1]
        by_minilm = found["lists"][1]
        assert found["hits"][by_minilm["hits"][0]]["id"] == "walrus"
        one = (await client.post("/collections/two/search", json=body | {"encoders": ["tiny"]})).json()
        assert [item["encoder"] for item in one["lists"]] == ["tiny"]


async def test_another_model_of_that_name_is_a_conflict(tmp_path: Path) -> None:
    before = defined(tmp_path / "before.yaml", tiny_model(tmp_path / "first"))
    async with running(settings(tmp_path / "collections", encoders_file=before)) as client:
        await client.put("/collections/built", json={"encoders": ["tiny"]})
        await client.post("/collections/built/documents", json=DOCUMENTS)
    for dimension, more, words in (
        (16, "", "32 dimensions"),
        (32, ", passage_instruction: 'passage: '", "built with another tiny"),
    ):
        second = tiny_model(tmp_path / f"second-{dimension}", dimension=dimension)
        after = defined(tmp_path / "after.yaml", second, more)
        async with running(settings(tmp_path / "collections", encoders_file=after)) as client:
            for path, body in (
                ("search", {"queries": ["walruses"]}),
                ("documents", {"documents": [{"text": "More."}]}),
            ):
                reply = await client.post(f"/collections/built/{path}", json=body)
                assert reply.status_code == 409
                assert words in reply.json()["detail"]
            again = await client.put("/collections/built", json={"encoders": ["tiny"]})
            assert again.status_code == 409
            assert "nothing was changed" in again.json()["detail"]
            # Its words are no model's, and a list of them needs none.
            body = {"queries": ["walruses"], "encoders": ["bm25"]}
            words_only = await client.post("/collections/built/search", json=body)
            assert [hit["id"] for hit in words_only.json()["hits"]] == ["walrus"]
    async with running(settings(tmp_path / "collections")) as client:
        reply = await client.post("/collections/built/search", json={"queries": ["walruses"]})
        assert reply.status_code == 409
        assert "not defined here" in reply.json()["detail"]
        assert (await client.get("/collections/built")).json()["documents"] == 2


async def test_an_encoder_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    own = defined(tmp_path / "encoders.yaml", tmp_path / "empty")
    async with running(settings(tmp_path / "collections", encoders_file=own)) as client:
        reply = await client.put("/collections/never", json={"encoders": ["tiny"]})
        assert reply.status_code == 503
        assert "the encoder tiny cannot be loaded" in reply.json()["detail"]
        assert (await client.get("/collections/never")).status_code == 404
