"""Training as a whole, on a tiny model: it learns, goes on after a kill, keeps to its time, and fails in words."""

import itertools
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lab.trainer import adapter, card, checkpoint, files, sft
from lab.trainer.dataset import Example
from lab.trainer.errors import BadCheckpoint, BadDataset, BadModel, Diverged, WriteFailed
from lab.trainer.measure import replies
from lab.trainer.model import adapt, load, set_weights, weights
from lab.trainer.progress import Progress
from lab.trainer.score import Scores
from lab.trainer.sft import Result
from tests.unit.lab.trainer.conftest import Fresh
from tests.unit.lab.trainer.tiny import NAME, examples, recipe, save_model

# Examples of the training that is interrupted.
COUNT = 240


@dataclass(frozen=True, slots=True)
class Run:
    """A training that others are compared with; its folder is copied by those that change it."""

    result: Result
    folder: Path
    told: list[Progress]


def trained(fresh: Fresh, count: int, folder: Path) -> Run:
    told: list[Progress] = []
    return Run(sft.train(fresh(), examples(count), recipe(), folder, on_progress=told.append), folder, told)


@pytest.fixture(scope="module")
def whole(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The training that others are interrupted in, undisturbed."""
    return trained(fresh, COUNT, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def short(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One of 120 examples."""
    return trained(fresh, 120, tmp_path_factory.mktemp("short"))


def losses(result: Result) -> list[float]:
    return [point.loss for point in result.state.history if point.loss is not None]


def test_an_adapter_learns_and_is_better_than_its_base(whole: Run) -> None:
    result, before, after = whole.result, whole.result.before, whole.result.after
    assert before.validation_loss is not None
    assert after.validation_loss is not None
    assert before.score is not None
    assert after.score is not None
    assert after.validation_loss < 0.85 * before.validation_loss
    assert after.score["score"] > before.score["score"]
    assert (before.step, result.state.stopped) == (0, "epochs")
    assert len([point for point in result.state.history if point.score]) == 2
    assert losses(result)[-1] < losses(result)[0]
    # Whoever waits is told how far it is, and how long it still takes.
    training = [one for one in whole.told if one.phase == "training" and not one.note and one.done]
    assert [one.done for one in training] == list(range(1, result.state.step + 1))
    assert all(one.tokens_per_s > 0 and one.left_s is not None for one in training)
    assert {one.phase for one in whole.told} == {"encoding", "measuring", "training"}


def test_only_the_last_two_checkpoints_are_kept(whole: Run) -> None:
    steps = [int(path.name.removeprefix("step-")) for path in checkpoint.checkpoints(whole.folder / sft.CHECKPOINTS)]
    assert steps == [whole.result.state.step - 3, whole.result.state.step]


def test_the_same_run_twice_is_the_same_and_only_the_adapter_changes(fresh: Fresh, tmp_path: Path, short: Run) -> None:
    first = short.result
    base = fresh()
    before = {name: tensor.clone() for name, tensor in base.model.state_dict().items()}
    second = sft.train(base, examples(120), recipe(), tmp_path)
    assert losses(first) == losses(second)
    assert first.best.keys() == second.best.keys()
    assert all(torch.equal(first.best[name], second.best[name]) for name in first.best)
    bare = second.learner.adapted.unload().state_dict()
    assert before.keys() == bare.keys()
    assert all(torch.equal(before[name], bare[name]) for name in before)


def test_interrupted_at_a_checkpoint_the_rest_is_identical(fresh: Fresh, tmp_path: Path, whole: Run) -> None:
    data = examples(COUNT)

    def stop(now: Progress) -> None:
        if now.phase == "training" and now.done == 8 and not now.note:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sft.train(fresh(), data, recipe(), tmp_path / "run", on_progress=stop)
    # As a kill would leave it: nothing is saved on the way out.
    assert checkpoint.last(tmp_path / "run" / sft.CHECKPOINTS).state.step == 6
    resumed = sft.train(fresh(), data, recipe(), tmp_path / "run", resume=True)
    assert losses(resumed) == pytest.approx(losses(whole.result), rel=1e-6)
    assert resumed.after == whole.result.after


def test_a_finished_run_resumed_is_finished_at_once(fresh: Fresh, tmp_path: Path, short: Run) -> None:
    done, folder = short.result, shutil.copytree(short.folder, tmp_path / "run")
    again = sft.train(fresh(), examples(120), recipe(), folder, resume=True)
    assert again.state.history == done.state.history
    assert again.state.stopped == done.state.stopped
    assert all(torch.equal(again.best[name], done.best[name]) for name in done.best)


@pytest.mark.parametrize(
    ("change", "count", "resume", "named"),
    [
        ({"learning_rate": 5e-3}, 120, True, "learning_rate"),
        ({"seed": 1}, 120, True, "seed"),
        ({}, 121, True, "data"),
        ({}, 120, False, "--resume"),
    ],
)
def test_a_checkpoint_of_another_training_or_unasked_for_is_refused(
    fresh: Fresh, short: Run, change: dict[str, object], count: int, resume: bool, named: str
) -> None:
    with pytest.raises(BadCheckpoint, match=named):
        sft.train(fresh(), examples(count), recipe(**change), short.folder, resume=resume)


def test_a_damaged_checkpoint_is_passed_over(fresh: Fresh, tmp_path: Path, short: Run) -> None:
    folder = shutil.copytree(short.folder, tmp_path / "run")
    newest = checkpoint.checkpoints(folder / sft.CHECKPOINTS)[-1]
    (newest / checkpoint.TENSORS).write_bytes(b"not tensors")
    told: list[Progress] = []
    resumed = sft.train(fresh(), examples(120), recipe(), folder, resume=True, on_progress=told.append)
    assert resumed.state.step == short.result.state.step
    assert any("passed over" in one.note and newest.name in one.note for one in told)


def test_a_full_disk_says_so_and_leaves_the_last_checkpoint(
    fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: Run
) -> None:
    data, synced = examples(120), 0
    real = files._write_synced

    def full(path: Path, content: bytes) -> None:
        nonlocal synced
        synced += 1
        if synced > 3:
            # What happens on a full disk: some of the bytes, then the error.
            path.write_bytes(content[: len(content) // 2])
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr("lab.trainer.files._write_synced", full)
    with pytest.raises(WriteFailed, match="No space left on device"):
        sft.train(fresh(), data, recipe(), tmp_path / "run")
    folder = tmp_path / "run" / sft.CHECKPOINTS
    assert [path.name for path in folder.iterdir()] == ["step-00000003"]
    assert checkpoint.last(folder).state.step == 3
    monkeypatch.setattr("lab.trainer.files._write_synced", real)
    resumed = sft.train(fresh(), data, recipe(), tmp_path / "run", resume=True)
    assert losses(resumed) == pytest.approx(losses(short.result), rel=1e-6)


def test_a_run_ends_when_its_time_is_over_and_is_measured_then(
    fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A clock that goes on whenever it is looked at, so that a busy machine changes nothing.
    ticks = itertools.count()
    monkeypatch.setattr(sft, "time", SimpleNamespace(monotonic=lambda: next(ticks) * 0.08))
    result = sft.train(fresh(), examples(120), recipe(epochs=100, time_limit_s=3), tmp_path)
    assert result.state.stopped == "time"
    assert result.after in result.state.history
    rates = [point.rate for point in result.state.history if point.rate is not None]
    assert max(rates) == pytest.approx(1e-2, rel=0.2)
    # The schedule has come down by then, though of a hundred epochs few are done.
    assert rates[-1] < 0.1 * max(rates)
    more = sft.train(fresh(), examples(120), recipe(epochs=100, time_limit_s=4), tmp_path, resume=True)
    assert more.state.step > result.state.step


def test_it_stops_when_validation_gets_no_better(fresh: Fresh, tmp_path: Path) -> None:
    # A rate of nearly nothing: no measurement is better by more than noise, and some is worse.
    given = recipe(epochs=50, learning_rate=1e-12, validation_steps=1, patience=3)
    result = sft.train(fresh(), examples(60), given, tmp_path)
    assert result.state.stopped == "patience"
    assert result.state.step < 50
    assert result.after.score is not None


def test_the_adapter_with_the_best_score_is_kept(fresh: Fresh, tmp_path: Path) -> None:
    given = iter([0.0, 0.7, 0.3])

    def scorer(_: Sequence[Example], said: Sequence[str]) -> Scores:
        assert len(said) == 4
        return {"score": next(given)}

    result = sft.train(fresh(), examples(60), recipe(epochs=2, score_examples=4), tmp_path, scorer=scorer)
    assert result.after.score == {"score": 0.7}
    assert 0 < result.state.best_step < result.state.step
    learner = adapt(fresh(), recipe())
    set_weights(learner, result.best)
    assert replies(learner, result.data.scored, max_tokens=160) != []


def test_a_loss_that_is_no_number_stops_the_run(fresh: Fresh, tmp_path: Path) -> None:
    base = fresh()
    with torch.no_grad():
        next(base.model.parameters()).fill_(math.nan)
    with pytest.raises(Diverged, match="no number"):
        sft.train(base, examples(120), recipe(), tmp_path)


def test_one_adapter_learns_one_task(fresh: Fresh, tmp_path: Path) -> None:
    mixed = [example.model_copy(update={"task": task}) for example in examples(40) for task in ("answer", "kg-api")]
    with pytest.raises(BadDataset, match="answer, kg-api"):
        sft.train(fresh(), mixed, recipe(), tmp_path)


def test_too_few_examples_are_refused(fresh: Fresh, tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="of 1 examples"):
        sft.train(fresh(), examples(1), recipe(), tmp_path)


# peft asks transformers by a name that the latter has since changed.
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
def test_a_written_adapter_is_read_by_peft_and_says_the_same(fresh: Fresh, tmp_path: Path, whole: Run) -> None:
    from peft import PeftModel

    result = whole.result
    # What is written is bf16; the run's own is made so too, so that both are compared alike.
    rounded = {name: tensor.to(torch.bfloat16).float() for name, tensor in result.best.items()}
    set_weights(result.learner, rounded)
    adapter.write(tmp_path / "answer", result.learner, result.best, {"README.md": b"# answer\n"})
    assert {path.name for path in (tmp_path / "answer").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "README.md",
    }
    other = PeftModel.from_pretrained(fresh().model, tmp_path / "answer").eval()
    tokens = torch.tensor([result.data.scored[0].prompt])
    result.learner.adapted.eval()
    with torch.no_grad():
        ours, theirs = (model(input_ids=tokens).logits for model in (result.learner.adapted, other))
    assert torch.allclose(ours, theirs, atol=1e-4)
    config = other.peft_config["default"]
    assert config.base_model_name_or_path == NAME
    assert not config.to_dict()["modules_to_save"]
    assert config.inference_mode


def test_a_run_can_begin_with_an_adapter(fresh: Fresh, tmp_path: Path, whole: Run) -> None:
    first = whole.result
    adapter.write(tmp_path / "answer", first.learner, first.best, {})
    second = sft.train(
        fresh(), examples(120, seed=1), recipe(epochs=0.1), tmp_path / "second", start=tmp_path / "answer"
    )
    assert first.before.validation_loss is not None
    assert second.before.validation_loss is not None
    assert second.before.validation_loss < 0.8 * first.before.validation_loss
    assert first.start == ""
    assert second.start == f"answer {adapter.digest(tmp_path / 'answer')}"
    assert f"| goes on from | `{second.start}` |" in card.card("answer", second)
    assert "before is the adapter that it goes on from:" in card.card("answer", second)
    # Another adapter of the same name is another beginning.
    adapter.write(tmp_path / "answer", second.learner, second.best, {})
    with pytest.raises(BadCheckpoint, match="another start"):
        sft.train(
            fresh(),
            examples(120, seed=1),
            recipe(epochs=0.1),
            tmp_path / "second",
            start=tmp_path / "answer",
            resume=True,
        )


def test_an_adapter_that_does_not_fit_the_base_model_is_refused(fresh: Fresh, tmp_path: Path, short: Run) -> None:
    folder = tmp_path / "answer"
    adapter.write(folder, short.result.learner, short.result.best, {})
    wider = load(save_model(tmp_path / "wider", hidden=64), name=NAME, threads=1)
    with pytest.raises(BadModel, match=r"does not fit tests/tiny: .*shape"):
        sft.train(wider, examples(120), recipe(), tmp_path / "a", start=folder)
    with pytest.raises(BadModel, match=r"does not fit tests/tiny: .*shape"):
        sft.train(fresh(), examples(120), recipe(rank=2), tmp_path / "b", start=folder)
    few = adapt(fresh(), recipe(targets=("q_proj",)))
    adapter.write(tmp_path / "q", few, weights(few), {})
    with pytest.raises(BadModel, match=r"does not fit tests/tiny: it lacks .*proj.* and 19 more"):
        sft.train(fresh(), examples(120), recipe(), tmp_path / "c", start=tmp_path / "q")
    other = load(save_model(tmp_path / "other"), name="tests/other", threads=1)
    with pytest.raises(BadModel, match="is for tests/tiny, and the base model is tests/other"):
        sft.train(other, examples(120), recipe(), tmp_path / "d", start=folder)
    shutil.rmtree(folder)
    with pytest.raises(BadModel, match="no adapter that can be read"):
        sft.train(fresh(), examples(120), recipe(), tmp_path / "e", start=folder)


@pytest.mark.parametrize("content", [None, "{}", "{", '{"model_type": "llama", "hidden_size": "x"}'])
def test_a_folder_that_is_no_model_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(BadModel, match="no model that can be trained"):
        load(tmp_path, name=NAME)
