"""Supervised fine-tuning of one adapter: steps, measurements, checkpoints, and going on after a kill."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from pydantic import JsonValue
from torch import Tensor

from lab.trainer import adapter
from lab.trainer.attention import sharing
from lab.trainer.batches import collate
from lab.trainer.checkpoint import Checkpoint, Point, State
from lab.trainer.dataset import Example
from lab.trainer.errors import BadDataset, Diverged
from lab.trainer.measure import batch_loss, replies, validation_loss
from lab.trainer.model import Base, Learner, adapt, set_weights, weights
from lab.trainer.plan import Data, Step, plan, prepare
from lab.trainer.recipe import Recipe
from lab.trainer.run import CHECKPOINTS, OnProgress, Progress, Run, without_denormals
from lab.trainer.score import Scorer, Scores, scorer_of

# The end's measurement may take so much longer than the first, which shared the machine with nothing else of ours.
MEASURE_MARGIN = 1.3


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run."""

    learner: Learner
    data: Data
    recipe: Recipe
    state: State
    best: dict[str, Tensor]

    @property
    def start(self) -> str:
        """The adapter that the run went on from, by name and SHA-256; empty when it began with a new one."""
        return str(self.state.fixed["start"])

    @property
    def before(self) -> Point:
        """What the run began with, measured: the base model, or the adapter that it went on from."""
        return next(point for point in self.state.history if point.score is not None)

    @property
    def after(self) -> Point:
        """The adapter that is kept, measured."""
        measured = (point for point in self.state.history if point.score is not None)
        return next(point for point in measured if point.step == self.state.best_step)


def fixed(base: Base, data: Data, recipe: Recipe, start: Path | None) -> dict[str, JsonValue]:
    """What must be the same for a run to go on.

    Raises:
        BadModel: the adapter to begin with cannot be read.
    """
    began = f"{start.resolve().name} {adapter.digest(start)}" if start else ""
    model = {"base": base.name, "weights": base.fingerprint, "four_bit": base.four_bit}
    return {**model, "data": data.sha256, "start": began, **recipe.fixed()}  # type: ignore[dict-item]


def train(
    base: Base,
    examples: Sequence[Example],
    recipe: Recipe,
    folder: Path,
    *,
    resume: bool = False,
    start: Path | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Result:
    """Train an adapter.

    Args:
        folder: checkpoints are kept in it.
        resume: go on from the last checkpoint there, which must be of the same training; without one begin.
        start: an adapter to begin with instead of a new one.
        on_progress: told of every step, measurement and finding.

    Raises:
        TrainerError: why it ended before the last step. The last checkpoint is whole.
    """
    began = time.monotonic()
    tasks = {example.task for example in examples}
    if len(tasks) != 1:
        raise BadDataset(f"one adapter learns one task, and the examples are of {', '.join(sorted(tasks)) or 'none'}")
    data = prepare(examples, base, recipe, on_progress)
    learner = adapt(base, recipe)
    if start:
        set_weights(learner, adapter.read(start, learner))
    parameters, planned = learner.parameters, plan(data, recipe)
    run = _Run(
        recipe=recipe,
        folder=folder / CHECKPOINTS,
        state=State(fixed=fixed(base, data, recipe, start), number_format=base.number_format),
        on_progress=on_progress,
        began=began,
        steps=len(planned),
        parameters=parameters,
        optimizer=torch.optim.AdamW(parameters.values(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay),
        planned=planned,
        learner=learner,
        data=data,
        scorer=scorer_of(tasks.pop()),
        # What fp16 cannot hold of small gradients it holds of larger ones; other formats need no scale.
        scaler=torch.amp.GradScaler(base.device.type, enabled=base.model.dtype is torch.float16),
    )
    run.begin(resume=resume)
    with without_denormals():
        run.go()
    return Result(learner, data, recipe, run.state, run.best)


@dataclass(slots=True, kw_only=True)
class _Run(Run):
    recipe: Recipe
    planned: list[Step]
    learner: Learner
    data: Data
    scorer: Scorer
    best: dict[str, Tensor] = field(default_factory=dict)

    @property
    def epoch(self) -> float:
        return self.planned[self.state.step - 1].epoch if self.state.step else 0.0

    @property
    def steps_s(self) -> float:
        limit_s, state = self.recipe.time_limit_s, self.state
        return max(1.0, limit_s - MEASURE_MARGIN * state.measure_s - state.begun_s) if limit_s else 0.0

    def go(self) -> None:
        recipe, state = self.recipe, self.state
        if not state.history:
            self._measure(scored=True)
            state.begun_s = self.spent_s
        while state.step < self.steps and not state.stopped:
            step = self.planned[state.step]
            self._learn(step)
            if state.step == self.steps:
                state.stopped = "epochs"
            elif recipe.time_limit_s and self.progress >= 1:
                state.stopped = "time"
            if step.ends_epoch or state.stopped:
                self._measure(scored=True)
            elif recipe.validation_steps and state.step % recipe.validation_steps == 0:
                self._measure(scored=False)
            if state.stopped or state.step % recipe.checkpoint_steps == 0:
                self._save()
        self.count_time()

    def _learn(self, step: Step) -> None:
        learner = self.learner
        learner.adapted.train()
        if learner.masks:
            learner.masks.draw()
        examples = sum(map(len, step.batches))
        began, tokens, total = time.monotonic(), 0, 0.0
        with sharing(learner.plain):
            for items in step.batches:
                batch = collate(items, learner.base.device)
                loss = batch_loss(learner, batch) / examples
                self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
                total += loss.item()
                tokens += batch.size
        self.descend(total, tokens, began)

    def _measure(self, *, scored: bool) -> None:
        began = time.monotonic()
        recipe, data, state = self.recipe, self.data, self.state
        total = len(data.validation) + (len(data.scored) if scored else 0)
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self.on_progress(Progress("measuring", done, total, self.epoch))

        loss = validation_loss(
            self.learner, data.validation, max_tokens=recipe.max_batch_tokens, prefix=data.prefix, on_progress=advance
        )
        if not math.isfinite(loss):
            raise Diverged(f"the validation loss at step {state.step} is no number: choose a smaller --learning-rate")
        scores: Scores | None = None
        if scored:
            texts = replies(self.learner, data.scored, max_tokens=recipe.max_batch_tokens, on_progress=advance)
            scores = self.scorer([item.example for item in data.scored], texts)
            state.measure_s = max(state.measure_s, time.monotonic() - began)
        earlier = [point.validation_loss for point in state.history if point.validation_loss is not None]
        state.waited = 0 if not earlier or loss < min(earlier) else state.waited + 1
        point = Point(step=state.step, epoch=self.epoch, validation_loss=loss, score=scores)
        if scores is not None and state.step and self._is_best(point):
            state.best_step, self.best = state.step, weights(self.learner)
        state.history.append(point)
        words = f"step {state.step}: validation loss {loss:.4f}"
        if scores is not None:
            words += ", " + ", ".join(f"{name} {value:+.3f}" for name, value in scores.items())
        self.tell(note=words)
        if recipe.patience and state.waited >= recipe.patience and not state.stopped:
            state.stopped = "patience"
            if not scored:
                self._measure(scored=True)

    def _is_best(self, point: Point) -> bool:
        best = next((one for one in self.state.history if one.score and one.step == self.state.best_step), None)
        return best is None or _worth(point) > _worth(best)

    def _save(self) -> None:
        self.state.scaler = self.scaler.state_dict()
        tensors = {f"adapter.{name}": tensor for name, tensor in weights(self.learner).items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        tensors["rng.cpu"] = torch.get_rng_state()
        if self.learner.base.device.type == "cuda":
            tensors["rng.cuda"] = torch.cuda.get_rng_state(self.learner.base.device)
        self.save(tensors)

    def restore(self, saved: Checkpoint) -> None:
        set_weights(self.learner, saved.part("adapter"))
        self.best = saved.part("best")
        device, random_states = self.learner.base.device, saved.part("rng")
        torch.set_rng_state(random_states["cpu"])
        if device.type == "cuda" and "cuda" in random_states:
            torch.cuda.set_rng_state(random_states["cuda"], device)
        if self.state.scaler and self.scaler.is_enabled():
            self.scaler.load_state_dict(self.state.scaler)
        begun, now = self.state.number_format, self.learner.base.number_format
        if begun != now:
            self.tell(note=f"begun in {begun}, going on in {now}: the steps are others")


def _worth(point: Point) -> tuple[float, float]:
    """What decides between two measured adapters: the score, then the loss."""
    return (point.score or {}).get("score", -math.inf), -(point.validation_loss or math.inf)
