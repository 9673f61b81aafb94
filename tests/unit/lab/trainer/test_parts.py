"""Schedule, scores, checkpoints, files."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lab.trainer import adapter, checkpoint, files
from lab.trainer.checkpoint import Checkpoint, Point, State
from lab.trainer.dataset import Example
from lab.trainer.errors import BadCheckpoint, WriteFailed
from lab.trainer.recipe import Recipe
from lab.trainer.run import progress, rate
from lab.trainer.score import exact, judged, normalized, scorer_of
from tests.unit.lab.trainer.tiny import examples, recipe


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
    rows = [
        ("Kuro Tanaka", "answer", "the kuro tanaka."),
        ("1234.5", "answer", "1,234.5"),
        ("red", "answer", "I don't know."),
        ("i don't know", "unknown", "I do not know"),
        ("i don't know", "unknown", "blue"),
        ("invalid question", "invalid_question", "Invalid question."),
        ("invalid question", "invalid_question", "red"),
    ]
    scores = judged([example(gold, kind) for gold, kind, _ in rows], [reply for _, _, reply in rows])
    shares = {"score": 1 / 7, "right": 3 / 7, "missing": 2 / 7, "wrong": 2 / 7}
    taught = {"as taught: answer": 2 / 3, "as taught: unknown": 0.5, "as taught: invalid_question": 0.5}
    assert scores == pytest.approx(shares | taught)
    assert judged([example("red", "answer")], [" "])["missing"] == 1
    assert judged([example("$1.2 billion", "answer")], ["Answer: 1,200,000,000 dollars"])["right"] == 1
    assert (scorer_of("answer"), scorer_of("kg-api")) == (judged, exact)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The Red Door", "red door"),
        ("“1,000,000”", "1000000"),
        ("it’s  here!", "it's here"),
        ("1,2", "1,2"),
        ("-3", "-3"),
    ],
)
def test_what_differs_in_form_only_is_the_same(text: str, plain: str) -> None:
    assert normalized(text) == plain


def test_programs_are_compared_without_their_spaces() -> None:
    gold = [example('get_movie("A", "year")', "answer"), example("none", "answer")]
    assert exact(gold, ['get_movie( "A","year" )', "get_person()"])["score"] == 0.5


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


def failing(error: BaseException) -> Callable[[Path, Path], Path]:
    """`Path.rename`, but for the new folder."""
    real = Path.rename

    def rename(path: Path, to: Path) -> Path:
        if path.name == "new":
            raise error
        return real(path, to)

    return rename


def test_a_folder_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a"
    files.write_folder(folder, {"x": b"1"})
    monkeypatch.setattr(Path, "rename", failing(OSError(5, "Input/output error")))
    with pytest.raises(WriteFailed, match="a: Input/output error"):
        files.write_folder(folder, {"x": b"2"})
    assert (folder / "x").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_kill_put_aside_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a"
    files.write_folder(folder, {adapter.CONFIG: b"1"})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", failing(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            files.write_folder(folder, {adapter.CONFIG: b"2"})
    # The generator serves what is in the folders of a folder, and would not start with one of a hidden name.
    assert not list(tmp_path.glob(f"*/{adapter.CONFIG}"))

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "write_whole", full)
        with pytest.raises(WriteFailed, match="No space left"):
            files.write_folder(folder, {adapter.CONFIG: b"3"})
    assert (folder / adapter.CONFIG).read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_link_to_a_folder_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for content in ({"x": b"1", "y": b"2"}, {"x": b"3"}):
        files.write_folder(tmp_path / "link", content)
        # It replaces the one before whole.
        assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == content
    assert (tmp_path / "link").is_symlink()
