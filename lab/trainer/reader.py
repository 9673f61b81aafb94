"""Training of the extractive reader: an adapter of the bundled MiniLM and a head, as `services/kit/reader.py` says.

The adapter's products (rank 16 on all linear layers) and the head are what ships, a few MB.
"""

import hashlib
import math
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from pydantic import JsonValue

from lab.trainer import checkpoint, dataset, files, near, pairs
from lab.trainer.checkpoint import Checkpoint, Point, State, Stop, without_denormals
from lab.trainer.errors import BadCheckpoint, BadDataset, BadModel, Diverged
from lab.trainer.model import number_format
from lab.trainer.pairs import Pair
from lab.trainer.progress import OnProgress, Progress
from lab.trainer.reader_measure import BESIDE, content, measured
from lab.trainer.reader_model import Example, Model, Recipe, batches, encode, loss
from lab.trainer.schedule import progress, rate
from services.kit.encoder import bundled_model, fingerprint
from services.kit.reader import CARD, MAX_SPAN_TOKENS, WEIGHTS, Card, Layout

__all__ = ["Recipe", "Result", "check_target", "report", "train"]

CHECKPOINTS = "checkpoints"
DRAFT = "unmeasured"
SPEED_STEPS = 20
# The last part of a run with a time limit, for measuring.
MEASURE_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run: what its weights are worth, why it ended, and how many of its pairs no window could teach."""

    card: Card
    steps: int
    stopped: Stop
    pairs: int
    left_out: int


def train(
    items: Sequence[Pair],
    recipe: Recipe,
    folder: Path,
    target: Path,
    *,
    resume: bool = False,
    start: Path | None = None,
    base: Path | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Result:
    """Teach a reader and write its weights.

    Args:
        folder: checkpoints are kept in it.
        target: the weights' folder, replaced whole.
        resume: go on from the last checkpoint there, which must be of the same training; without one begin.
        start: folder of weights to begin with instead of new ones.
        base: folder of the encoder; the bundled one when None.

    Raises:
        TrainerError: why it ended before the last step. The last checkpoint is whole.
    """
    began = time.monotonic()
    base = base or bundled_model()
    learnt, kept_back = dataset.split(items, pairs.group_of, share=recipe.held_out_share, seed=recipe.seed)
    training = [*learnt, *pairs.distractors(learnt, share=recipe.distractors, seed=recipe.seed)]
    chooser = random.Random(recipe.seed)  # noqa: S311 - repeatable is the point
    held_out = chooser.sample(kept_back, min(len(kept_back), recipe.held_out))
    layout = Layout(base, max_tokens=recipe.max_tokens, overlap=recipe.overlap)
    examples = encode(layout, training, recipe)
    if not examples or not any(pair.answer for pair in held_out) or len(held_out) < 2:
        raise BadDataset(f"of {len(items)} pairs too few are left to learn from or to measure by: give more")
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    device, dtype, _ = number_format(str(base), threads=recipe.threads)
    if dtype is torch.float16:
        # So small a model gains nothing by a loss that must be scaled.
        dtype = torch.float32
    model = Model(base, recipe, dtype).to(device)
    if start:
        model.set_tensors(_weights(start))
    fixed: dict[str, JsonValue] = {
        "base": fingerprint(base),
        "start": hashlib.sha256((start / WEIGHTS).read_bytes()).hexdigest() if start else "",
        "data": pairs.fingerprint(items),
        **recipe.fixed(),  # type: ignore[dict-item]
    }
    run = _Run(
        model, examples, encode(layout, held_out, recipe), recipe, folder / CHECKPOINTS, fixed, on_progress, began
    )
    if checkpoint.goes_on(run.folder, resume=resume):
        run.restore()
    with without_denormals():
        stopped = run.go()
    card = Card(base=fingerprint(base), made_from=pairs.sources(items))
    # Measuring takes minutes, in which the target may be served: it keeps the weights that it has.
    draft = folder / DRAFT
    write(draft, model, card)
    on_progress(Progress("measuring", 0, len(held_out)))
    doubtful = near.doubtful()[: recipe.held_out]
    card = measured(draft, held_out, doubtful, card, base, threads=recipe.threads, on_progress=on_progress)
    write(target, model, card)
    shutil.rmtree(draft, ignore_errors=True)
    return Result(card, run.step, stopped, len(training), len(training) - len(examples))


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    try:
        return safetensors.torch.load_file(folder / WEIGHTS)
    except (OSError, safetensors.SafetensorError) as error:
        raise BadModel(f"{folder}: no reader to begin with: {error}") from error


def check_target(folder: Path, run: Path) -> None:
    """Raise `BadTarget` where the weights would replace another folder than a reader's, or the run's own."""
    files.check_target(folder, run, marker=CARD, written="weights", lack="holds no reader")


def report(result: Result) -> list[str]:
    """Lines for people: what the weights are worth on passages that were kept back."""
    scores, card = result.card.held_out, result.card

    def line(prefix: str, words: str) -> str:
        return (
            f"{words}: exact {scores[f'{prefix}_exact']:.3f}, F1 {scores[f'{prefix}_f1']:.3f} of the answerable; "
            f"whether it is said at all {scores[f'{prefix}_says']:.3f}; above the threshold right "
            f"{scores[f'{prefix}_right']:.3f}, wrong {scores[f'{prefix}_wrong']:.3f} of all"
        )

    left_out = f"{result.left_out} of {result.pairs} pairs were not taught: their answer is in no window as a span"
    return [
        *([f"{left_out} of {MAX_SPAN_TOKENS} tokens or fewer"] if result.left_out else []),
        f"{result.steps} steps; temperature {card.temperature:.1f}, threshold {card.threshold:.2f}; measured on "
        f"{scores['pairs']:.0f} pairs of other passages",
        line("own", "one passage"),
        line("beside", f"beside up to {BESIDE} others of its kind"),
    ]


def write(target: Path, model: Model, card: Card) -> None:
    """Replace the weights' folder, whole or not at all."""
    files.write_folder(target, {WEIGHTS: safetensors.torch.save(model.tensors()), CARD: content(card)})


@dataclass(slots=True)
class _Run:
    model: Model
    examples: list[Example]
    held_out: list[Example]
    recipe: Recipe
    folder: Path
    fixed: dict[str, JsonValue]
    on_progress: OnProgress
    began: float
    step: int = 0
    tokens: int = 0
    spent_before_s: float = 0.0
    begun_s: float = 0.0
    history: list[Point] = field(default_factory=list)
    speeds: list[tuple[int, float]] = field(default_factory=list)
    names: list[str] = field(init=False)
    optimizer: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        trained = self.model.trained()
        head = [name for name in trained if name.startswith("head.")]
        encoder = [name for name in trained if name not in head]
        # The optimiser's state is stored under these names, in its order.
        self.names = [*encoder, *head]
        rates = ((encoder, self.recipe.learning_rate), (head, self.recipe.head_rate))
        groups = [{"params": [trained[name] for name in names], "lr": rate} for names, rate in rates]
        self.optimizer = torch.optim.AdamW(groups, weight_decay=0.0)

    @property
    def per_epoch(self) -> int:
        return math.ceil(len(self.examples) / self.recipe.batch)

    @property
    def steps(self) -> int:
        return max(1, round(self.per_epoch * self.recipe.epochs))

    @property
    def spent_s(self) -> float:
        return self.spent_before_s + time.monotonic() - self.began

    @property
    def progress(self) -> float:
        limit_s = self.recipe.time_limit_s * (1 - MEASURE_SHARE)
        return progress(self.step, self.steps, self.spent_s - self.begun_s, max(1.0, limit_s) if limit_s else 0.0)

    def go(self) -> Stop:
        if not self.step:
            self.begun_s = self.spent_s
        stopped: Stop = "epochs"
        for batch in self._upcoming():
            if self.recipe.time_limit_s and self.progress >= 1:
                stopped = "time"
                break
            self._learn(batch)
            if self.step % self.recipe.checkpoint_steps == 0:
                self._note()
                self._save("")
        self._note()
        self._save(stopped)
        return stopped

    def _upcoming(self) -> Iterator[list[Example]]:
        while self.step < self.steps:
            epoch, done = divmod(self.step, self.per_epoch)
            for batch in batches(self.examples, self.recipe.batch, seed=self.recipe.seed, epoch=epoch)[done:]:
                if self.step >= self.steps:
                    return
                yield batch

    def _learn(self, batch: Sequence[Example]) -> None:
        began = time.monotonic()
        share = rate(max(self.progress, (self.step + 1) / (self.steps + 1)), self.recipe.warm_up)
        rates = (self.recipe.learning_rate, self.recipe.head_rate)
        for group, height in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = height * share
        value = loss(self.model, batch)
        value.backward()  # type: ignore[no-untyped-call]
        trained = [one for group in self.optimizer.param_groups for one in group["params"]]
        norm = torch.nn.utils.clip_grad_norm_(trained, self.recipe.max_grad_norm)
        if not (math.isfinite(value.item()) and math.isfinite(float(norm))):
            raise Diverged(f"the loss of step {self.step + 1} is no number: choose a smaller --learning-rate")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        size = len(batch) * max(len(example.window) for example in batch)
        self.tokens += size
        self.speeds = [*self.speeds[1 - SPEED_STEPS :], (size, time.monotonic() - began)]
        self.history.append(
            Point(step=self.step, epoch=self._epoch(), loss=value.item(), rate=self.recipe.learning_rate * share)
        )
        self._tell(value.item())

    def _note(self) -> None:
        """Measure the loss on what was kept back."""
        with torch.inference_mode():
            groups = batches(self.held_out, self.recipe.batch, seed=0, epoch=0)
            total = sum(loss(self.model, group).item() * len(group) for group in groups)
        held_out = total / len(self.held_out)
        self.history.append(Point(step=self.step, epoch=self._epoch(), validation_loss=held_out))
        lately = [point.loss for point in self.history[-self.recipe.checkpoint_steps - 1 :] if point.loss is not None]
        self._tell(note=f"step {self.step}: loss {np.mean(lately):.3f} lately, {held_out:.3f} on what was kept back")

    def _epoch(self) -> float:
        return self.step / self.per_epoch

    def _tell(self, value: float = math.nan, note: str = "") -> None:
        tokens, seconds = sum(one for one, _ in self.speeds), sum(one for _, one in self.speeds)
        trained_s, done = self.spent_s - self.begun_s, self.progress
        self.on_progress(
            Progress(
                "training",
                self.step,
                self.steps,
                self._epoch(),
                value,
                self.optimizer.param_groups[0]["lr"],
                tokens / seconds if seconds else 0.0,
                trained_s * (1 - done) / done if done > 0 else None,
                note,
            )
        )

    def _save(self, stopped: Stop) -> None:
        state = State(
            fixed=self.fixed,
            step=self.step,
            spent_s=self.spent_s,
            begun_s=self.begun_s,
            measure_s=0.0,
            tokens=self.tokens,
            history=tuple(self.history),
            stopped=stopped,
        )
        trained = self.model.trained()
        tensors = {f"reader.{name}": trained[name].detach().clone().contiguous() for name in self.names}
        tensors |= checkpoint.optimizer_tensors(self.optimizer, self.names)
        checkpoint.save(self.folder, Checkpoint(state, tensors))

    def restore(self) -> None:
        """Go on from the last checkpoint.

        Raises:
            BadCheckpoint: there is none, or it is of another training.
        """
        last = checkpoint.last(self.folder, lambda why: self._tell(note=why))
        checkpoint.check(last.state, self.fixed)
        saved, trained = last.part("reader"), self.model.trained()
        if set(saved) != set(trained):
            raise BadCheckpoint(f"the checkpoint of step {last.state.step} is of another model")
        with torch.no_grad():
            for name, tensor in saved.items():
                trained[name].copy_(tensor)
        checkpoint.restore_optimizer(self.optimizer, self.names, last.part("optimizer"))
        self.step, self.tokens = last.state.step, last.state.tokens
        self.spent_before_s, self.begun_s = last.state.spent_s, last.state.begun_s
        self.history = list(last.state.history)
