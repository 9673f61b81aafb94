"""Schedule, scores, checkpoints, files, the card."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.trainer import adapter, card, checkpoint, files, sft
from lab.trainer.checkpoint import Checkpoint, Point, State
from lab.trainer.dataset import Example
from lab.trainer.errors import BadCheckpoint, WriteFailed
from lab.trainer.model import Base
from lab.trainer.recipe import Recipe
from lab.trainer.schedule import progress, rate
from lab.trainer.score import exact, normalized
from lab.trainer.scorers import judged
from tests.unit.lab.trainer.tiny import examples, recipe


@given(st.floats(0, 1), st.floats(0, 0.9))
def test_the_rate_stays_within_its_height(done: float, warm_up: float) -> None:
    assert 0 <= rate(done, warm_up) <= 1


def test_the_rate_rises_straight_and_falls_as_a_cosine() -> None:
    assert [rate(done, 0.1) for done in (0, 0.05, 0.1)] == pytest.approx([0, 0.5, 1])
    assert rate(0.55, 0.1) == pytest.approx(0.5)
    assert rate(1, 0.1) == pytest.approx(0)
    assert rate(2, 0.1) == rate(1, 0.1)
    assert rate(0, 0) == 1


def test_a_run_is_as_far_as_its_steps_or_its_time() -> None:
    assert progress(5, 10, 1e9, 0) == 0.5
    assert progress(5, 10, 30, 100) == 0.5
    assert progress(5, 10, 80, 100) == 0.8


def example(completion: str, kind: str) -> Example:
    return examples(1)[0].model_copy(update={"completion": completion, "kind": kind})


def test_crags_score_of_replies() -> None:
    gold = [
        example("Kuro Tanaka", "answer"),
        example("1234.5", "answer"),
        example("red", "answer"),
        example("i don't know", "unknown"),
        example("i don't know", "unknown"),
        example("invalid question", "invalid_question"),
        example("invalid question", "invalid_question"),
    ]
    replies = ["the kuro tanaka.", "1,234.5", "I don't know.", "I do not know", "blue", "Invalid question.", "red"]
    scores = judged(gold, replies)
    assert scores["right"] == pytest.approx(3 / 7)
    assert scores["missing"] == pytest.approx(2 / 7)
    assert scores["wrong"] == pytest.approx(2 / 7)
    assert scores["score"] == pytest.approx(1 / 7)
    assert scores["as taught: unknown"] == 0.5
    assert scores["as taught: invalid_question"] == 0.5
    assert scores["as taught: answer"] == pytest.approx(2 / 3)
    assert judged([example("red", "answer")], [" "])["missing"] == 1


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("The Red Door", "red door", True),
        ("“1,000,000”", "1000000", True),
        ("it’s  here!", "it's here", True),
        ("1,2", "12", False),
        ("red", "reds", False),
        ("-3", "3", False),
        ("3.5", "35", False),
    ],
)
def test_what_differs_in_form_only_is_the_same(one: str, two: str, same: bool) -> None:
    assert (normalized(one) == normalized(two)) is same


def test_programs_are_compared_without_their_spaces() -> None:
    asked = [example('get_movie("A", "year")', "answer"), example("none", "answer")]
    assert exact(asked, ['get_movie( "A","year" )', "get_person()"])["score"] == 0.5


def test_a_bound_that_holds_no_example_is_refused() -> None:
    with pytest.raises(ValueError, match="max_batch_tokens must hold one example"):
        Recipe(max_batch_tokens=256, max_prompt_tokens=256)


def test_what_may_change_does_not_bar_going_on() -> None:
    assert recipe(threads=1).fixed() == recipe(threads=2, time_limit_s=9, checkpoint_steps=7).fixed()
    assert recipe().fixed() != recipe(dropout=0.2).fixed()


def state(step: int = 3) -> State:
    history = (Point(step=1, epoch=0.5, loss=2.5, rate=1e-4), Point(step=1, epoch=0.5, validation_loss=2.0))
    return State(fixed={"seed": 0}, step=step, spent_s=2, begun_s=1, measure_s=0.5, tokens=7, history=history)


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    tensors = {"adapter.a": torch.randn(3, 2), "rng.cpu": torch.get_rng_state()}
    checkpoint.save(tmp_path, Checkpoint(state(), tensors))
    back = checkpoint.last(tmp_path)
    assert back.state == state()
    assert back.part("adapter").keys() == {"a"}
    assert torch.equal(back.part("rng")["cpu"], tensors["rng.cpu"])


@pytest.mark.parametrize(
    ("name", "content"),
    [(checkpoint.STATE, b"{"), (checkpoint.STATE, b'{"step": -1}'), (checkpoint.TENSORS, b"\x80\x04pickle")],
)
def test_a_damaged_checkpoint_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    checkpoint.save(tmp_path, Checkpoint(state(), {"adapter.a": torch.zeros(1)}))
    (tmp_path / "step-00000003" / name).write_bytes(content)
    problems: list[str] = []
    with pytest.raises(BadCheckpoint, match="no checkpoint to go on from"):
        checkpoint.last(tmp_path, problems.append)
    assert "step-00000003" in problems[0]


def test_what_a_kill_left_half_written_is_no_checkpoint(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, Checkpoint(state(), {"adapter.a": torch.zeros(1)}))
    (tmp_path / ".step-00000006.partial").mkdir()
    (tmp_path / "step-00000009").mkdir()
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["step-00000003"]
    checkpoint.save(tmp_path, Checkpoint(state(6), {"adapter.a": torch.zeros(1)}))
    assert checkpoint.last(tmp_path).state.step == 6


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteFailed, match="file"):
        checkpoint.save(tmp_path / "file", Checkpoint(state(), {}))
    with pytest.raises(WriteFailed, match="file"):
        files.write(tmp_path / "file" / "x", b"")


def test_a_written_folder_replaces_the_one_before(tmp_path: Path) -> None:
    files.write_folder(tmp_path / "a", {"x": b"1", "y": b"2"})
    files.write_folder(tmp_path / "a", {"x": b"3"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == {"x": b"3"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a"
    files.write_folder(folder, {"x": b"1"})
    real = Path.rename

    def refused(path: Path, to: Path) -> Path:
        if path.name == "new":
            raise OSError(5, "Input/output error")
        return real(path, to)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(WriteFailed, match="a: Input/output error"):
        files.write_folder(folder, {"x": b"2"})
    assert (folder / "x").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_kill_put_aside_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a"
    files.write_folder(folder, {adapter.CONFIG: b"1"})
    real = Path.rename

    def killed(path: Path, to: Path) -> Path:
        if path.name == "new":
            raise KeyboardInterrupt
        return real(path, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            files.write_folder(folder, {adapter.CONFIG: b"2"})
    # The generator serves what is in the folders of a folder, and would not start with one of a hidden name.
    assert not list(tmp_path.glob(f"*/{adapter.CONFIG}"))

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "_write_synced", full)
        with pytest.raises(WriteFailed, match="No space left"):
            files.write_folder(folder, {adapter.CONFIG: b"3"})
    assert (folder / adapter.CONFIG).read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_link_to_a_folder_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for content in (b"1", b"2"):
        files.write_folder(tmp_path / "link", {"x": content})
        assert (tmp_path / "a" / "x").read_bytes() == content
    assert (tmp_path / "link").is_symlink()


def test_the_card_says_what_was_learnt_from_what_and_what_came_of_it(base: Base, tmp_path: Path) -> None:
    result = sft.train(base, examples(60), recipe(), tmp_path)
    made = card.files("answer", result)
    text = made[card.CARD].decode()
    for part in (base.name, result.data.sha256, "peft ", "torch ", "tests (", "peak memory", "learning_rate 0.01"):
        assert part in text
    before, after = result.before.score, result.after.score
    assert before is not None
    assert after is not None
    assert f"| score | {before['score']:+.3f} | {after['score']:+.3f} |" in text
    assert "before is the base model:" in text
    assert "goes on from" not in text
    assert str(tmp_path) not in text
    assert made[card.CURVES].startswith(b"\x89PNG")
    assert card.peak_mib() > 50


def test_curves_are_drawn_of_whatever_there_is() -> None:
    assert card.curves((Point(step=0, epoch=0, validation_loss=math.e),)).startswith(b"\x89PNG")
