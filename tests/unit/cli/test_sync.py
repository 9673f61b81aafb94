"""A collection that follows a folder: what is added, replaced, moved, removed and left, by contents alone."""

import gzip
import hashlib
import json
import os
import sys
from io import BufferedReader
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from proto.collections import DocumentInfo
from services.cli import corpus
from services.cli.caller import Refused
from services.cli.ending import USAGE
from services.cli.main import app
from services.cli.sync import compare
from tests.unit.cli.conftest import Retriever


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in {"a.pdf": b"A", "b.pdf": b"B", "c.txt": b"C is a text."}.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def sync(folder: Path, *options: str) -> str:
    return index(folder, "--sync", *options)


def index(folder: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["index", str(folder), "-c", "notes", *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_folder_is_followed(retriever: Retriever, folder: Path) -> None:
    sync(folder)
    assert sorted(one.url for one in retriever.documents.values()) == ["file:a.pdf", "file:b.pdf", "file:c.txt"]
    (folder / "deep").mkdir()
    (folder / "a.pdf").rename(folder / "deep" / "moved.pdf")
    (folder / "b.pdf").write_bytes(b"B, another version")
    (folder / "c.txt").unlink()
    (folder / "new.pdf").write_bytes(b"New")
    (folder / "bad.pdf").write_bytes(retriever.broken)
    before = dict(retriever.documents)
    planned = sync(folder, "--dry-run")
    assert retriever.documents == before
    for line in ("move a.pdf -> deep/moved.pdf", "replace b.pdf", "remove c.txt", "add new.pdf"):
        assert line in planned
    output = sync(folder)
    assert "bad.pdf: damaged" in output
    assert {one.url for one in retriever.documents.values()} == {"file:deep/moved.pdf", "file:b.pdf", "file:new.pdf"}
    assert {one.digest for one in retriever.documents.values()} >= {hashlib.sha256(b"A").hexdigest()}
    (folder / "bad.pdf").unlink()
    retriever.calls.clear()
    assert "3 unchanged" in sync(folder)
    assert set(retriever.calls) == {"GET /documents", "PUT "}


def test_a_folder_makes_its_collection(retriever: Retriever, folder: Path) -> None:
    absent = httpx.Response(404, json={"title": "Not found", "status": 404})
    retriever.answers = lambda request: absent if request.url.path == "/collections/notes/documents" else None
    assert "add a.pdf" in sync(folder, "--dry-run")


@pytest.mark.parametrize("id", [".", "..", "two\nlines"])
def test_a_document_whose_id_no_address_has_is_removed_alone(retriever: Retriever, folder: Path, id: str) -> None:
    sync(folder)
    kept = dict(retriever.documents)
    retriever.keep(id, b"of an older version", "text", "")
    sync(folder)
    assert retriever.documents == kept
    with pytest.raises(Refused, match="name no collection"):
        retriever.connect().document("notes", "..")


def test_a_file_name_of_two_lines_has_an_id_of_one(retriever: Retriever, tmp_path: Path) -> None:
    for name in ("a\nb.pdf", "a\nb.txt"):
        (tmp_path / name).write_bytes(b"The light is lit.")
    assert "2 documents added" in sync(tmp_path)
    assert not any("\n" in id for id in retriever.documents)


def test_files_that_are_sent_whole_are_counted_as_texts_are(retriever: Retriever, folder: Path) -> None:
    assert "3 documents added, 0 replaced, 0 unchanged, 0 skipped" in index(folder)
    (folder / "c.txt").unlink()  # texts are counted by the retriever
    (folder / "b.pdf").write_bytes(b"B, another version")
    assert "0 documents added, 1 replaced, 1 unchanged, 0 skipped" in index(folder)
    retriever.calls.clear()
    assert "0 documents added, 0 replaced, 2 unchanged, 0 skipped; 0 points" in index(folder)
    assert retriever.calls == ["PUT ", "GET ", "GET "]


def test_a_dry_run_skips_what_cannot_be_read(retriever: Retriever, folder: Path) -> None:
    (folder / "empty.txt").write_text(" \n")
    (folder / "junk.pdf").write_bytes(retriever.broken)
    assert {"skip empty.txt: it holds no text", "add junk.pdf"} <= {*sync(folder, "--dry-run").splitlines()}
    assert "2 skipped" in sync(folder)
    assert sync(folder, "--dry-run").splitlines()[:-1] == [
        "skip empty.txt: it holds no text",
        "skip junk.pdf: damaged",
    ]
    (folder / "junk.pdf").write_bytes(b"Whole again")
    assert "add junk.pdf" in sync(folder, "--dry-run")


def test_what_is_incomplete_is_sent_again_and_what_cannot_be_read_now_is_kept(
    retriever: Retriever, folder: Path
) -> None:
    sync(folder)
    half = next(one for one in retriever.documents.values() if one.url == "file:a.pdf")
    retriever.documents[half.id] = half.model_copy(update={"state": "interrupted"})
    # A picture where a text was: the text stays, and the picture is named.
    (folder / "c.txt").write_bytes(b"\x00\x01\x02")
    assert "c.txt" in sync(folder)
    assert {one.url for one in retriever.documents.values() if one.state == "complete"} == {
        "file:a.pdf",
        "file:b.pdf",
        "file:c.txt",
    }


def test_a_file_that_cannot_be_opened_keeps_its_document(
    retriever: Retriever, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest(file: BufferedReader, name: str) -> Any:
        if Path(file.name).name == "a.pdf":
            raise PermissionError(13, "Permission denied")
        return hashlib.file_digest(file, name)

    sync(folder)
    monkeypatch.setattr(corpus, "file_digest", digest)
    (folder / "b.pdf").unlink()
    assert "a.pdf: Permission denied" in sync(folder)
    assert {one.url for one in retriever.documents.values()} == {"file:a.pdf", "file:c.txt"}


@pytest.mark.parametrize("fault", ["torn", "line", "ids", "text"])
def test_records_that_cannot_be_told_are_kept(retriever: Retriever, tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    records = [json.dumps({"id": f"r{number}", "text": f"Record {number}."}) for number in range(40)]
    path = folder / "r.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(records).encode()))
    other = folder / "other.txt"
    other.write_text("Another text.")
    sync(folder)
    assert len(retriever.documents) == 41
    other.unlink()
    options: tuple[str, ...] = ()
    if fault == "torn":
        path.write_bytes(path.read_bytes()[:150])
    elif fault == "line":
        path.write_bytes(gzip.compress("\n".join([*records[:20], "{broken", *records[21:]]).encode()))
    elif fault == "ids":
        options = ("--id-key", "number")
    else:
        path.write_bytes(gzip.compress("\n".join([*records[:20], '{"id": "r20"}', *records[21:]]).encode()))
    said = sync(folder, *options)
    if fault == "text":
        # Its id is known, so that nothing else is in doubt.
        assert len(retriever.documents) == 40
    else:
        assert len(retriever.documents) == 41
        assert "are kept: they may be in what is skipped" in " ".join(said.split())
    assert "r20" in retriever.documents


def test_a_name_that_is_no_text_costs_itself_alone(retriever: Retriever, folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9.pdf")).write_bytes(b"%PDF-1.4 one")
    (folder / "z.pdf").write_bytes(b"%PDF-1.4 two")
    said = index(folder)
    assert "not in UTF-8" in said
    assert any(document.url == "file:z.pdf" for document in retriever.documents.values())


def test_parquet_that_nothing_here_reads_hides_its_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (entry,) = corpus.read_one(path, path.name, path, corpus.Keys(), "s")
    assert entry.problem.startswith("Parquet is read by pyarrow")
    gone = DocumentInfo(id="r1", digest="d", state="complete")
    assert compare([entry], {"r1": gone}).removed == []


def test_a_folder_that_cannot_be_read_removes_nothing(
    retriever: Retriever, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "d.txt").write_text("D is a text.", encoding="utf-8")
    sync(folder)
    before, scan = dict(retriever.documents), os.scandir

    def refuse(path: Any) -> Any:
        if Path(path).name == "deep":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    # Root may read every folder.
    monkeypatch.setattr(os, "scandir", refuse)
    result = CliRunner().invoke(app, ["index", str(folder), "-c", "notes", "--sync"])
    assert result.exit_code == USAGE
    assert "Permission denied" in result.output
    assert retriever.documents == before


@pytest.mark.parametrize("target", ["elsewhere", "nowhere", "itself"])
def test_a_folder_that_becomes_a_link_removes_nothing(
    retriever: Retriever, folder: Path, tmp_path_factory: pytest.TempPathFactory, target: str
) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "d.txt").write_text("D is a text.", encoding="utf-8")
    sync(folder)
    before = dict(retriever.documents)
    outside = tmp_path_factory.mktemp("outside")
    (folder / "deep").rename(outside / "elsewhere")
    (folder / "deep").symlink_to("deep" if target == "itself" else outside / target)
    for options in (("--dry-run",), ()):
        assert "deep: a link to a folder, or to nothing, is not followed" in sync(folder, *options)
        assert retriever.documents == before
    assert "deep: a link" in index(folder)


def test_a_link_to_a_folder_of_the_corpus_hides_nothing(retriever: Retriever, folder: Path) -> None:
    (folder / "old").mkdir()
    (folder / "old" / "d.txt").write_text("D is a text.", encoding="utf-8")
    sync(folder)
    (folder / "old").rename(folder / "new")
    (folder / "old").symlink_to("new")
    (folder / "c.txt").unlink()
    sync(folder)
    assert {one.url for one in retriever.documents.values()} == {"file:a.pdf", "file:b.pdf", "file:new/d.txt"}
