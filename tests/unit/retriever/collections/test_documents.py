"""Documents one by one, over both stores: files put, listed, moved and deleted; what is broken is named."""

import asyncio
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from proto.collections import FileFormat
from services.kit.encoder import bundled_model
from services.retriever.chunk import Passages as Sentences
from services.retriever.chunk import load_tokenizer
from services.retriever.collections.documents import CHUNK_CHARS, CHUNKER, passages
from tests.unit.retriever.collections.test_routes import create, ingest, search
from tests.unit.retriever.formats.files import pdf

pytestmark = pytest.mark.anyio

PDF = {"content-type": "application/pdf"}
KEEPERS = pdf("The first keeper of the light was Marta Lindqvist.", "Her sister Agda kept the bees of the island.")


@pytest.fixture(scope="module")
async def shelf(retriever: httpx.AsyncClient) -> str:
    """A collection of a PDF of two pages, with an id that an address must quote."""
    await create(retriever, "shelf")
    path = f"/collections/shelf/documents/{quote('a/b c?.pdf', safe='')}"
    given = {"url": "file:a/b.pdf", "source": "disk", "fields": '{"team": "hr"}'}
    reply = await retriever.put(path, content=KEEPERS, headers=PDF, params=given)
    assert reply.status_code == 201, reply.text
    written = {"id": "a/b c?.pdf", "title": "b.pdf", "format": "pdf", "state": "complete", "problem": ""}
    counts = dict.fromkeys(("pages", "passages", "written"), 2)
    assert reply.json() | {"digest": ""} == given | written | counts | {"digest": "", "fields": {"team": "hr"}}
    assert (await retriever.put(path, content=KEEPERS, headers=PDF, params=given)).status_code == 200
    return path


async def test_a_hit_names_its_page(retriever: httpx.AsyncClient, shelf: str) -> None:
    hits = (await search(retriever, "shelf", "who kept the bees?", top_n=1))["hits"]
    assert [(hit["id"], hit["page_number"]) for hit in hits] == [("a/b c?.pdf", 2)]


@pytest.mark.parametrize(
    ("params", "count"),
    [
        ({}, 1),
        ({"source": "disk"}, 1),
        ({"source": "other"}, 0),
        ({"filter": "team=hr"}, 1),
        ({"filter": "team=it"}, 0),
    ],
)
async def test_documents_are_listed_as_far_as_filters_let_them_through(
    retriever: httpx.AsyncClient, shelf: str, params: dict[str, str], count: int
) -> None:
    reply = await retriever.get("/collections/shelf/documents", params=params)
    assert len(reply.json()["documents"]) == count
    if "filter" in params:
        assert (await retriever.get(shelf, params=params)).is_success == bool(count)


def test_a_document_is_read_to_its_end() -> None:
    text = "The ferry leaves at seven in the morning.\n" * 30_000 + "The vault opens with the word pelican."
    assert "pelican" in passages(text, "text", "", CHUNKER).chunks[-1].text
    # Longer than a page of the web, and its signs are no markup.
    text = "R&D <costs> rose.\n" * 300_000 + "The vault opens with the word pelican."
    whole = passages(text, "text", "", "")
    assert whole.problem.startswith(f"its {len(text):,} characters")


@pytest.mark.parametrize(
    ("kind", "text"), [("html", "<p>One of many.</p>" * 80_000), ("markdown", "One.\n\n" * 80_000)]
)
def test_a_document_that_cannot_be_read_to_its_end_is_refused(kind: FileFormat, text: str) -> None:
    found = passages(text, kind, "", CHUNKER)
    assert (found.chunks, found.problem) == ((), "it is too large: it would be cut at 150,000 tags")


def test_long_tables_of_a_document_are_read_to_their_end() -> None:
    rows = "".join(f"<tr><td>{number}<td>a lamp of {number} watts" for number in range(8_000))
    html = f"<html><body><table><tr><th>number<th>what{rows}</table></body></html>"
    found = passages(html, "html", "", CHUNKER)
    assert not found.problem
    assert "a lamp of 7999 watts" in found.chunks[-1].text


async def test_a_list_has_pages(retriever: httpx.AsyncClient) -> None:
    await create(retriever, "many")
    names = [f"d{number}" for number in range(7)]
    await ingest(retriever, "many", [{"id": name, "text": f"Ship {name} came in."} for name in names])
    ids: list[str] = []
    after = ""
    for left in (4, 1, 0):
        page = (await retriever.get("/collections/many/documents", params={"limit": 3, "after": after})).json()
        ids += [document["id"] for document in page["documents"]]
        after = page["next"]
        assert (7 - len(ids), bool(after)) == (left, left > 0)
    assert sorted(ids) == names


@pytest.mark.parametrize(
    ("content", "kind", "status", "why"),
    [
        (b"%PDF-1.4 nothing", "application/pdf", 422, "it is damaged"),
        (pdf(""), "application/pdf", 422, "it holds no text"),
        (b"x", "application/zip", 415, "application/pdf"),
        (b"", "application/pdf", 422, "0 bytes"),
        (b"\xff\xfe\x00", "text/plain", 422, "no text of its charset"),
        (b"x", "text/plain; charset=martian", 422, "names no charset"),
        # Its decoder takes time in proportion to the text's square.
        (b"x-" * 1_000_000, "text/plain; charset=punycode", 422, "names no charset"),
    ],
)
async def test_what_cannot_be_read_is_refused_in_words(
    retriever: httpx.AsyncClient, shelf: str, content: bytes, kind: str, status: int, why: str
) -> None:
    path = "/collections/shelf/documents/broken"
    reply = await retriever.put(path, content=content, headers={"content-type": kind})
    assert reply.status_code == status, reply.text
    assert why in reply.json()["detail"]
    field = "content-type" if status == 415 or "charset=" in kind else "body"
    assert reply.json()["errors"][0]["field"] == field
    if why.startswith("it "):
        assert (await retriever.get(path)).json()["state"] == "failed"
        assert (await retriever.delete(path)).status_code == 204
    assert (await retriever.get(path)).status_code == 404


@pytest.mark.parametrize("fields", ["zz", "[1]", '{"no name": 1}', '{"year": null}'])
async def test_fields_are_an_object_of_json(retriever: httpx.AsyncClient, shelf: str, fields: str) -> None:
    path, kind = "/collections/shelf/documents/zz.txt", {"content-type": "text/plain"}
    reply = await retriever.put(path, content=b"The vault.", headers=kind, params={"fields": fields})
    assert reply.status_code == 422, reply.text
    (error,) = reply.json()["errors"]
    assert error["field"] == "fields"
    assert 'not a JSON object of fields, such as {"year": 1864}: ' in error["message"]


@pytest.mark.parametrize(("charset", "encoding"), [("latin-1", "cp1252"), ("utf-8", "utf-16"), ("utf-8", "utf-8-sig")])
async def test_texts_are_read_in_their_charset(
    retriever: httpx.AsyncClient, shelf: str, charset: str, encoding: str
) -> None:
    path, text = "/collections/shelf/documents/charset", "Ein Satz über Wale im Hafen, 1990–1995."
    headers = {"content-type": f"text/plain; charset={charset}"}
    assert (await retriever.put(path, content=text.encode(encoding), headers=headers)).status_code == 201
    response = await search(retriever, "shelf", "Wale", top_n=1)
    assert response["hits"][0]["text"] == text
    assert (await retriever.delete(path)).status_code == 204


async def test_long_work_is_taken_and_asked_after(retriever: httpx.AsyncClient) -> None:
    await create(retriever, "long")
    path = "/collections/long/documents/book.pdf"
    book = pdf(*(f"On page {number} the ship {number * 7} came in." for number in range(1, 61)))
    reply = await retriever.put(path, content=book, headers=PDF, params={"wait_s": 0})
    assert (reply.status_code, reply.headers["location"], reply.headers["retry-after"]) == (202, path, "1")
    states: list[dict[str, Any]] = [reply.json()]
    while states[-1]["state"] in ("waiting", "writing"):
        await asyncio.sleep(0.02)
        states.append((await retriever.get(path)).json())
    assert states[-1]["state"] == "complete"
    assert states[-1]["passages"] == states[-1]["pages"] == 60
    assert [one["written"] for one in states] == sorted(one["written"] for one in states)


async def test_a_moved_document_keeps_its_vectors_and_is_what_an_index_of_its_new_place_finds(
    retriever: httpx.AsyncClient,
) -> None:
    await create(retriever, "moving")
    given = {"url": "file:old.pdf", "source": "disk"}
    await retriever.put("/collections/moving/documents/old", content=KEEPERS, headers=PDF, params=given)
    before = await search(retriever, "moving", "bees")
    moves = [{"id": "old", "to": "new", "url": "file:new.pdf"}, {"id": "nobody", "to": "x"}]
    reply = await retriever.post("/collections/moving/moves", json={"moves": moves})
    assert reply.json() == {"moved": 1, "missing": ["nobody"]}
    # As after a lost reply.
    assert (await retriever.post("/collections/moving/moves", json={"moves": moves})).json() == reply.json()
    after = await search(retriever, "moving", "bees")
    assert [hit | {"id": "old", "url": "file:old.pdf"} for hit in after["hits"]] == before["hits"]
    assert (await retriever.get("/collections/moving/documents/old")).status_code == 404
    info = (await retriever.get("/collections/moving")).json()
    assert (info["documents"], info["points"]) == (1, 2)
    again = {"url": "file:new.pdf", "source": "disk"}
    reply = await retriever.put("/collections/moving/documents/new", content=KEEPERS, headers=PDF, params=again)
    assert reply.status_code == 200
    assert (await retriever.delete("/collections/moving/documents/new")).status_code == 204
    assert (await retriever.get("/collections/moving")).json()["points"] == 0


def test_bullet_lists_of_documents_are_read() -> None:
    paragraph = "A long paragraph about the club and its rules for members. " * 12
    text = f"# Fees\n\n{paragraph}\n\n- The yearly fee is 40 euros.\n- Children pay 10.\n\n{paragraph}"
    assert "The yearly fee is 40 euros." in str(passages(text, "markdown", "", CHUNKER).chunks)


@pytest.mark.parametrize(
    ("sentence", "shortest"),
    [
        ("The lighthouse was built in 1864 by Marta, and it’s “old” – very old. ", 400),
        ("Le phare fut bâti en 1864 à côté du vieux château. ", 400),
        ("Маяк построен в 1864 году по проекту Марты. ", 120),
        ("这座灯塔由玛尔塔于1864年建造。", 120),
        ("灯台は1864年にマルタが建てた。", 120),
        ("그 등대는 1864년에 마르타가 지었다. ", 80),
    ],
)
def test_passages_of_every_script_are_read_whole(sentence: str, shortest: int) -> None:
    tokenizer = load_tokenizer(str(bundled_model() / "tokenizer.json"))
    (*chunks, _) = passages(sentence * 80, "text", "A title", CHUNKER).chunks
    assert all(shortest <= len(chunk.text) <= CHUNK_CHARS for chunk in chunks)
    assert max(len(tokenizer.encode(chunk.text).ids) for chunk in chunks) <= 256


def test_passages_of_english_have_the_size_of_the_chunker() -> None:
    text = "The lighthouse was built in 1864 by José and Zoë, and it’s “old” – very old. " * 80
    expected = Sentences.sized(CHUNK_CHARS).by_paragraphs().chunk(text.strip()).parents
    assert [chunk.text for chunk in passages(text, "text", "", CHUNKER).chunks] == [chunk.text for chunk in expected]
