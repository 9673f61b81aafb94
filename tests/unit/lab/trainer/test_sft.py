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

from lab.trainer import adapter, card, checkpoint, run, sft
from lab.trainer.checkpoint import Point
from lab.trainer.dataset import Example
from lab.trainer.errors import BadCheckpoint, BadDataset, BadModel, Diverged, WriteFailed
from lab.trainer.model import adapt, load, set_weights, weights
from lab.trainer.run import CHECKPOINTS, Progress
from lab.trainer.score import Scores
from lab.trainer.sft import Result
from services.kit import files
from tests.unit.lab.trainer.conftest import Fresh
from tests.unit.lab.trainer.tiny import NAME, examples, recipe, save_model

DATA = examples(120)
# Enough for a run that ends at once.
FEW = examples(40)


@dataclass(frozen=True, slots=True)
class Run:
    """A training that others are compared with; its folder is copied by those that change it."""

    result: Result
    folder: Path
    progress: list[Progress]


@pytest.fixture(scope="module")
def whole(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The training that others are interrupted in, undisturbed."""
    folder, progress = tmp_path_factory.mktemp("whole"), list[Progress]()
    return Run(sft.train(fresh(), DATA, recipe(), folder, on_progress=progress.append), folder, progress)


@pytest.fixture
def copy(whole: Run, tmp_path: Path) -> Path:
    """The folder of the undisturbed training, to change."""
    return shutil.copytree(whole.folder, tmp_path / "run")


def losses(result: Result) -> list[float]:
    return [point.loss for point in result.state.history if point.loss is not None]


def test_an_adapter_learns_and_is_better_than_its_base(whole: Run) -> None:
    result, before, after = whole.result, whole.result.before, whole.result.after
    assert before.validation_loss is not None
    assert after.validation_loss is not None
    assert before.score is not None
    assert after.score is not None
    assert after.validation_loss < 0.85 * before.validation_loss
    assert (before.step, result.state.stopped) == (0, "epochs")
    assert len([point for point in result.state.history if point.score]) == 2
    # Whoever waits is told how far it is, and how long it still takes.
    training = [one for one in whole.progress if one.phase == "training" and not one.note and one.done]
    assert [one.done for one in training] == list(range(1, result.state.step + 1))
    assert all(one.tokens_per_s > 0 and one.left_s is not None for one in training)
    assert {one.phase for one in whole.progress} == {"encoding", "measuring", "training"}


def test_only_the_last_two_checkpoints_are_kept(whole: Run) -> None:
    steps = [int(path.name.removeprefix("step-")) for path in checkpoint.checkpoints(whole.folder / CHECKPOINTS)]
    last = whole.result.state.step
    assert steps == [(last - 1) // 3 * 3, last]


def test_only_the_adapter_changes(fresh: Fresh, whole: Run) -> None:
    base, trained = fresh().model.state_dict(), whole.result.learner.plain.state_dict()
    kept = {name.replace(".base_layer", ""): tensor for name, tensor in trained.items() if ".lora_" not in name}
    assert base.keys() == kept.keys()
    assert all(torch.equal(base[name], kept[name]) for name in base)


def test_interrupted_at_a_checkpoint_the_rest_is_identical(fresh: Fresh, tmp_path: Path, whole: Run) -> None:
    def stop(now: Progress) -> None:
        if now.phase == "training" and now.done == 5 and not now.note:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sft.train(fresh(), DATA, recipe(), tmp_path, on_progress=stop)
    # As a kill would leave it: nothing is saved on the way out.
    assert checkpoint.last(tmp_path / CHECKPOINTS).state.step == 3
    resumed = sft.train(fresh(), DATA, recipe(), tmp_path, resume=True)
    assert losses(resumed) == pytest.approx(losses(whole.result), rel=1e-6)
    assert resumed.after == whole.result.after


def test_masks_that_outgrow_their_pool_are_drawn_alike_after_a_kill(
    fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Windows of a batch are larger than the pool, as with the default batches of a real model.
    monkeypatch.setattr("lab.trainer.lora.POOL", 1 << 10)

    def stop(now: Progress) -> None:
        if now.phase == "training" and now.done == 4 and not now.note:
            raise KeyboardInterrupt

    given = recipe(dropout=0.2, score_examples=1, accumulation=1)
    expected = losses(sft.train(fresh(), FEW, given, tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        sft.train(fresh(), FEW, given, tmp_path / "cut", on_progress=stop)
    assert losses(sft.train(fresh(), FEW, given, tmp_path / "cut", resume=True)) == pytest.approx(expected, rel=1e-6)


def test_a_finished_run_resumed_is_finished_at_once(fresh: Fresh, copy: Path, whole: Run) -> None:
    again = sft.train(fresh(), DATA, recipe(), copy, resume=True)
    assert (again.state.history, again.state.stopped) == (whole.result.state.history, "epochs")
    assert all(torch.equal(again.best[name], tensor) for name, tensor in whole.result.best.items())


@pytest.mark.parametrize(
    ("change", "count", "resume", "named"),
    [({"learning_rate": 5e-3}, 120, True, "learning_rate"), ({}, 119, True, "data"), ({}, 120, False, "--resume")],
)
def test_a_checkpoint_of_another_training_or_unasked_for_is_refused(
    fresh: Fresh, whole: Run, change: dict[str, object], count: int, resume: bool, named: str
) -> None:
    with pytest.raises(BadCheckpoint, match=named):
        sft.train(fresh(), DATA[:count], recipe(**change), whole.folder, resume=resume)


def test_a_checkpoint_of_other_weights_of_the_same_name_is_refused(whole: Run, tmp_path: Path) -> None:
    other = load(save_model(tmp_path / "other", seed=1), name=NAME, threads=1)
    with pytest.raises(BadCheckpoint, match="another weights"):
        sft.train(other, DATA, recipe(), whole.folder, resume=True)


def test_a_damaged_checkpoint_is_passed_over(fresh: Fresh, copy: Path, whole: Run) -> None:
    newest = checkpoint.checkpoints(copy / CHECKPOINTS)[-1]
    (newest / checkpoint.TENSORS).write_bytes(b"not tensors")
    progress: list[Progress] = []
    resumed = sft.train(fresh(), DATA, recipe(), copy, resume=True, on_progress=progress.append)
    assert resumed.state.step == whole.result.state.step
    assert any("passed over" in one.note and newest.name in one.note for one in progress)


def test_a_full_disk_says_so_and_leaves_the_last_checkpoint(
    fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, real = itertools.count(1), files.write_whole

    def full(path: Path, content: bytes) -> None:
        if next(count) > 3:
            # What happens on a full disk: some of the bytes, then the error.
            path.write_bytes(content[: len(content) // 2])
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr("lab.trainer.files.write_whole", full)
    with pytest.raises(WriteFailed, match="No space left on device"):
        sft.train(fresh(), FEW, recipe(checkpoint_steps=1), tmp_path)
    folder = tmp_path / CHECKPOINTS
    assert [path.name for path in folder.iterdir()] == ["step-00000001"]
    assert checkpoint.last(folder).state.step == 1


def test_a_run_ends_when_its_time_is_over_and_is_measured_then(
    fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A clock that goes on whenever it is looked at, so that a busy machine changes nothing.
    ticks = itertools.count()
    for module in (sft, run):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(ticks) * 0.08))
    result = sft.train(fresh(), FEW, recipe(epochs=100, time_limit_s=3), tmp_path)
    assert result.state.stopped == "time"
    assert result.after in result.state.history
    rates = [point.rate for point in result.state.history if point.rate is not None]
    assert max(rates) == pytest.approx(1e-2, rel=0.2)
    # The schedule has come down by then, though of a hundred epochs few are done.
    assert rates[-1] < 0.1 * max(rates)
    more = sft.train(fresh(), FEW, recipe(epochs=100, time_limit_s=4), tmp_path, resume=True)
    assert more.state.step > result.state.step


def test_it_stops_when_validation_gets_no_better(fresh: Fresh, tmp_path: Path) -> None:
    # A rate of nearly nothing: no measurement is better by more than noise, and some is worse.
    given = recipe(epochs=50, learning_rate=1e-12, validation_steps=1, patience=2, score_examples=1)
    result = sft.train(fresh(), FEW, given, tmp_path)
    assert result.state.stopped == "patience"
    assert result.state.step < 50
    assert result.after.score is not None


def test_the_adapter_with_the_best_score_is_kept(fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter([0.0, 0.7, 0.3])

    def scorer(_: Sequence[Example], replies: Sequence[str]) -> Scores:
        assert len(replies) == 4
        return {"score": next(given)}

    monkeypatch.setattr(sft, "scorer_of", lambda _: scorer)
    result = sft.train(fresh(), FEW, recipe(epochs=2, score_examples=4), tmp_path)
    assert result.after.score == {"score": 0.7}
    assert 0 < result.state.best_step < result.state.step
    set_weights(adapt(fresh(), recipe()), result.best)


def test_a_loss_that_is_no_number_stops_the_run(fresh: Fresh, tmp_path: Path) -> None:
    base = fresh()
    with torch.no_grad():
        next(base.model.parameters()).fill_(math.nan)
    with pytest.raises(Diverged, match="no number"):
        sft.train(base, FEW, recipe(), tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [([FEW[0], FEW[1].model_copy(update={"task": "kg-api"})], "answer, kg-api"), (FEW[:1], "of 1 examples")],
)
def test_examples_of_two_tasks_or_too_few_are_refused(
    fresh: Fresh, tmp_path: Path, data: list[Example], message: str
) -> None:
    with pytest.raises(BadDataset, match=message):
        sft.train(fresh(), data, recipe(), tmp_path)


# peft asks transformers by a name that the latter has since changed.
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
def test_a_written_adapter_is_read_by_peft_and_says_the_same(fresh: Fresh, tmp_path: Path, whole: Run) -> None:
    from peft import PeftModel

    result = whole.result
    # What is written is bf16; the run's own is made so too, so that both are compared alike.
    learner = adapt(fresh(), recipe())
    set_weights(learner, {name: tensor.to(torch.bfloat16).float() for name, tensor in result.best.items()})
    adapter.write(tmp_path / "answer", learner, result.best, {"README.md": b"# answer\n"})
    assert {path.name for path in (tmp_path / "answer").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "README.md",
    }
    other = PeftModel.from_pretrained(fresh().model, tmp_path / "answer").eval()
    tokens = torch.tensor([result.data.scored[0].prompt])
    learner.adapted.eval()
    with torch.no_grad():
        ours, theirs = (model(input_ids=tokens).logits for model in (learner.adapted, other))
    assert torch.allclose(ours, theirs, atol=1e-4)
    config = other.peft_config["default"]
    assert (config.base_model_name_or_path, config.inference_mode) == (NAME, True)
    assert not config.to_dict()["modules_to_save"]


def test_a_run_can_begin_with_an_adapter(fresh: Fresh, tmp_path: Path, whole: Run) -> None:
    first, start, folder = whole.result, tmp_path / "answer", tmp_path / "second"
    adapter.write(start, first.learner, first.best, {})
    second = sft.train(fresh(), FEW, recipe(epochs=0.1), folder, start=start)
    assert first.before.validation_loss is not None
    assert second.before.validation_loss is not None
    assert second.before.validation_loss < 0.9 * first.before.validation_loss
    assert (first.start, second.start) == ("", f"answer {adapter.digest(start)}")
    assert f"| goes on from | `{second.start}` |" in card.card("answer", second)
    assert "before is the adapter that it goes on from:" in card.card("answer", second)
    # Another adapter of the same name is another beginning.
    adapter.write(start, second.learner, second.best, {})
    with pytest.raises(BadCheckpoint, match="another start"):
        sft.train(fresh(), FEW, recipe(epochs=0.1), folder, start=start, resume=True)


@pytest.mark.parametrize("alpha", [8, 32])
def test_an_adapter_of_another_alpha_is_scaled_to_say_the_same(
    fresh: Fresh, tmp_path: Path, whole: Run, alpha: int
) -> None:
    learner = adapt(fresh(), recipe(alpha=alpha))
    adapter.write(tmp_path / "answer", whole.result.learner, whole.result.best, {})
    tensors = adapter.read(tmp_path / "answer", learner)
    for name, tensor in whole.result.best.items():
        factor = recipe().alpha / alpha if ".lora_B." in name else 1.0
        torch.testing.assert_close(tensors[name], tensor.bfloat16().float() * factor, msg=name)


def test_an_adapter_that_does_not_fit_the_base_model_is_refused(fresh: Fresh, tmp_path: Path, whole: Run) -> None:
    folder, few = tmp_path / "answer", adapt(fresh(), recipe(targets=("q_proj",)))
    adapter.write(folder, whole.result.learner, whole.result.best, {})
    adapter.write(tmp_path / "q", few, weights(few), {})
    wider = load(save_model(tmp_path / "wider", hidden=64), name=NAME, threads=1)
    other = load(save_model(tmp_path / "other"), name="tests/other", threads=1)
    for base, rank, start, message in (
        (wider, 4, folder, r"does not fit tests/tiny: .*shape"),
        (fresh(), 2, folder, r"does not fit tests/tiny: .*shape"),
        (fresh(), 4, tmp_path / "q", r"does not fit tests/tiny: it lacks .*proj.* and 19 more"),
        (other, 4, folder, "is for tests/tiny, and the base model is tests/other"),
    ):
        with pytest.raises(BadModel, match=message):
            sft.train(base, FEW, recipe(rank=rank), tmp_path / "run", start=start)


@pytest.mark.parametrize("content", ["{", '{"model_type": "llama", "hidden_size": "x"}'])
def test_a_folder_that_is_no_model_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(BadModel, match="no model that can be trained"):
        load(tmp_path, name=NAME)


def test_the_card_says_what_was_learnt_from_what_and_what_came_of_it(whole: Run) -> None:
    result = whole.result
    made = card.files("answer", result)
    text = made[card.CARD].decode()
    for part in (NAME, result.data.sha256, "peft ", "torch ", "tests (", "peak memory", "learning_rate 0.01"):
        assert part in text
    before, after = result.before.score, result.after.score
    assert before is not None
    assert after is not None
    assert f"| score | {before['score']:+.3f} | {after['score']:+.3f} |" in text
    assert "before is the base model:" in text
    assert "goes on from" not in text
    assert str(whole.folder) not in text
    assert made[card.CURVES].startswith(b"\x89PNG")
    assert card.peak_mib() > 50


def test_curves_are_drawn_of_whatever_there_is() -> None:
    assert card.curves((Point(step=0, epoch=0, validation_loss=math.e),)).startswith(b"\x89PNG")
