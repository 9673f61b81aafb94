"""LoRA by peft, with one product per adapted layer in place of peft's chain of operations.

peft 0.21 casts the input to fp32, draws a mask for every input, multiplies twice, scales, adds and casts back. On a CPU
this takes longer than the frozen layer itself: drawing the masks alone costs as much as all matrix products. Here the
arithmetic is the same (`tests/unit/lab/trainer/test_computing.py` compares both), but products run in the base model's
number format and masks are windows of a pool that is drawn anew for each step.
"""

import warnings
from collections.abc import Callable
from typing import Any, cast

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import Linear
from torch import Tensor
from torch.autograd import Function

POOL = 1 << 22


class MaskPool:
    """Random masks of dropout: windows at random places of one long vector of zeros and 1 / (1 - p)."""

    def __init__(self, p: float, dtype: torch.dtype, device: torch.device) -> None:
        self.p = p
        self._pool = torch.empty(POOL, dtype=dtype, device=device)

    def draw(self) -> None:
        """Fill the pool anew, from torch's generator, so that a checkpoint of it repeats the masks."""
        # A run that goes on knows nothing of the windows before: the pool must not keep what it grew by.
        self._pool = self._pool[:POOL]
        self._pool.bernoulli_(1 - self.p).div_(1 - self.p)

    def window(self, count: int) -> Tensor:
        """A mask of `count` values."""
        while count >= self._pool.numel():
            self._pool = torch.cat((self._pool, self._pool))
        start = int(torch.randint(self._pool.numel() - count, ()).item())
        return self._pool[start : start + count]


class _Adapted(Function):
    """x W' + b + s (x * mask) A' B', and its gradients for x, A and B; W and b are frozen."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, a: Tensor, b: Tensor, s: float, mask: Tensor | None
    ) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        mask = mask.view_as(flat) if mask is not None else None
        narrow_a, narrow_b = a.to(x.dtype), (b * s).to(x.dtype)
        inner = torch.mm(flat if mask is None else flat * mask, narrow_a.t())
        out = torch.nn.functional.linear(flat, weight, bias).addmm_(inner, narrow_b.t())
        # The masked input is one product away: kept it would double what a layer holds until its gradient.
        ctx.save_for_backward(flat, weight, narrow_a, narrow_b, inner, mask)
        ctx.s, ctx.dtype = s, a.dtype
        return out.view(*x.shape[:-1], out.shape[-1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        flat, weight, narrow_a, narrow_b, inner, mask = ctx.saved_tensors
        grad = grads[0].reshape(-1, grads[0].shape[-1])
        inner_grad = torch.mm(grad, narrow_b)
        a_grad = torch.mm(inner_grad.t(), flat if mask is None else flat * mask).to(ctx.dtype)
        b_grad = torch.mm(inner.t(), grad).t().to(ctx.dtype) * ctx.s
        x_grad = None
        if ctx.needs_input_grad[0]:
            x_grad = torch.mm(grad, weight)
            if mask is None:
                x_grad.addmm_(inner_grad, narrow_a)
            else:
                x_grad.addcmul_(torch.mm(inner_grad, narrow_a), mask)
            x_grad = x_grad.view(*grads[0].shape[:-1], x_grad.shape[-1])
        return x_grad, None, None, a_grad, b_grad, None, None


def with_adapter(model: Any, config: LoraConfig) -> PeftModel:
    """The model with a new adapter of peft's."""
    with warnings.catch_warnings():
        # peft asks transformers by a name that the latter has since changed.
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
        return cast(PeftModel, get_peft_model(model, config))


def quicken(model: PeftModel, dropout: float) -> MaskPool | None:
    """Replace the forward pass of the adapted layers by the one above; None when they are none that it can do.

    Disabled and merged adapters go peft's way, as do quantised layers.
    """
    layers = [module for module in model.modules() if isinstance(module, Linear)]
    plain = [layer for layer in layers if type(layer.get_base_layer()) is torch.nn.Linear]
    if not plain or len(plain) != len(layers):
        return None
    weight = cast(Tensor, plain[0].get_base_layer().weight)
    pool = MaskPool(dropout, weight.dtype, weight.device)
    for layer in plain:
        layer.forward = _forward(layer, pool)  # type: ignore[method-assign]
    return pool


def _forward(layer: Linear, pool: MaskPool) -> Callable[..., Tensor]:
    peft, name = layer.forward, layer.active_adapters[0]

    def forward(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if layer.disable_adapters or layer.merged:
            return peft(x, *args, **kwargs)
        base, a, b = layer.get_base_layer(), layer.lora_A[name], layer.lora_B[name]
        mask = pool.window(x.numel()) if pool.p and layer.training else None
        adapted = _Adapted.apply(  # type: ignore[no-untyped-call]
            x, base.weight, base.bias, a.weight, b.weight, layer.scaling[name], mask
        )
        return cast(Tensor, adapted)

    return forward
