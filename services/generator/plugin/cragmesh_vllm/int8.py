"""Products by int8 weights on a CPU: by oneDNN where the CPU has VNNI, by FBGEMM where it has not.

Without VNNI a CPU multiplies bytes in pairs and sums each pair in 16 bits, which saturate. Inputs are held in bytes of
0 to 255, so a pair of products stays within 16 bits where its weights of one sign sum to at most 128. FBGEMM's kernels
for AVX2 and AVX-512 (Khudia et al. 2021, arXiv:2101.05615) are then exact; rows of weights that exceed it are held in a
coarser scale. oneDNN's results on such a CPU are no products of its weights.
"""

import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

import torch
from vllm import _custom_ops as ops

# By the launcher: `fbgemm` or `onednn`.
KERNEL = "CRAGMESH_INT8_KERNEL"
# Magnitudes of int8, the same on both sides of zero, and what a byte adds to have none below it.
LEVELS, ZERO = 127, 128
# Two weights of one sign, times 255, fill 16 bits. Each of the two may be rounded up by a half.
PAIR = 128
SMALLEST = 1e-8
# Row counts that oneDNN keeps compiled, as vLLM does for its own layers.
SHAPES = 32
# Weights that are worked on at a time: within a core's cache, and enough to be worth a call.
BLOCK = 262_144
# Outputs that FBGEMM packs at a time: of a vocabulary as a whole it takes four times as long for each, by one thread.
OUTPUTS = 20_000
# FBGEMM packs by one thread; so many blocks of outputs at a time.
_PACKERS = threading.BoundedSemaphore(torch.get_num_threads())

# They will be gone in a later PyTorch than the one that vLLM pins.
warnings.filterwarnings("ignore", message="torch.quantize_per_tensor, torch.quantize_per_channel", category=UserWarning)


class Int8Weights(Protocol):
    """A matrix of int8 weights, shape (outputs, inputs), with a scale for each output."""

    def multiply(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows, shape (count, inputs), float32, in int8 with a scale for each, times the weights: (count, outputs)."""

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        """The rows as int8 holds them, in float32."""


class OneDnn:
    """Weights packed by oneDNN: VNNI or AMX."""

    def __init__(self, weight: torch.Tensor, scales: torch.Tensor) -> None:
        self._outputs = len(weight)
        # The handler copies the weights, and reads the scales where they lie.
        self._scales = scales
        self._handler = ops.create_onednn_scaled_mm(weight.t(), scales, torch.float32, True, False, SHAPES)

    def multiply(self, rows: torch.Tensor) -> torch.Tensor:
        quantised, scale, _ = ops.onednn_scaled_int8_quant(rows)
        out = torch.empty(len(rows), self._outputs)
        ops.onednn_scaled_mm(self._handler, quantised, out, scale, None, None, None)
        return out

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        quantised, scale, _ = ops.onednn_scaled_int8_quant(rows)
        held: torch.Tensor = quantised * scale
        return held


class Fbgemm:
    """Weights packed by FBGEMM, in scales that keep pairs of products within 16 bits: AVX2 or AVX-512."""

    def __init__(self, weight: torch.Tensor, scales: torch.Tensor) -> None:
        blocks = zip(torch.split(weight, OUTPUTS), torch.split(scales, OUTPUTS), strict=True)
        self._packed = [_in_background(partial(_packed, *block)) for block in blocks]

    def multiply(self, rows: torch.Tensor) -> torch.Tensor:
        largest = _largest(rows)
        multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
        scaled = rows / largest
        products = [multiply(scaled, 1 / LEVELS, ZERO, packed.result()) for packed in self._packed]
        product: torch.Tensor = products[0] if len(products) == 1 else torch.cat(products, 1)
        return product.mul_(largest)

    def held(self, rows: torch.Tensor) -> torch.Tensor:
        step = _largest(rows) / LEVELS
        return (rows / step).round() * step


def pack(weight: torch.Tensor, scales: torch.Tensor) -> Int8Weights:
    """Weights ready to be multiplied by, by the library that the launcher has named.

    Args:
        weight: int8, shape (outputs, inputs).
        scales: float32, shape (outputs, 1).
    """
    return Fbgemm(weight, scales) if by_fbgemm() else OneDnn(weight, scales)


def by_fbgemm() -> bool:
    """Whether the launcher has found no VNNI on this CPU."""
    return os.environ.get(KERNEL) == "fbgemm"


def within_16_bits(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights whose pairs fit, and the factor of each row's scale: 1 where the row fitted, shape (outputs, 1)."""
    fitting = torch.nn.functional.pad(weight, (0, weight.shape[1] % 2))
    factors = torch.ones(len(weight), 1)
    count = max(1, BLOCK // fitting.shape[1])
    for rows, factor in zip(torch.split(fitting, count), torch.split(factors, count), strict=True):
        # Both bytes of a pair, each with its sign. Two weights of different signs never exceed it.
        pairs = rows.view(torch.int16)
        least, most = ((pairs >> 8) + ((pairs << 8) >> 8)).aminmax(dim=1, keepdim=True)
        sums = torch.maximum(most, -least)
        factor.copy_((sums / (PAIR - 1)).masked_fill_(sums <= PAIR, 1.0))
        rows.copy_((rows * factor.reciprocal()).round_())
    return fitting[:, : weight.shape[1]], factors


def _largest(rows: torch.Tensor) -> torch.Tensor:
    # In two passes, each ten times as fast as the norm's or `aminmax`'s one.
    return rows.abs().amax(1, keepdim=True).clamp_(min=SMALLEST)


def _in_background(pack: Callable[[], Any]) -> "Future[Any]":
    """What `pack` returns, by a thread of its own; waits for one where each core has one."""
    from cragmesh_vllm.memory import trim

    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(pack())
        except BaseException as error:
            future.set_exception(error)
        finally:
            # Where nothing is given back, the weights of before stay in the heap beside those of after.
            trim()
            _PACKERS.release()

    _PACKERS.acquire()
    threading.Thread(target=run, name="pack", daemon=True).start()
    return future


def _packed(weight: torch.Tensor, scales: torch.Tensor) -> Any:
    torch.backends.quantized.engine = "fbgemm"
    fitting, coarser = within_16_bits(weight)
    zeros, steps = torch.zeros(len(weight), dtype=torch.long), (scales * coarser).double().flatten()
    quantised = torch._make_per_channel_quantized_tensor(fitting.contiguous(), steps, zeros, 0)
    return torch.ops.quantized.linear_prepack(quantised, None)


def serve_int8() -> None:
    """Have vLLM's int8 layers multiplied by the library that the launcher has named, and leave them a weight.

    Where inputs are quantised as oneDNN does here, vLLM would sum up all weights for zero points that there are not.
    """
    from vllm.model_executor.kernels.linear.scaled_mm.cpu import CPUInt8ScaledMMLinearKernel
    from vllm.model_executor.layers.utils import check_cpu_sgl_kernel

    from cragmesh_vllm.memory import trim

    pack_as_vllm_does = CPUInt8ScaledMMLinearKernel.process_weights_after_loading
    if getattr(pack_as_vllm_does, "keeps_a_weight", False):
        return

    def process(self: Any, layer: torch.nn.Module) -> None:
        name = self.layer_param_names[0]
        weight = getattr(layer, name)
        for_each_token = self.config.input_symmetric and not self.config.is_static_input_scheme
        if by_fbgemm() or (for_each_token and not check_cpu_sgl_kernel(*weight.shape, weight.dtype)):
            self.linear_method = _packed_here(self, layer)
            setattr(layer, name, None)
        else:
            pack_as_vllm_does(self, layer)
        del weight
        if not by_fbgemm():
            trim()
        if getattr(layer, name) is None:
            # A LoRA layer asks it for its device.
            setattr(layer, name, torch.nn.Parameter(torch.empty(0, dtype=torch.int8), requires_grad=False))

    process.keeps_a_weight = True  # type: ignore[attr-defined]
    CPUInt8ScaledMMLinearKernel.process_weights_after_loading = process


def _packed_here(kernel: Any, layer: torch.nn.Module) -> Callable[..., torch.Tensor]:
    """A layer's product; its inputs are quantised for each token, whatever the checkpoint says of them."""
    from vllm.model_executor.layers.quantization.utils.w8a8_utils import convert_to_channelwise

    weight, scales = (getattr(layer, name).data for name in kernel.layer_param_names[:2])
    if not kernel.config.is_channelwise:
        scales = convert_to_channelwise(scales, layer.logical_widths)
    return _linear(pack(weight, scales.float().view(-1, 1)))


def _linear(weights: Int8Weights) -> Callable[..., torch.Tensor]:
    def apply(_layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        product = weights.multiply(x.reshape(-1, x.shape[-1]).float())
        if bias is not None:
            product += bias
        return product.to(x.dtype).view(*x.shape[:-1], -1)

    return apply
