"""Training of the extractive reader: an adapter of the bundled MiniLM and a head, as `services/kit/reader.py` says.

The adapter's products (rank 16 on all linear layers) and the head are what ships, a few MB.
"""

import hashlib
import math
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from pydantic import JsonValue

from lab.trainer import dataset, files, near, pairs
from lab.trainer.checkpoint import Checkpoint, Point, State, Stop
from lab.trainer.errors import BadCheckpoint, BadDataset, BadModel
from lab.trainer.model import number_format
from lab.trainer.pairs import Pair
from lab.trainer.reader_measure import BESIDE, content, measured
from lab.trainer.reader_model import Example, Model, batches, encode, loss
from lab.trainer.recipe import ReaderRecipe
from lab.trainer.run import CHECKPOINTS, OnProgress, Progress, Run, without_denormals
from services.kit.encoder import bundled_model, fingerprint
from services.kit.reader import CARD, MAX_SPAN_TOKENS, WEIGHTS, Card, Layout

DRAFT = "unmeasured"
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
    recipe: ReaderRecipe,
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
    trained = model.trained()
    head = {name: one for name, one in trained.items() if name.startswith("head.")}
    encoder = {name: one for name, one in trained.items() if name not in head}
    groups = [
        {"params": [*part.values()], "lr": height}
        for part, height in ((encoder, recipe.learning_rate), (head, recipe.head_rate))
    ]
    run = _Run(
        recipe=recipe,
        folder=folder / CHECKPOINTS,
        state=State(fixed=fixed),
        on_progress=on_progress,
        began=began,
        steps=max(1, round(math.ceil(len(examples) / recipe.batch) * recipe.epochs)),
        parameters=encoder | head,
        optimizer=torch.optim.AdamW(groups, weight_decay=0.0),
        model=model,
        examples=examples,
        held_out=encode(layout, held_out, recipe),
    )
    run.begin(resume=resume)
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
    return Result(card, run.state.step, stopped, len(training), len(training) - len(examples))


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


@dataclass(slots=True, kw_only=True)
class _Run(Run):
    recipe: ReaderRecipe
    model: Model
    examples: list[Example]
    held_out: list[Example]

    @property
    def per_epoch(self) -> int:
        return math.ceil(len(self.examples) / self.recipe.batch)

    @property
    def epoch(self) -> float:
        return self.state.step / self.per_epoch

    @property
    def steps_s(self) -> float:
        limit_s = self.recipe.time_limit_s * (1 - MEASURE_SHARE)
        return max(1.0, limit_s) if limit_s else 0.0

    def go(self) -> Stop:
        if not self.state.step:
            self.state.begun_s = self.spent_s
        stopped: Stop = "epochs"
        for batch in self._upcoming():
            if self.recipe.time_limit_s and self.progress >= 1:
                stopped = "time"
                break
            self._learn(batch)
            if self.state.step % self.recipe.checkpoint_steps == 0:
                self._save()
        self.state.stopped = stopped
        self._save()
        return stopped

    def _upcoming(self) -> Iterator[list[Example]]:
        while self.state.step < self.steps:
            epoch, done = divmod(self.state.step, self.per_epoch)
            left = batches(self.examples, self.recipe.batch, seed=self.recipe.seed, epoch=epoch)[done:]
            yield from left[: self.steps - self.state.step]

    def _learn(self, batch: Sequence[Example]) -> None:
        began, value = time.monotonic(), loss(self.model, batch)
        value.backward()  # type: ignore[no-untyped-call]
        self.descend(value.item(), len(batch) * max(len(example.window) for example in batch), began)

    def _save(self) -> None:
        """Measure the loss on what was kept back, and write a checkpoint."""
        state = self.state
        with torch.inference_mode():
            groups = batches(self.held_out, self.recipe.batch, seed=0, epoch=0)
            total = sum(loss(self.model, group).item() * len(group) for group in groups)
        held_out = total / len(self.held_out)
        state.history.append(Point(step=state.step, epoch=self.epoch, validation_loss=held_out))
        lately = [point.loss for point in state.history[-self.recipe.checkpoint_steps - 1 :] if point.loss is not None]
        self.tell(note=f"step {state.step}: loss {np.mean(lately):.3f} lately, {held_out:.3f} on what was kept back")
        self.save({f"reader.{name}": one.detach().clone().contiguous() for name, one in self.parameters.items()})

    def restore(self, saved: Checkpoint) -> None:
        tensors = saved.part("reader")
        if set(tensors) != set(self.parameters):
            raise BadCheckpoint(f"the checkpoint of step {self.state.step} is of another model")
        with torch.no_grad():
            for name, tensor in tensors.items():
                self.parameters[name].copy_(tensor)
