"""Files of JSON lines are read whole or refused by file and line."""

import bz2
import gzip
from pathlib import Path

import pytest

from services.kit import jsonl


@pytest.mark.parametrize(("name", "pack"), [("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress), ("a.bz2", bz2.compress)])
def test_objects_have_their_places(tmp_path: Path, name: str, pack: object) -> None:
    assert callable(pack)
    path = tmp_path / name
    path.write_bytes(pack(b'{"a": 1}\n\n{"a": 2}'))
    assert list(jsonl.objects(path)) == [(f"{path}:1", {"a": 1}), (f"{path}:3", {"a": 2})]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": 1}\nhello', ":2: not JSON"),
        (b"[1]", ":1: not a JSON object"),
        (b"\xff\xfe\x00", ":1: not JSON"),
        (b"[" * 100_000, ":1: not JSON"),
        (b'{"a": "' + b"x" * 2_000_000 + b'"}', ":1: the line is longer than 1 MiB"),
    ],
)
def test_what_is_no_object_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(jsonl.BadLine) as refused:
        list(jsonl.objects(path, max_bytes=2**20))
    assert str(refused.value).startswith(f"{path}{reason}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(jsonl.BadLine, match="No such file"):
        list(jsonl.lines(tmp_path / "none.jsonl"))
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(b'{"a": 1}\n' * 10_000)[:-20])
    with pytest.raises(jsonl.BadLine, match=r"cut.jsonl.gz:\d+: "):
        list(jsonl.lines(cut))
