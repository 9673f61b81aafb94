"""The reader in training: an adapter of the bundled MiniLM with a head, its windows, and their loss."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig
from torch import Tensor
from torch.nn.functional import cross_entropy, pad
from transformers import BertModel

from lab.trainer.errors import BadModel
from lab.trainer.lora import quicken, with_adapter
from lab.trainer.model import misfit
from lab.trainer.pairs import Pair
from lab.trainer.recipe import ReaderRecipe
from services.kit.reader import END, IMPOSSIBLE, MAX_SPAN_TOKENS, NOTHING, START, Layout, Tokens, Window, padded

ADAPTER = "default"
# Every linear layer of the encoder; the pooler is not read.
TARGETS = ("query", "key", "value", "dense")
# Windows whose order is by length within, and by chance among each other.
POOLED_BATCHES = 32


@dataclass(frozen=True, slots=True)
class Example:
    """A window, and the place of the answer among its tokens; None where it is not in there."""

    window: Window
    opens: Tensor
    closes: Tensor
    span: tuple[int, int] | None


class Model(torch.nn.Module):
    """The encoder with its adapter, in the number format that trains fastest here, and the head in fp32."""

    def __init__(self, folder: Path, recipe: ReaderRecipe, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(recipe.seed)
        encoder: Any = BertModel.from_pretrained(
            folder,
            # Made-up data does not run out: it needs no dropout, whose masks a resumed run would have to repeat.
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        # Unused; transformers would report its weights as unexpected if the model were loaded without it.
        encoder.pooler = None
        self.scale = recipe.alpha / recipe.rank
        config = LoraConfig(r=recipe.rank, lora_alpha=recipe.alpha, target_modules=list(TARGETS), lora_dropout=0.0)
        self.encoder = with_adapter(encoder.to(dtype), config)
        quicken(self.encoder, 0.0)
        width = encoder.config.hidden_size
        self.head = torch.nn.Linear(width, 3)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, windows: Sequence[Window]) -> Tensor:
        """The head's values, shape (windows, longest, 3)."""
        ids, mask, types = (torch.from_numpy(part).to(self.head.weight.device) for part in padded(windows))
        states = self.encoder(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        values: Tensor = self.head(states.float())
        return values

    def set_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Replace what is learnt by weights as `tensors` gives them.

        Raises:
            BadModel: they are of another encoder or of another rank.
        """
        own = self.tensors()
        if problem := misfit(tensors, own):
            raise BadModel(f"the reader to begin with does not fit: {problem}")
        with torch.no_grad():
            for name, one in self.trained().items():
                stored, scale = self._stored(name)
                one.copy_(tensors[stored].to(one.dtype) / scale)

    def trained(self) -> dict[str, torch.nn.Parameter]:
        """What is learnt, by name."""
        return {name: one for name, one in self.named_parameters() if one.requires_grad}

    def tensors(self) -> dict[str, Tensor]:
        """The weights as `Reader` reads them."""
        tensors: dict[str, Tensor] = {}
        for name, one in self.trained().items():
            stored, scale = self._stored(name)
            scaled = one.detach() * scale
            tensors[stored] = (scaled if stored.startswith("head.") else scaled.half()).contiguous()
        return tensors

    def _stored(self, name: str) -> tuple[str, float]:
        """What a parameter is called among the weights, and what it is multiplied by there."""
        for suffix, letter, scale in (("lora_A", "a", 1.0), ("lora_B", "b", self.scale)):
            layer, adapted, _ = name.removeprefix("encoder.base_model.model.").partition(f".{suffix}.{ADAPTER}.weight")
            if adapted:
                return f"{layer}.{letter}", scale
        return name, 1.0


def encode(layout: Layout, items: Sequence[Pair], recipe: ReaderRecipe) -> list[Example]:
    """One window of each pair: with the answer in it, or any where the passage does not say.

    An answer that is too long for a span is left out.
    """
    texts = layout.tokens([text for pair in items for text in (pair.question, pair.title, pair.passage)])
    chooser = random.Random(f"windows:{recipe.seed}")  # noqa: S311 - repeatable is the point
    untitled = layout.tokens([""])[0]
    examples: list[Example] = []
    for index, pair in enumerate(items):
        question, title, passage = texts[3 * index : 3 * index + 3]
        windows = layout.windows(question, title if chooser.random() < recipe.titles else untitled, passage)
        place = _place(passage, pair) if pair.answer else None
        if not windows or (pair.answer and place is None):
            continue
        if place is None:
            examples.append(_example(chooser.choice(windows), passage, None))
        elif holding := [one for one in windows if one.at <= place[0] and place[1] < one.at + _passage_tokens(one)]:
            window = chooser.choice(holding)
            inside = window.first - window.at
            examples.append(_example(window, passage, (place[0] + inside, place[1] + inside)))
    return examples


def _place(passage: Tokens, pair: Pair) -> tuple[int, int] | None:
    """First and last token of the answer, whole words; None where it has no token or too many."""
    end = pair.start + len(pair.answer)
    over = np.flatnonzero((passage.ends > pair.start) & (passage.starts < end))
    if not len(over):
        return None
    first, last = int(over[0]), int(over[-1])
    while first > 0 and not passage.opens[first]:
        first -= 1
    while last < len(passage) - 1 and not passage.closes[last]:
        last += 1
    return (first, last) if last - first < MAX_SPAN_TOKENS else None


def _passage_tokens(window: Window) -> int:
    return len(window) - window.first - 1


def _example(window: Window, passage: Tokens, span: tuple[int, int] | None) -> Example:
    tokens = slice(window.at, window.at + _passage_tokens(window))
    sides = (window.first, 1)
    flags = [pad(torch.from_numpy(one[tokens]), sides) for one in (passage.opens, passage.closes)]
    return Example(window, flags[0], flags[1], span)


def loss(model: Model, batch: Sequence[Example]) -> Tensor:
    """Mean over the examples of the surprise, in nats, at the span or at "does not say", among all of both."""
    values = model([example.window for example in batch])
    longest = values.shape[1]
    opens, closes = (
        torch.stack([pad(flags, (0, longest - len(flags))) for flags in side]).to(values.device)
        for side in ([example.opens for example in batch], [example.closes for example in batch])
    )
    begin = values[:, :, START].masked_fill(~opens, IMPOSSIBLE)
    end = pad(values[:, :, END].masked_fill(~closes, IMPOSSIBLE), (0, MAX_SPAN_TOKENS - 1), value=IMPOSSIBLE)
    spans = begin[:, :, None] + end.unfold(1, MAX_SPAN_TOKENS, 1)
    every = torch.cat([values[:, :1, NOTHING], spans.flatten(1)], dim=1)
    targets = [
        0 if example.span is None else 1 + example.span[0] * MAX_SPAN_TOKENS + example.span[1] - example.span[0]
        for example in batch
    ]
    return cross_entropy(every, torch.tensor(targets, device=every.device))


def batches(examples: Sequence[Example], size: int, *, seed: int, epoch: int) -> list[list[Example]]:
    """Batches of about equal length in a random order, the same for a seed and an epoch."""
    chooser = random.Random(f"{seed}:{epoch}")  # noqa: S311 - repeatable is the point
    order = list(range(len(examples)))
    chooser.shuffle(order)
    groups: list[list[Example]] = []
    for start in range(0, len(order), size * POOLED_BATCHES):
        pool = sorted(order[start : start + size * POOLED_BATCHES], key=lambda index: len(examples[index].window))
        groups += [[examples[index] for index in pool[at : at + size]] for at in range(0, len(pool), size)]
    chooser.shuffle(groups)
    return groups
