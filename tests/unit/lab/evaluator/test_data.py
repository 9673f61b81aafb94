"""Question files: every form and packing, damaged lines, bounded memory."""

import bz2
import gzip
import io
import json
import random
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.evaluator import data
from lab.evaluator.data import Item, Skip, Source, chosen
from lab.evaluator.errors import BadSource
from proto.answer import AnswerRequest
from proto.base import MAX_PASSAGE_CHARS

CRAG: dict[str, Any] = {
    "interaction_id": "c-1",
    "query_time": "02/28/2024, 10:04:54 PT",
    "domain": "open",
    "question_type": "simple",
    "static_or_dynamic": "static",
    "popularity": "head",
    "query": "who keeps the mill?",
    "answer": "ida falk",
    "alternative_answers": '["i. falk"]',
    "search_results": [{"page_name": "Mill", "page_result": "<p>Ida Falk</p>", "page_last_modified": None}],
}
CONTEXTS = {
    "id": "k-1",
    "query": "what did it cost?",
    "query_time": None,
    "domain": "finance",
    "contexts": ["It cost $5.", "  ", "x" * (MAX_PASSAGE_CHARS + 5)],
    "label": "i don't know",
    "label_kind": "idk",
    "gold": None,
}
PLAIN = {"query": "how many?", "answer": 12, "answers": ["twelve", "a dozen"]}
RECORDS = [CRAG, CONTEXTS, PLAIN]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()


def tarred(mode: str) -> bytes:
    """A tar of compressed shards beside a file that is none, as CRAG's third task comes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        shards = {
            f"task_3/shard_{index}.jsonl.bz2": bz2.compress(json.dumps(record).encode())
            for index, record in enumerate(RECORDS)
        }
        for name, content in {"task_3/README.md": b"no questions", **shards}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


PACKINGS: dict[str, Callable[[], bytes]] = {
    "a.jsonl": lambda: LINES,
    "a.jsonl.gz": lambda: gzip.compress(LINES),
    "a.jsonl.bz2": lambda: bz2.compress(LINES),
    "misnamed.jsonl": lambda: bz2.compress(LINES),
    "a.tar": lambda: tarred("w"),
    "a.tar.bz2": lambda: tarred("w:bz2"),
    "a.tar.gz": lambda: tarred("w:gz"),
}


def read(*paths: Path) -> tuple[list[Item], list[Skip]]:
    skips: list[Skip] = []
    return list(Source(paths, on_skip=skips.append).items()), skips


@pytest.mark.parametrize("name", PACKINGS)
def test_every_packing_holds_the_same_questions(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PACKINGS[name]())
    items, skips = read(path)
    assert skips == []
    crag, contexts, plain = items
    assert (crag.id, crag.gold, crag.label_kind) == ("c-1", ("ida falk", "i. falk"), "answer")
    assert (crag.domain, crag.question_type, crag.dynamism, crag.popularity) == ("open", "simple", "static", "head")
    assert crag.body == {key: CRAG[key] for key in ("query", "query_time", "search_results")}
    assert (contexts.gold, contexts.label_kind) == (("i don't know",), "idk")
    assert [len(text) for text in contexts.body["evidence"]] == [11, MAX_PASSAGE_CHARS, 5]
    assert plain.gold == ("12", "twelve", "a dozen")
    assert len(plain.id) == 16
    for item in items:
        AnswerRequest.model_validate(item.body)


def test_damaged_lines_are_named_and_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MAX_RECORD_BYTES", 500)
    lines = [
        b'{"query": "cut',
        b"[1]",
        b'{"answer": "no question"}',
        b'{"query": "no answer?"}',
        b'{"query": "long?", "answer": "' + b"x" * 2_000_000 + b'"}',
        b"\xff\xfe",
        b"",
        b'{"query": 5, "answer": {"a": 1}}',
        b"[" * 100_000,
        b'{"query": "fine?", "answer": "yes"}',
    ]
    (tmp_path / "d.jsonl").write_bytes(b"\n".join(lines))
    items, skips = read(tmp_path / "d.jsonl")
    assert [item.query for item in items] == ["fine?"]
    assert [skip.place for skip in skips] == [f"d.jsonl:{number}" for number in (1, 2, 3, 4, 5, 6, 8, 9)]
    why = ["not JSON", "not a JSON object", "no query", "no answer to judge by"]
    assert [skip.why.partition(":")[0] for skip in skips[:4]] == why
    assert "longer than" in skips[4].why


def test_a_file_that_ends_in_the_middle_is_named_after_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    noise = random.Random(0)
    question = {"query": "q?", "label_kind": "answer"}
    lines = (json.dumps(question | {"answer": noise.randbytes(500).hex()}) for _ in range(2_000))
    path.write_bytes(gzip.compress("\n".join(lines).encode(), 1)[:-50_000])
    with pytest.raises(BadSource, match=r"cut.jsonl.gz: .*after cut.jsonl.gz:\d+"):
        read(path)


def test_repeated_ids_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(LINES + LINES)
    ids = [item.id for item in read(tmp_path / "r.jsonl")[0]]
    assert ids[3:5] == ["c-1#2", "k-1#2"]
    assert len(set(ids)) == 6


def test_a_sample_is_the_same_again_and_lies_in_a_larger_one(tmp_path: Path) -> None:
    lines = (json.dumps({"id": f"q{index}", "query": "q?", "answer": "a"}) for index in range(200))
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    source = Source([tmp_path / "s.jsonl"])
    small, large = chosen(source, 20, 1), chosen(source, 50, 1)
    assert (len(small), len(large)) == (20, 50)
    assert small < large
    assert small == chosen(source, 20, 1) != chosen(source, 20, 2)


def test_only_timed_questions(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(LINES)
    assert [item.id for item in Source([tmp_path / "t.jsonl"], timed_only=True).items()] == ["c-1"]


def test_what_is_not_judged_needs_no_answer() -> None:
    item = data.parse(b'{"query": "who?", "contexts": ["Ada."], "collection": "notes"}', "x:1", judged=False)
    assert (item.body, item.gold) == ({"query": "who?", "evidence": ["Ada."], "collection": "notes"}, ())


MEASURE = """
import resource, sys
from pathlib import Path
from lab.evaluator.data import Source
small, large = (Source([Path(name)]) for name in sys.argv[1:])
def peak(source):
    count = sum(1 for _ in source.items())
    return count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(*peak(small), *peak(large))
"""


@pytest.mark.parametrize("packed", [False, True])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, packed: bool) -> None:
    record = CRAG | {"search_results": [{"page_result": "x" * 200_000}] * 5}
    line = json.dumps(record).encode() + b"\n"
    names = []
    for count in (10, 60):
        path = tmp_path / f"m{count}.jsonl"
        with gzip.open(path, "wb", compresslevel=1) if packed else path.open("wb") as out:
            for _ in range(count):
                out.write(line)
        names.append(str(path))
    done = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", MEASURE, *names], capture_output=True, text=True, check=True
    )
    small, before_kib, large, after_kib = map(int, done.stdout.split())
    assert (small, large) == (10, 60)
    # 60 MB were read; what ten lines needed is enough, give or take the allocator.
    assert after_kib - before_kib < 16 * 1024
