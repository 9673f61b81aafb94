"""Batches of about equal length, bounded by tokens; the same for a seed and an epoch."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import Tensor

from lab.trainer.encode import Encoded

# Batches whose examples are sorted together: enough that rows of a batch are of one length, few enough that the
# lengths of neighbouring steps stay mixed.
POOLED_BATCHES = 48
# Prompts with so much in common behind what all prompts begin with, and so many tokens, stand in batches of their own.
ALIKE, MIN_ALIKE = 0.6, 64


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that begin with the same `prefix` tokens, laid out as `attention` says.

    Attributes:
        tokens: shape (1, prefix + rows x length).
        positions: of the tokens within their rows, same shape.
        answers: places in `tokens` whose next token belongs to a reply, shape (n).
        targets: those next tokens, shape (n).
        weights: 1 / (reply tokens of the example), shape (n): every example counts the same, as it does in the score.
    """

    tokens: Tensor
    positions: Tensor
    answers: Tensor
    targets: Tensor
    weights: Tensor
    prefix: int
    rows: int

    @property
    def size(self) -> int:
        """Tokens that are computed, padding included."""
        return int(self.tokens.numel())


def common_prefix(items: Sequence[Encoded]) -> int:
    """How many tokens all prompts begin with; at least the last token of each prompt stays outside."""
    first, length = items[0].prompt, min(len(item.prompt) for item in items) - 1
    differing = (at for at in range(length) if any(item.prompt[at] != first[at] for item in items))
    return next(differing, max(0, length))


def collate(items: Sequence[Encoded], device: torch.device | None = None) -> Batch:
    """One batch of these examples, on the CPU by default.

    Padding stands behind the rows, where causal attention lets nothing see it.
    """
    prefix = common_prefix(items)
    length = max(map(len, items)) - prefix
    rows: list[int] = []
    answers: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    for index, item in enumerate(items):
        rest = (*item.prompt[prefix:], *item.completion)
        rows.extend((*rest, *[0] * (length - len(rest))))
        # The token at a place predicts the next one; the last of the prompt predicts the first of the reply.
        first = prefix + index * length + len(item.prompt) - prefix - 1
        answers.extend(range(first, first + len(item.completion)))
        targets.extend(item.completion)
        weights.extend([1 / len(item.completion)] * len(item.completion))
    places = torch.arange(prefix, prefix + length).repeat(len(items))
    return Batch(
        tokens=torch.tensor([[*items[0].prompt[:prefix], *rows]], device=device),
        positions=torch.cat((torch.arange(prefix), places))[None].to(device),
        answers=torch.tensor(answers, device=device),
        targets=torch.tensor(targets, device=device),
        weights=torch.tensor(weights, dtype=torch.float32, device=device),
        prefix=prefix,
        rows=len(items),
    )


def epoch_batches(
    items: Sequence[Encoded], *, max_tokens: int, prefix: int, seed: int, epoch: int
) -> list[list[Encoded]]:
    """All examples once, in batches of at most `max_tokens` computed tokens each, in random order.

    Args:
        prefix: what all prompts of the set begin with, in tokens.
    """
    order = random.Random(f"{seed}:{epoch}")  # noqa: S311 - repeatable is the point
    shuffled = list(items)
    order.shuffle(shuffled)
    mean = sum(map(len, shuffled)) / len(shuffled) - prefix
    pooled = max(1, round(POOLED_BATCHES * max_tokens / max(1.0, mean)))
    batches, others = _bundled(shuffled, max_tokens, prefix)
    for start in range(0, len(others), pooled):
        batches += _filled(others[start : start + pooled], max_tokens, prefix)
    order.shuffle(batches)
    return batches


def packed(items: Sequence[Encoded], *, max_tokens: int, prefix: int) -> list[list[Encoded]]:
    """All examples in batches of at most `max_tokens` computed tokens, one example at least.

    Args:
        prefix: what all prompts of the set begin with, in tokens.
    """
    batches, others = _bundled(items, max_tokens, prefix)
    return [*batches, *_filled(others, max_tokens, prefix)]


def _bundled(items: Sequence[Encoded], max_tokens: int, prefix: int) -> tuple[list[list[Encoded]], list[Encoded]]:
    """Batches of examples whose prompts are the same but for their ends, as questions about one document are; the rest.

    What such a batch has in common is computed once: ten questions about a passage cost as much as two.
    """
    bundles: list[list[Encoded]] = []
    for item in sorted(items, key=attrgetter("prompt")):
        enough = max(MIN_ALIKE, ALIKE * (len(item.prompt) - prefix))
        if bundles and common_prefix((bundles[-1][0], item)) - prefix >= enough:
            bundles[-1].append(item)
        else:
            bundles.append([item])
    lonely = {id(bundle[0]) for bundle in bundles if len(bundle) == 1}
    several = (bundle for bundle in bundles if len(bundle) > 1)
    batches = [batch for bundle in several for batch in _filled(bundle, max_tokens, common_prefix(bundle))]
    return batches, [item for item in items if id(item) in lonely]


def _filled(items: Sequence[Encoded], max_tokens: int, prefix: int) -> list[list[Encoded]]:
    """The examples by length, in batches of at most `max_tokens` computed tokens, one example at least."""
    batches: list[list[Encoded]] = []
    current: list[Encoded] = []
    for item in sorted(items, key=len):
        if current and prefix + (len(current) + 1) * (len(item) - prefix) > max_tokens:
            batches.append(current)
            current = []
        current.append(item)
    return [*batches, current] if current else batches
