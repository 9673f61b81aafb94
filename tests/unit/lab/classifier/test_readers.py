"""Labelled questions of others: CRAG's records, FreshQA, plain and compressed."""

import bz2
import gzip
import json
from pathlib import Path

import pytest

from lab.classifier.readers import held_back, normal, read
from services.kit.jsonl import BadLine

CRAG = {
    "query": "which harbour is older?",
    "domain": "open",
    "question_type": "comparison",
    "static_or_dynamic": "slow-changing",
}


def test_crag_records_are_read_plain_and_compressed(tmp_path: Path) -> None:
    text = json.dumps(CRAG) + "\n\n" + json.dumps({"query": "who?", "domain": "cooking", "static_or_dynamic": None})
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "a.jsonl.bz2").write_bytes(bz2.compress(text.encode()))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.jsonl", "a.jsonl.bz2", "a.jsonl.gz"):
        first, second = read(tmp_path / name)
        assert (first.domain, first.dynamism, first.question_type) == ("open", "slow-changing", "comparison")
        assert (second.domain, second.dynamism, second.question_type) == ("", "", "")
        assert first.group != second.group


def test_freshqa_is_read_as_json_and_as_csv(tmp_path: Path) -> None:
    record = {"question": "Who keeps the light?", "fact_type": "never-changing", "false_premise": True}
    (tmp_path / "f.jsonl").write_text(json.dumps(record))
    (tmp_path / "f.csv").write_text("question,fact_type,false_premise\nWho keeps the light?,fast-changing,FALSE\n")
    (from_json,), (from_csv,) = read(tmp_path / "f.jsonl"), read(tmp_path / "f.csv")
    assert (from_json.dynamism, from_json.question_type, from_json.domain) == ("static", "false_premise", "")
    assert (from_csv.dynamism, from_csv.question_type) == ("fast-changing", "")


@pytest.mark.parametrize("text", ["{", "[]", '{"domain": "open"}', '{"query": " "}', '"x"'])
def test_a_line_that_is_no_question_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.jsonl").write_text(json.dumps(CRAG) + "\n" + text)
    with pytest.raises(BadLine, match=r"bad\.jsonl:2"):
        read(tmp_path / "bad.jsonl")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl.bz2").write_bytes(b"not compressed")
    (tmp_path / "bad.jsonl").write_bytes(b"\xff\xfe\x00")
    for name in ("bad.jsonl.bz2", "bad.jsonl", "missing.jsonl"):
        with pytest.raises(BadLine):
            read(tmp_path / name)


def test_half_is_held_back_however_it_is_written() -> None:
    questions = [f"who kept light number {number}" for number in range(400)]
    assert 150 < sum(map(held_back, questions)) < 250
    assert all(held_back(question) == held_back(f"  {question.upper()}?!") for question in questions)
    assert normal("Who’s  THERE?") == "who's there"
