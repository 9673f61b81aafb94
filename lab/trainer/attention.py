"""Attention of a batch whose rows begin alike: the common beginning is computed once, for all rows.

The tokens of a batch lie in one row of length P + B x L: the prefix that all prompts share, then B rests padded to L.
Linear layers then see P + B x L tokens in place of B x (P + L), and a row's rest attends to the prefix and to itself.
The result is that of B separate rows, since causal attention lets nothing after the prefix act on it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface

NAME = "cragmesh_shared_prefix"
# Above it the matrix of weights takes more memory than time is worth; torch's own kernel keeps none.
MAX_DENSE_KEYS = 1_536


def shared_prefix_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    *,
    prefix: int,
    rows: int,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention over the layout above.

    Args:
        query: shape (1, heads, P + B x L, d).
        key: shape (1, key-value heads, P + B x L, d).
        value: like `key`.
        prefix: P, which may be 0.
        rows: B.

    Returns:
        Shape (1, P + B x L, heads, d).
    """
    rest = _rows(query, prefix, rows)
    length = rest.shape[2]
    keys = torch.cat((key[:, :, :prefix].expand(rows, -1, -1, -1), _rows(key, prefix, rows)), dim=2)
    values = torch.cat((value[:, :, :prefix].expand(rows, -1, -1, -1), _rows(value, prefix, rows)), dim=2)
    out = _attend(rest, keys, values, scaling).transpose(1, 2).reshape(1, rows * length, query.shape[1], -1)
    if prefix:
        head = _attend(query[:, :, :prefix], key[:, :, :prefix], value[:, :, :prefix], scaling).transpose(1, 2)
        out = torch.cat((head, out), dim=1)
    return out, None


def _rows(states: Tensor, prefix: int, rows: int) -> Tensor:
    """(1, heads, P + B x L, d) -> (B, heads, L, d)."""
    _, heads, _, size = states.shape
    return states[0, :, prefix:].reshape(heads, rows, -1, size).transpose(0, 1)


def _attend(query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
    """Causal attention of the last L of K places: (B, heads, L, d) from keys (B, key-value heads, K, d)."""
    length, places = query.shape[2], key.shape[2]
    hidden = torch.ones(length, places, dtype=torch.bool, device=query.device).triu_(places - length + 1)
    if query.device.type != "cpu" or places > MAX_DENSE_KEYS:
        # Of its kernels the plain one: the others, which it would choose on an H100, gave gradients that are no numbers
        # (torch 2.11, bf16, within twenty steps).
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(query, key, value, attn_mask=~hidden, scale=scaling, enable_gqa=True)
    rows, heads, _, size = query.shape
    groups = heads // key.shape[1]
    # The query heads of one key head stand one below the other, so that no key is copied for them.
    stacked = query.reshape(rows * key.shape[1], groups * length, size)
    bias = torch.zeros(length, places, dtype=query.dtype).masked_fill_(hidden, float("-inf")).repeat(groups, 1)
    keys, values = (states.reshape(-1, places, size) for states in (key, value))
    # On a CPU torch's own kernel takes four times as long as these plain products, forwards and back.
    weights = torch.softmax(torch.baddbmm(bias, stacked, keys.transpose(1, 2), alpha=scaling), dim=-1)
    return torch.bmm(weights, values).view(rows, heads, length, size)


def _no_mask(*_: Any, **__: Any) -> None:
    """The layout says what may be seen."""


AttentionInterface.register(NAME, shared_prefix_attention)
AttentionMaskInterface.register(NAME, _no_mask)


@contextmanager
def sharing(model: PreTrainedModel) -> Iterator[None]:
    """Within it the model reads the layout above, told `prefix` and `rows`; outside it reads plain rows."""
    before = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(before)
