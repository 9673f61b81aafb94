"""Files into a collection from the command line: what is read, what is left out and named, and how patiently."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from proto.collections import MAX_BATCH_DOCUMENTS, Document, FieldValue
from services.cli.caller import Refused, Unreachable
from services.cli.corpus import Keys, field_name, files_in, read, source_of
from services.cli.ending import INTERRUPTED, UNREACHABLE, USAGE
from services.cli.main import app
from services.cli.questions import UNKNOWN_ENCODING, BadInput
from tests.unit.cli.conftest import INFO, Retriever


def problem(status: int, detail: str = "why") -> httpx.Response:
    return httpx.Response(status, json={"title": "Problem", "status": status, "detail": detail})


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "corpus"
    (root / "deep").mkdir(parents=True)
    (root / "page.html").write_text("<html><body><p>A page.</p></body></html>")
    (root / "deep" / "note.md").write_text("# A note")
    (root / "plain.txt").write_bytes("Ein Satz über Wale.".encode("cp1252"))
    (root / "gbk.txt").write_bytes("灯塔由玛尔塔建造。".encode("gbk"))
    (root / ".hidden.txt").write_text("not to be read")
    (root / "picture.png").write_bytes(b"\x89PNG\x00\x01")
    (root / "broken.txt").write_bytes(b"text\x00\x01\x02")
    (root / "records.jsonl").write_text(
        json.dumps({"id": 7, "title": "Seven", "text": "A record.", "year": 1999, "tags": ["a"], "open": True})
        + "\n\nnot json\n[]\n"
        + json.dumps({"body": "no text"})
        + "\n"
        + json.dumps({"text": "Nested.", "fields": {"kind": "note"}})
        + "\n"
    )
    return root


def test_documents_are_read_by_what_their_files_are(corpus: Path) -> None:
    entries = list(read(files_in(corpus), corpus, Keys()))
    documents = {entry.name: entry.document for entry in entries if entry.document}
    assert {name: document.format for name, document in documents.items()} == {
        "deep/note.md": "markdown",
        "page.html": "html",
        "plain.txt": "text",
        "records.jsonl:1": "text",
        "records.jsonl:6": "text",
    }
    assert documents["plain.txt"].text == "Ein Satz über Wale."
    assert documents["page.html"].url == "file:page.html"
    assert documents["records.jsonl:1"] == Document(
        id="7", title="Seven", source=source_of(corpus), text="A record.", fields={"year": 1999, "open": True}
    )
    assert documents["records.jsonl:6"].fields == {"kind": "note"}
    problems = {entry.name: entry.problem for entry in entries if entry.problem}
    assert problems.keys() == {
        "picture.png", "broken.txt", "gbk.txt", "records.jsonl:3", "records.jsonl:4", "records.jsonl:5",
    }  # fmt: skip
    assert problems["broken.txt"] == "it is not text"
    assert problems["gbk.txt"] == UNKNOWN_ENCODING
    assert "'text'" in problems["records.jsonl:5"]
    assert sum(entry.nbytes for entry in entries) <= sum(file.stat().st_size for file in files_in(corpus))


def ids(root: Path) -> dict[str, str]:
    return {item.name: item.document.id for item in read(files_in(root), root, Keys()) if item.document}


def test_files_of_the_same_name_in_other_folders_are_other_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "a/deep", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "index.html").write_text(f"<p>In {folder}.</p>")
    a, b = ids(tmp_path / "a"), ids(tmp_path / "b")
    assert len({*a.values(), *b.values()}) == 3
    # However the folder is named, and whatever the file says by now.
    (tmp_path / "a" / "index.html").write_text("<p>A later version.</p>")
    (tmp_path / "link").symlink_to("a")
    monkeypatch.chdir(tmp_path / "b")
    assert ids(Path("../a")) == ids(tmp_path / "link") == a
    assert ids(tmp_path / "a" / "index.html") == {"index.html": a["index.html"]}
    assert ids(tmp_path / "a" / "deep") == {"index.html": a["deep/index.html"]}


def test_names_of_any_length_make_ids(tmp_path: Path) -> None:
    for end in "ab":
        (tmp_path / f"{'x' * 240}{end}.txt").write_text("a text")
    assert [len(name) for name in set(ids(tmp_path).values())] == [200, 200]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("year", "year"), ("Year", "Year"), ("_id2", "_id2"), ("Release Date", "release_date"),
        ("page-count", "page_count"), ("Größe (m²)", "grosse_m2"), ("2019", "_2019"), ("  a.b  ", "a_b"),
        ("y" * 70, "y" * 63), ("2" * 70, "_" + "2" * 62), ("***", ""), ("", ""), ("年", ""),
    ],
)  # fmt: skip
def test_values_are_called_as_fields_may_be(name: str, field: str) -> None:
    assert field_name(name) == field
    Document(text="a text", fields={field: 1} if field else {})


def test_a_value_without_a_usable_name_costs_no_document(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    records = [
        {"id": 0, "text": "Zero.", "Release Date": "1999", "page-count": 3, "***": 1},
        {"id": None, "text": "None.", "Year": 1, "year": 2, "YEAR ": 3, "***": 1, "": 1, "fields": {"a b": True}},
    ]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    first, second, note = read([file], file, Keys())
    source = source_of(tmp_path)
    fields: dict[str, FieldValue] = {"release_date": "1999", "page_count": 3}
    assert first.document == Document(id="0", source=source, text="Zero.", fields=fields)
    assert second.document == Document(source=source, text="None.", fields={"Year": 1, "year": 2, "a_b": True})
    assert note.name == "records.jsonl"
    assert "4 values" in note.problem
    assert note.problem.endswith("'', '***', 'YEAR '")


def test_records_may_name_their_parts_otherwise_and_be_packed(tmp_path: Path) -> None:
    file = tmp_path / "papers.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"pid": "p1", "head": "On walruses", "abstract": "They swim."}\n'))
    documents = [item.document for item in read([file], file, Keys("abstract", "head", "pid")) if item.document]
    assert documents == [Document(id="p1", title="On walruses", source=source_of(tmp_path), text="They swim.")]


@pytest.mark.parametrize("damage", [lambda data: data[:-12], lambda data: data[:20] + b"\xff" * 20 + data[40:]])
def test_a_damaged_archive_gives_what_it_holds_and_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    lines = "".join(json.dumps({"text": f"Record {number} {number**7}"}) + "\n" for number in range(3_000))
    file = tmp_path / "damaged.jsonl.gz"
    file.write_bytes(damage(gzip.compress(lines.encode())))
    *entries, last = read([file], file, Keys())
    assert "the rest cannot be read" in last.problem
    assert all(not entry.problem or "not JSON" in entry.problem for entry in entries)


def test_what_is_too_large_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("corpus", "questions"):
        monkeypatch.setattr(f"services.cli.{module}.MAX_PAGE_CHARS", 10)
    (tmp_path / "long.txt").write_text("x" * 11)
    (tmp_path / "long.jsonl").write_text(json.dumps({"text": "x" * 11}))
    assert all("more than the 10" in item.problem for item in read(files_in(tmp_path), tmp_path, Keys()))


def test_nothing_to_read_is_wrong_usage(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(BadInput):
            files_in(path)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_key_that_may_only_write_fills_a_collection_that_is_there(
    retriever: Retriever, corpus: Path, is_there: bool
) -> None:
    def answers(request: httpx.Request) -> httpx.Response | None:
        if request.method == "PUT":
            return problem(403, "this key may not operate")
        if request.method == "GET":
            return httpx.Response(200, content=INFO.model_dump_json()) if is_there else problem(404)
        return None

    retriever.answers = answers
    result = CliRunner().invoke(app, ["index", str(corpus), "-c", "corpus"])
    assert (result.exit_code == 0, len(retriever.sent)) == ((True, 5) if is_there else (False, 0))
    assert is_there or "may not operate" in result.output


def test_index_makes_the_collection_and_fills_it(retriever: Retriever, corpus: Path) -> None:
    result = CliRunner().invoke(
        app, ["index", str(corpus), "-c", "corpus", "--encoder", "tiny", "--whole", "--index-field", "year:integer"]
    )
    assert result.exit_code == 0, result.output
    assert retriever.created[0].items() >= {"encoders": ["tiny"], "chunked": False, "shards": 1, "replicas": 1}.items()
    assert retriever.created[0]["indexed_fields"] == {"year": "integer"}
    assert len(retriever.sent) == 5
    assert "5 documents added" in result.output
    assert "6 skipped" in result.output
    assert "picture.png: no kind of document" in result.output


def test_what_the_retriever_skips_is_named_by_its_file(retriever: Retriever, corpus: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response | None:
        if request.method == "PUT":
            return None
        names = [document["url"] for document in json.loads(request.content)["documents"]]
        place = names.index("file:page.html")
        skipped = [{"stage": f"document:{place}", "reason": "empty", "detail": "page.html: it holds no text"}]
        return httpx.Response(200, json={"added": len(names) - 1, "skipped": skipped})

    retriever.answers = answer
    result = CliRunner().invoke(app, ["index", str(corpus), "-c", "corpus"])
    assert "  page.html: empty: it holds no text" in result.output
    assert "4 documents added" in result.output


def test_batches_keep_to_the_limits(retriever: Retriever, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps({"text": f"Number {number}."}) + "\n" for number in range(700)))
    assert CliRunner().invoke(app, ["index", str(file), "-c", "corpus"]).exit_code == 0
    assert len(retriever.sent) == 700
    assert max(map(len, retriever.batches)) <= MAX_BATCH_DOCUMENTS


@pytest.mark.parametrize(
    "arguments",
    [
        ["--index-field", "year"],
        ["--index-field", "year:picture"],
        ["--encoder", "no name"],
        ["--dry-run"],
        ["--shard", "2/2"],
        ["--shard", "0/2", "--sync"],
        # Ray is missing, or the store is embedded, which takes one writer.
        ["--engine", "ray"],
    ],
)
def test_wrong_usage_is_said_before_anything_is_sent(retriever: Retriever, corpus: Path, arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["index", str(corpus), "-c", "corpus", *arguments]).exit_code == 2
    assert retriever.created == []


@pytest.mark.parametrize("arguments", [["index", str(Path(__file__))], ["search", "walruses"]])
def test_what_the_retriever_refuses_is_a_problem(retriever: Retriever, arguments: list[str]) -> None:
    retriever.answers = lambda _: problem(409, "built with another tiny")
    result = CliRunner().invoke(app, [*arguments, "-c", "corpus"])
    assert result.exit_code == 1
    assert "built with another tiny" in result.output
    assert "documents added" not in result.output


@pytest.mark.parametrize(
    ("error", "code"), [(httpx.ReadError("gone"), UNREACHABLE), (KeyboardInterrupt(), INTERRUPTED)]
)
def test_work_that_is_cut_off_reports_and_says_how_to_go_on(
    retriever: Retriever, corpus: Path, error: BaseException, code: int
) -> None:
    def cut_off(request: httpx.Request) -> httpx.Response | None:
        if request.method == "POST":
            raise error
        return None

    retriever.answers = cut_off
    result = CliRunner().invoke(app, ["index", str(corpus), "-c", "corpus"])
    assert result.exit_code == code
    assert "0 documents added" in result.output
    assert "the same command goes on" in result.output


@pytest.mark.parametrize("silent", [False, True])
def test_a_batch_that_takes_too_long_is_halved(retriever: Retriever, silent: bool) -> None:
    def slow(request: httpx.Request) -> httpx.Response | None:
        if len(json.loads(request.content)["documents"]) <= 2:
            return None
        if silent:
            raise httpx.ReadTimeout("nothing", request=request)
        return problem(504)

    retriever.answers = slow
    documents = [Document(text=f"Number {number}.") for number in range(7)]
    assert retriever.connect().ingest("corpus", documents).added == 7
    assert [document["text"] for document in retriever.sent] == [document.text for document in documents]


def test_places_of_what_is_skipped_survive_the_halving(retriever: Retriever) -> None:
    def answer(request: httpx.Request) -> httpx.Response | None:
        texts = [document["text"] for document in json.loads(request.content)["documents"]]
        if len(texts) > 1:
            return problem(504)
        skipped = [{"stage": "document:0", "reason": "empty"}] if texts == ["empty"] else []
        return httpx.Response(200, json={"added": 1 - len(skipped), "skipped": skipped})

    retriever.answers = answer
    documents = [Document(text=text) for text in ("a", "b", "c", "empty")]
    response = retriever.connect().ingest("corpus", documents)
    assert [item.stage for item in response.skipped] == ["document:3"]


@pytest.mark.parametrize("status", [429, 503, 504])
def test_a_busy_retriever_is_asked_again_but_not_for_ever(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    refusals = iter([problem(status)] * 3)
    retriever.answers = lambda _: next(refusals, None)
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    retriever.connect().ingest("corpus", [Document(text="One.")])
    assert pauses == [1, 2, 4]
    retriever.answers = lambda _: problem(status)
    with pytest.raises(Refused):
        retriever.connect().ingest("corpus", [Document(text="One.")])


@pytest.mark.parametrize("status", [200, 502])
def test_what_is_no_retriever_is_named(retriever: Retriever, status: int) -> None:
    retriever.answers = lambda _: httpx.Response(status, text="<html>")
    with pytest.raises(Unreachable):
        retriever.connect().all()


def test_search_shows_what_was_found(retriever: Retriever) -> None:
    requests: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(json.loads(request.content))
        hit = {"id": "d1", "title": "On \x1b[31mwalruses", "url": "https://e.org", "text": "They swim.", "score": 1}
        return httpx.Response(200, json={"hits": [hit], "fused": 1})

    retriever.answers = answer
    arguments = ["search", "walruses", "-c", "corpus", "-n", "3", "--encoder", "bm25"]
    arguments += ["--where", "year=1999", "--where", "open=true", "--where", "size=1.5", "--where", "code='7'"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "They swim." in result.output
    assert "\x1b[31m" not in result.output
    filters = {one["field"]: one["equals"] for one in requests[0]["filters"]}
    assert filters == {"year": 1999, "open": True, "size": 1.5, "code": "7"}
    assert (requests[0]["encoders"], requests[0]["top_n"]) == (["bm25"], 3)
    as_json = CliRunner().invoke(app, [*arguments, "--json"])
    assert json.loads(as_json.stdout)["hits"][0]["id"] == "d1"
    assert CliRunner().invoke(app, [*arguments, "--copies"]).exit_code == 0
    assert [request["distinct"] for request in requests] == [True, True, False]


@pytest.mark.parametrize("name", ["notes#old", "notes?old", "notes/documents/abc", ".."])
def test_what_is_no_name_of_a_collection_reaches_nothing(retriever: Retriever, name: str) -> None:
    result = CliRunner().invoke(app, ["collections", "--delete", name])
    assert result.exit_code == USAGE
    assert not retriever.calls


def test_collections_are_listed_and_deleted(retriever: Retriever) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            return httpx.Response(204)
        return httpx.Response(200, content=f'{{"collections": [{INFO.model_dump_json()}]}}')

    retriever.answers = answer
    assert "corpus" in CliRunner().invoke(app, ["collections"]).output
    assert json.loads(CliRunner().invoke(app, ["collections", "--json"]).stdout)[0]["name"] == "corpus"
    assert "deleted" in CliRunner().invoke(app, ["collections", "--delete", "corpus"]).output


@pytest.mark.parametrize("option", [["--delete", "corpus"], ["--json"]])
def test_an_option_of_the_list_does_not_go_with_a_backup(
    retriever: Retriever, tmp_path: Path, option: list[str]
) -> None:
    result = CliRunner().invoke(app, ["collections", *option, "backup", str(tmp_path / "backup")])
    assert (result.exit_code, f"{option[0]} goes without backup" in result.stderr) == (USAGE, True)
    assert not retriever.calls


def test_shards_index_each_document_once(retriever: Retriever, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(app, ["index", str(corpus), "-c", "corpus"]).exit_code == 0
    whole, retriever.batches = retriever.sent, []
    assert CliRunner().invoke(app, ["index", str(corpus), "-c", "corpus", "--shard", "0/2"]).exit_code == 0
    first = len(retriever.sent)
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    assert CliRunner().invoke(app, ["index", str(corpus), "-c", "corpus", "--shard", "2"]).exit_code == 0
    assert 0 < first < len(whole)
    assert sorted(map(json.dumps, retriever.sent)) == sorted(map(json.dumps, whole))
