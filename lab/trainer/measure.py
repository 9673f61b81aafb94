"""Measures of an adapter: the loss on held-out examples, and greedy replies for the task score."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lab.trainer.attention import sharing
from lab.trainer.batches import Batch, collate, packed
from lab.trainer.encode import Encoded
from lab.trainer.model import Learner

# Longer than the longest taught reply by so many tokens a reply may be before it is cut.
SPARE_TOKENS = 8


def batch_loss(learner: Learner, batch: Batch) -> Tensor:
    """The sum over a batch's examples of the mean loss of their reply's tokens, in nats.

    The vocabulary's values are computed at the places of replies only: at all places of a long prompt they would take
    more memory than everything else (49,152 words in fp32 are 192 KiB a token).

    The model must be `sharing`.
    """
    hidden = learner.decoder(
        input_ids=batch.tokens, position_ids=batch.positions, use_cache=False, prefix=batch.prefix, rows=batch.rows
    ).last_hidden_state[0]
    values = learner.head(hidden[batch.answers]).float()
    return (cross_entropy(values, batch.targets, reduction="none") * batch.weights).sum()


def validation_loss(
    learner: Learner,
    items: Sequence[Encoded],
    *,
    max_tokens: int,
    prefix: int,
    on_progress: Callable[[int], None] = lambda _: None,
) -> float:
    """Mean over the examples of their reply's mean loss, without dropout."""
    learner.adapted.eval()
    total = 0.0
    with torch.inference_mode(), sharing(learner.plain):
        for group in packed(items, max_tokens=max_tokens, prefix=prefix):
            total += batch_loss(learner, collate(group, learner.base.device)).item()
            on_progress(len(group))
    return total / len(items)


def replies(
    learner: Learner, items: Sequence[Encoded], *, max_tokens: int, on_progress: Callable[[int], None] = lambda _: None
) -> list[str]:
    """Greedy replies to the examples' prompts, in order; at most a little longer than the longest that was taught.

    Args:
        max_tokens: of a batch, prompts and replies together; one example at least.
    """
    learner.adapted.eval()
    tokenizer = learner.base.tokenizer
    end = tokenizer.eos_token_id
    most = max(len(item.completion) for item in items) + SPARE_TOKENS
    order = sorted(range(len(items)), key=lambda index: len(items[index].prompt))
    texts = [""] * len(items)
    while order:
        rows = max(1, max_tokens // (len(items[order[0]].prompt) + most))
        # The longest of the batch is its last; what it takes decides how many fit.
        while rows > 1 and rows * (len(items[order[:rows][-1]].prompt) + most) > max_tokens:
            rows -= 1
        batch, order = order[:rows], order[rows:]
        length = max(len(items[index].prompt) for index in batch)
        tokens = torch.full((len(batch), length), end)
        mask = torch.zeros((len(batch), length), dtype=torch.long)
        for row, index in enumerate(batch):
            prompt = items[index].prompt
            tokens[row, length - len(prompt) :] = torch.tensor(prompt)
            mask[row, length - len(prompt) :] = 1
        with torch.inference_mode():
            generated = learner.adapted.generate(  # type: ignore[no-untyped-call]
                input_ids=tokens.to(learner.base.device),
                attention_mask=mask.to(learner.base.device),
                max_new_tokens=most,
                do_sample=False,
                use_cache=True,
                eos_token_id=end,
                pad_token_id=end,
            )
        completions = tokenizer.batch_decode(generated[:, length:].cpu(), skip_special_tokens=True)
        for index, text in zip(batch, completions, strict=True):
            texts[index] = text.strip()
        on_progress(len(batch))
    return texts
