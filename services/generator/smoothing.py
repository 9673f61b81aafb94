"""Scales that make a layer's inputs easier to hold in int8: SmoothQuant (Xiao et al. 2023, section 4), by powers of 2.

A few channels of a linear layer's input are many times as large as the rest, and one scale for each token then leaves
the rest few of its 255 levels. Such a channel is divided by a scale, in the weight of the norm before the layer, and
the layer's weights for it are multiplied by the same, which changes nothing but what int8 has to hold. Powers of two
are exact in every floating type. An adapter of such a layer reads the divided inputs too: the plugin multiplies its A.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

# Architectures whose norms multiply by their weight, and are followed by these layers alone.
MODEL_TYPES = frozenset({"llama", "mistral", "qwen2", "qwen3"})
READERS = {
    "input_layernorm": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj"),
}
# How much of the difficulty goes from the activations to the weights. On made-up questions 0.4 to 0.7 bring the int8 of
# the embedded model to two fifths of its distance (KL) from fp32, 0.85 to two thirds.
MIGRATION = 0.55
SMALLEST = 1e-5
# Beside the weights, for the plugin.
FILE = "smoothing.json"
TEXTS = Path(__file__).parent / "data" / "activations.txt"


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Scales by the names of a model's modules.

    Args:
        exponents: of two, for each input channel of the layers after a norm, by the norm's name.
        reads: the norm that a layer reads, by the layer's name.
    """

    exponents: dict[str, list[int]] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)

    def apply(self, name: str, tensor: Any) -> Any:
        """A parameter as the smoothed model has it."""
        torch: Any = import_module("torch")
        module = name.removesuffix(".weight")
        if module in self.exponents:
            return torch.ldexp(tensor, -torch.tensor(self.exponents[module])).to(tensor.dtype)
        if module in self.reads:
            return torch.ldexp(tensor, torch.tensor(self.exponents[self.reads[module]])).to(tensor.dtype)
        return tensor

    def write(self, folder: Path) -> None:
        """Leave it where the plugin looks."""
        text = json.dumps({"exponents": self.exponents, "reads": self.reads}, separators=(",", ":"))
        (folder / FILE).write_text(text, encoding="utf-8")


def smoothing(source: Path, config: dict[str, Any], weight_bytes: int) -> Smoothing:
    """The scales for a model's folder; none where its architecture is unknown or memory is short of running it."""
    if config.get("model_type") not in MODEL_TYPES:
        print(f"not smoothed: {config.get('model_type')} is no architecture whose norms are known", flush=True)
        return Smoothing()
    # Weights of two bytes become four, and the files pass through the page cache.
    needed = 3 * weight_bytes
    free = import_module("psutil").virtual_memory().available
    if free < needed:
        print(f"not smoothed: that takes {needed >> 20} MiB, and {free >> 20} MiB of memory are free", flush=True)
        return Smoothing()
    return _measured(source)


def _measured(source: Path) -> Smoothing:
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    transformers.utils.logging.disable_progress_bar()
    print("reading a text in fp32", flush=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
    modules = dict(model.named_modules())
    largest: dict[str, Any] = {}
    for name, module in modules.items():
        if name.rpartition(".")[2] in READERS:
            module.register_forward_hook(_keep_largest(largest, name))
    with torch.inference_mode():
        # Without the vocabulary's layer, whose logits of all tokens nobody wants.
        model.base_model(**tokenizer(TEXTS.read_text(encoding="utf-8"), return_tensors="pt"))
    exponents: dict[str, list[int]] = {}
    reads: dict[str, str] = {}
    for norm, activations in largest.items():
        layer, _, kind = norm.rpartition(".")
        readers = [f"{layer}.{reader}" for reader in READERS[kind]]
        weights = torch.stack([modules[reader].weight.abs().amax(0) for reader in readers]).amax(0)
        exponents[norm] = _exponents(activations, weights).tolist()
        reads |= dict.fromkeys(readers, norm)
    return Smoothing(exponents, reads)


def _keep_largest(largest: dict[str, Any], name: str) -> Any:
    def hook(_module: Any, _inputs: Sequence[Any], output: Any) -> None:
        largest[name] = output.abs().amax(tuple(range(output.dim() - 1)))

    return hook


def _exponents(activations: Any, weights: Any) -> Any:
    """Of two, shape (channels,), from the largest magnitudes of each channel: SmoothQuant, equation 4."""
    scales = activations.clamp(min=SMALLEST).log2() * MIGRATION - weights.clamp(min=SMALLEST).log2() * (1 - MIGRATION)
    return (scales - scales.mean()).round().int()
