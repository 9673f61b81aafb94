"""Test collections from files: AQA's own layout, TREC's and tables with a head."""

import json
from pathlib import Path

import pytest

from lab.evaluator.errors import BadSource
from lab.papers.data import Text, read, read_qrels

DOCUMENTS = [
    {"doc_id": "d1", "title": "Tides", "abstract": "The moon raises two bulges."},
    {"_id": 2, "title": "Bread", "text": "A sour dough rises."},
]
QUESTIONS = [{"query_id": "q1", "query": "why two tides?"}, {"_id": "q2", "text": "what rises?"}]


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    (tmp_path / "docs.jsonl").write_text(lines(*DOCUMENTS))
    (tmp_path / "queries.jsonl").write_text(lines(*QUESTIONS))
    (tmp_path / "qrels.txt").write_text("q1 0 d1 2\nq1 0 2 0\nq2 0 2 1\n")
    return tmp_path


def test_the_plain_layout(plain: Path) -> None:
    benchmark = read(plain)
    assert benchmark.documents == {
        "d1": Text("Tides", "The moon raises two bulges."),
        "2": Text("Bread", "A sour dough rises."),
    }
    assert benchmark.questions == {"q1": Text("why two tides?"), "q2": Text("what rises?")}
    assert benchmark.qrels == {"q1": {"d1": 2, "2": 0}, "q2": {"2": 1}}


@pytest.mark.parametrize(
    "table",
    [
        "query_id\tdoc_id\tcode\tgrade\nq1\td1\t2\t3\n",
        "query-id\tcorpus-id\tscore\nq1\td1\t3\n",
        "q1 0 d1 3\n",
        "q1\tQ0\td1\t3\n\n",
        "q1 0 d1 2.5\n",
    ],
)
def test_qrels_in_any_of_their_forms(tmp_path: Path, table: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(table)
    assert read_qrels(path) == {"q1": {"d1": 3}}


def test_any_grade_above_0_is_relevant(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("q1 0 a 0.5\nq1 0 b 0.0\nq1 0 c -0.5\n")
    assert read_qrels(path) == {"q1": {"a": 1, "b": 0, "c": 0}}


@pytest.mark.parametrize(
    "table", ["q1 0 d1\n", "q1 0 d1 much\n", "q1 0 d1 inf\n", "q1\n", "query_id\tdoc_id\tgrade\nq1\n"]
)
def test_what_is_no_judgement_is_refused(tmp_path: Path, table: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(table)
    with pytest.raises(BadSource, match=r"qrels:\d: no judgement"):
        read_qrels(path)


def test_aqas_own_files(tmp_path: Path) -> None:
    papers = {"p1": {"title": "Tides", "abstract": "Two bulges."}, "p2": {"title": "Bread", "abstract": None}}
    (tmp_path / "pid_to_title_abs_new.json").write_text(json.dumps(papers))
    questions = [
        {"question": "why two?", "body": "<p>tides</p>", "pids": ["p1", "p9"]},
        {"question": "what?", "body": "", "pids": ["p9"]},
    ]
    (tmp_path / "qa_train.txt").write_text(lines(*questions))
    benchmark = read(tmp_path)
    assert benchmark.documents == {"p1": Text("Tides", "Two bulges."), "p2": Text("Bread")}
    assert benchmark.questions == {"1": Text("why two?", "<p>tides</p>")}
    # A paper that is not in the collection counts as missed, a question without any is left out.
    assert benchmark.qrels == {"1": {"p1": 1, "p9": 1}}
    assert benchmark.left_out == 1
    assert len(read(tmp_path, documents=False).questions) == 2


def test_questions_without_a_relevant_document_are_left_out_and_counted(plain: Path) -> None:
    (plain / "qrels.txt").write_text("q1 0 d1 1\nq2 0 2 0\n")
    benchmark = read(plain)
    assert (list(benchmark.questions), benchmark.left_out) == (["q1"], 1)
    (plain / "qrels.txt").write_text("q2 0 2 0\n")
    with pytest.raises(BadSource, match="no question"):
        read(plain)


@pytest.mark.parametrize("name", ["docs.jsonl", "queries.jsonl", "qrels.txt"])
def test_a_file_that_is_missing_is_named(plain: Path, name: str) -> None:
    (plain / name).unlink()
    with pytest.raises(BadSource, match=name.split(".")[0]):
        read(plain)


@pytest.mark.parametrize("line", ["{", "[]", '{"title": "x"}'])
def test_a_line_that_is_no_record_is_named(plain: Path, line: str) -> None:
    with (plain / "docs.jsonl").open("a") as out:
        out.write(line + "\n")
    with pytest.raises(BadSource, match=r"docs\.jsonl:3"):
        read(plain)


def test_two_files_of_qrels_are_one_too_many(plain: Path) -> None:
    (plain / "qrels.tsv").write_text("q1 0 d1 2\n")
    with pytest.raises(BadSource, match="2 files"):
        read(plain)
