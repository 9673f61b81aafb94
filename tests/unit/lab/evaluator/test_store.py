"""What is written stays written: torn lines, full disks, two writers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.evaluator.errors import BadRun, WriteFailed
from lab.evaluator.store import AppendLog, Prediction, RunFolder, RunInfo, read_lines, write_whole


def line(name: str) -> Prediction:
    return Prediction(id=name, query="q?", gold=("a",), label_kind="answer", prediction="a")


def test_a_torn_line_is_cut_off_and_written_again(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    with AppendLog(path) as log:
        log.append(line("one"))
        log.append(line("two"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    assert [item.id for item in read_lines(path, Prediction)] == ["one"]
    with AppendLog(path) as log:
        log.append(line("two"))
    assert path.read_bytes() == whole


def test_a_damaged_line_is_named_and_the_others_are_read_whatever_their_version(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    good = line("one").model_dump_json()
    earlier = good.replace('"one"', '"two", "plan": {"steps": ["web"]}')
    path.write_text(f'{good}\n{{"id": 3\n\n{earlier}\n')
    bad: list[str] = []
    assert [item.id for item in read_lines(path, Prediction, bad.append)] == ["one", "two"]
    assert len(bad) == 1
    assert bad[0].startswith("p.jsonl:2")


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    with AppendLog(tmp_path / "p.jsonl"), pytest.raises(BadRun, match="another process"):
        AppendLog(tmp_path / "p.jsonl")


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").symlink_to("/dev/full")
    with AppendLog(tmp_path / "p.jsonl") as log, pytest.raises(WriteFailed, match="No space left"):
        log.append(line("one"))
    assert Path("/dev/full").is_char_device()


LIMITED = """
import resource, signal, sys
from pathlib import Path
from lab.evaluator.errors import WriteFailed
from lab.evaluator.store import AppendLog, Prediction
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with AppendLog(Path(sys.argv[1])) as log:
    for index in range(100):
        try:
            log.append(Prediction(id=str(index), query="q?", gold=("a",), label_kind="answer", prediction="x" * 30))
        except WriteFailed as error:
            print(index, error)
            break
"""


def test_a_line_that_does_not_fit_leaves_those_before_whole(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    done = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True
    )
    count, _, message = done.stdout.partition(" ")
    assert "File too large" in message
    lines = path.read_bytes().splitlines(keepends=True)
    assert [json.loads(item)["id"] for item in lines] == [str(index) for index in range(int(count))]
    assert lines[-1].endswith(b"\n")
    assert len(lines) > 3


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "r.md"
    write_whole(path, b"old")
    with pytest.raises(WriteFailed, match="Is a directory"):
        write_whole(tmp_path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["r.md"]


def test_a_folder_belongs_to_one_order(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    assert run.begin(RunInfo(settings={"strategy": "db3", "limit": 5})) is None
    assert run.begin(RunInfo(settings={"strategy": "db3", "limit": 5}, command="again")) is not None
    with pytest.raises(BadRun, match="another limit, strategy"):
        run.begin(RunInfo(settings={"strategy": "naive-rag"}))
    with pytest.raises(BadRun, match="is this the folder of a run"):
        RunFolder(tmp_path / "none").info()
    (tmp_path / "run" / "run.json").write_text("{")
    with pytest.raises(BadRun, match=r"run.json"):
        run.info()


def test_what_failed_can_be_forgotten(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    with AppendLog(run.predictions_file) as log:
        log.append(line("one"))
        log.append(Prediction(id="two", query="q?", gold=("a",), label_kind="answer", error="HTTP 500"))
    assert run.forget_failed() == 1
    assert [item.id for item in run.predictions()] == ["one"]
    assert run.forget_failed() == 0
