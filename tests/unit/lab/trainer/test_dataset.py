"""Files of examples: strict reading, whole writing, splits that keep groups together."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab.trainer import dataset
from lab.trainer.errors import BadDataset, WriteFailed
from tests.unit.lab.trainer.tiny import examples

LINE: dict[str, Any] = json.loads(examples(1)[0].model_dump_json())


def file_of(folder: Path, *lines: str) -> Path:
    path = folder / "data.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    made = examples(20)
    kinds = dataset.write(tmp_path / "data.jsonl", made)
    assert dataset.read([tmp_path / "data.jsonl"]) == made
    assert kinds.total() == 20
    assert kinds["answer"] == sum(example.kind == "answer" for example in made)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "line"),
        ("[]", "line"),
        ("null", "line"),
        (json.dumps({**LINE, "task": "poetry"}), "task"),
        (json.dumps({**LINE, "completion": " "}), "completion"),
        (json.dumps({**LINE, "kind": None}), "kind"),
        (json.dumps({**LINE, "id": 7}), "id"),
        (json.dumps({**LINE, "more": 1}), "more"),
        (json.dumps({key: value for key, value in LINE.items() if key != "query"}), "query"),
        (json.dumps({**LINE, "messages": [{"role": "user", "content": 1}]}), r"messages\.0\.content"),
        (json.dumps({**LINE, "messages": [{"role": "assistant", "content": "x"}]}), "last message"),
        ('{"id": "\\ud800"}', "line"),
    ],
)
def test_a_damaged_line_is_named_with_its_field(tmp_path: Path, line: str, named: str) -> None:
    good = json.dumps(LINE)
    path = file_of(tmp_path, good, "", line)
    with pytest.raises(BadDataset, match=rf"data\.jsonl:3: .*{named}"):
        dataset.read([path])


def test_an_error_tells_fields_and_not_contents(tmp_path: Path) -> None:
    path = file_of(tmp_path, json.dumps({**LINE, "kind": "a secret of the caller"}))
    with pytest.raises(BadDataset, match=r"^(?!.*secret)"):
        dataset.read([path])


def test_an_id_that_comes_twice_and_a_file_without_examples_of_the_task_are_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path, json.dumps(LINE), json.dumps(LINE))
    with pytest.raises(BadDataset, match=r":2: id: .* twice"):
        dataset.read([path])
    path = file_of(tmp_path, json.dumps(LINE))
    with pytest.raises(BadDataset, match="no example of the task 'kg-api'"):
        dataset.read([path], task="kg-api")
    with pytest.raises(BadDataset, match=r"none\.jsonl"):
        dataset.read([tmp_path / "none.jsonl"])


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.jsonl"
    dataset.write(path, examples(3))
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(WriteFailed, match="No space left"):
        dataset.write(path, examples(9, seed=1))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_split_parts_no_group_and_is_the_same_for_a_seed() -> None:
    made = [example.model_copy(update={"group": f"g{index % 40}"}) for index, example in enumerate(examples(400))]
    parts = train, held_out = dataset.split(made, dataset.group_of, share=0.25, seed=3)
    assert not {example.group for example in train} & {example.group for example in held_out}
    assert len(train) + len(held_out) == 400
    assert 0.1 < len(held_out) / 400 < 0.4
    # More data moves none to the other side.
    few, _ = dataset.split(made[:100], dataset.group_of, share=0.25, seed=3)
    assert few == [example for example in made[:100] if example in train]
    assert dataset.split(made, dataset.group_of, share=0.25, seed=4) != parts


def test_questions_that_differ_in_case_only_are_one_group() -> None:
    one, two = (examples(1)[0].model_copy(update={"query": query}) for query in ("What  is it", "what is it"))
    assert dataset.group_of(one) == dataset.group_of(two)


def test_the_fingerprint_is_of_content_and_order() -> None:
    made = examples(5)
    assert dataset.fingerprint(made) == dataset.fingerprint(list(made))
    assert dataset.fingerprint(made) != dataset.fingerprint(made[::-1])
    changed = [made[0].model_copy(update={"completion": "pink"}), *made[1:]]
    assert dataset.fingerprint(made) != dataset.fingerprint(changed)


def test_a_sample_keeps_the_order_and_the_seed() -> None:
    made = examples(50)
    some = dataset.sample(made, 10, seed=1)
    assert len(some) == 10
    assert [made.index(example) for example in some] == sorted(made.index(example) for example in some)
    assert dataset.sample(made, 10, seed=1) == some
    assert dataset.sample(made, 0, seed=1) == made
    assert dataset.sample(made, 99, seed=1) == made
