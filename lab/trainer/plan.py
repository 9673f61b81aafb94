"""The tokenized data of a fine-tuning run, and its steps."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from lab.trainer import dataset
from lab.trainer.batches import common_prefix, epoch_batches
from lab.trainer.dataset import Example
from lab.trainer.encode import Encoded, encode
from lab.trainer.errors import BadDataset
from lab.trainer.model import Base
from lab.trainer.recipe import Recipe
from lab.trainer.run import OnProgress


@dataclass(frozen=True, slots=True)
class Data:
    """Tokens to learn from and to measure by; and how many examples were left out for their length."""

    train: list[Encoded]
    validation: list[Encoded]
    scored: list[Encoded]
    long_prompts: int
    long_completions: int
    prefix: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Step:
    """The batches of one step, and how many epochs are done after it."""

    batches: list[list[Encoded]]
    epoch: float
    ends_epoch: bool


def prepare(examples: Sequence[Example], base: Base, recipe: Recipe, on_progress: OnProgress = lambda _: None) -> Data:
    """Tokenize and split.

    Raises:
        BadDataset: nothing is left to learn from or to measure by.
        BadModel: the tokenizer has no chat template.
    """
    limits = {"max_prompt_tokens": recipe.max_prompt_tokens, "max_completion_tokens": recipe.max_completion_tokens}
    encoding = encode(examples, base.tokenizer, **limits, on_progress=on_progress)
    train, kept_back = dataset.split(
        encoding.kept, lambda item: dataset.group_of(item.example), share=recipe.validation_share, seed=recipe.seed
    )
    if not train or not kept_back:
        raise BadDataset(
            f"of {len(examples)} examples {len(train)} are left to learn from and {len(kept_back)} to "
            "measure by: give more examples of more groups, or longer limits"
        )
    chooser = random.Random(recipe.seed)  # noqa: S311 - repeatable is the point
    validation = chooser.sample(kept_back, min(len(kept_back), recipe.validation_examples))
    return Data(
        train=train,
        validation=validation,
        scored=validation[: recipe.score_examples],
        long_prompts=encoding.long_prompts,
        long_completions=encoding.long_completions,
        prefix=common_prefix([*train, *validation]),
        sha256=dataset.fingerprint(examples),
    )


def plan(data: Data, recipe: Recipe) -> list[Step]:
    """All steps of a run, the same for the same data and recipe."""
    steps: list[Step] = []
    for epoch in range(math.ceil(recipe.epochs)):
        batches = epoch_batches(
            data.train, max_tokens=recipe.max_batch_tokens, prefix=data.prefix, seed=recipe.seed, epoch=epoch
        )
        groups = [batches[start : start + recipe.accumulation] for start in range(0, len(batches), recipe.accumulation)]
        count = max(1, round(len(groups) * min(1.0, recipe.epochs - epoch)))
        for index, group in enumerate(groups[:count], 1):
            steps.append(Step(group, epoch + index / len(groups), ends_epoch=index == count))
    return steps
