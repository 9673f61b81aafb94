"""The base model and an adapter on it, in the number format that this machine trains fastest in."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from peft import LoraConfig, PeftModel, prepare_model_for_kbit_training
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from lab.trainer.errors import BadModel
from lab.trainer.lora import MaskPool, quicken, with_adapter
from lab.trainer.recipe import Recipe
from services.kit import extras
from services.kit.encoder import fingerprint
from services.kit.precision import choose_precision


@dataclass(frozen=True, slots=True)
class Base:
    """A base model, frozen, with its tokenizer.

    Attributes:
        name: the hub's name, which the adapter says it is for.
        precision: the number format, and why; for people.
        fingerprint: of the weights, whatever they are called.
    """

    model: PreTrainedModel
    tokenizer: Any
    name: str
    device: torch.device
    precision: str
    fingerprint: str

    @property
    def four_bit(self) -> bool:
        return bool(getattr(self.model, "is_quantized", False))

    @property
    def number_format(self) -> str:
        return str(self.model.dtype).removeprefix("torch.")


@dataclass(frozen=True, slots=True)
class Learner:
    """A base model with an adapter to train.

    Attributes:
        masks: of the dropout, to be drawn before each step; None when peft draws them.
    """

    base: Base
    adapted: PeftModel
    masks: MaskPool | None

    @property
    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """The adapter's parameters by name: fp32, whatever the base model's format."""
        return {name: one for name, one in self.adapted.named_parameters() if one.requires_grad}

    @property
    def decoder(self) -> torch.nn.Module:
        """The model without its last layer: tokens to hidden states."""
        return self.plain.base_model

    @property
    def head(self) -> torch.nn.Module:
        """Hidden states to one value for each word of the vocabulary."""
        return cast(torch.nn.Module, self.plain.get_output_embeddings())  # type: ignore[no-untyped-call]

    @property
    def plain(self) -> PreTrainedModel:
        return cast(PreTrainedModel, self.adapted.get_base_model())


def number_format(model: str, *, threads: int = 0) -> tuple[torch.device, torch.dtype, str]:
    """The device and the number format that a model trains in, and why.

    On a GPU bf16, which keeps the range of fp32, or fp16 where it computes no bf16 itself, as a T4 does not (torch
    would emulate it); on a CPU bf16 where it has the instructions, else fp32.
    """
    choice = choose_precision(model=model, threads=threads)
    device = torch.device(choice.device)
    if device.type == "cpu":
        return device, choice.torch_dtype, f"{choice.dtype}: {choice.reason}"
    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    return device, dtype, str(dtype).removeprefix("torch.")


def load(path: Path | str, *, name: str, threads: int = 2, four_bit: bool = False) -> Base:
    """Read a base model.

    Args:
        path: its folder, or a name that is in the hub's cache; no hub is asked.
        name: the hub's name.
        threads: of torch, for the whole process.
        four_bit: whether its weights are 4 bits wide (db3, section 2.4), computed in the format of `number_format`.

    Raises:
        BadModel: it cannot be read, or not in 4 bits.
    """
    device, dtype, reason = number_format(str(path), threads=threads)
    options: dict[str, Any] = {}
    if four_bit:
        if device.type != "cuda":
            raise BadModel(
                "4-bit weights are computed with on CUDA alone, and there is none here: leave out --four-bit"
            )
        if not importlib.util.find_spec("bitsandbytes"):
            raise BadModel(f"4-bit weights need bitsandbytes: {extras.command('four-bit')}")
        from transformers import BitsAndBytesConfig

        options["quantization_config"] = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
        )
        options["device_map"] = {"": device}
        reason = f"nf4, computed in {reason}"
    # Its bar would stand between ours.
    disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, local_files_only=True, **options)
    # A configuration from elsewhere fails in as many ways as there are models.
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise BadModel(f"{path}: no model that can be trained: {reason}") from error
    if "quantization_config" not in options:
        model.to(device)  # type: ignore[arg-type]
    model.requires_grad_(False)
    model.config.use_cache = False
    return Base(model, tokenizer, name, device, reason, fingerprint(Path(path)))


def adapt(base: Base, recipe: Recipe) -> Learner:
    """Put a new adapter on a base model: A random by the recipe's seed, B nothing, so that it changes nothing yet.

    Raises:
        BadModel: the base model has none of the layers that are to be adapted.
    """
    torch.manual_seed(recipe.seed)
    model = base.model
    linear = {path.rpartition(".")[2] for path, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    if missing := [target for target in recipe.targets if target not in linear]:
        raise BadModel(
            f"{base.name} has no layers named {', '.join(missing)}; its linear layers are {', '.join(sorted(linear))}"
        )
    if base.four_bit:
        model = prepare_model_for_kbit_training(model)  # type: ignore[no-untyped-call]
    config = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=list(recipe.targets),
        bias="none",
        task_type="CAUSAL_LM",
    )
    adapted = with_adapter(model, config)
    # peft writes the path that the model was read from.
    adapted.peft_config["default"].base_model_name_or_path = base.name
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return Learner(base, adapted, quicken(adapted, recipe.dropout))


def weights(learner: Learner) -> dict[str, Tensor]:
    """The adapter's tensors under their names in the model, on the CPU."""
    return {name: one.detach().to("cpu", copy=True).contiguous() for name, one in learner.parameters.items()}


def set_weights(learner: Learner, tensors: dict[str, Tensor]) -> None:
    """Replace the adapter's tensors.

    Raises:
        BadModel: names or shapes are not those of this adapter on this model.
    """
    own = learner.parameters
    if problem := misfit(tensors, own):
        raise BadModel(f"the adapter does not fit {learner.base.name}: {problem}")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[name])


def misfit(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> str:
    """Why tensors cannot take the place of a model's own; empty when they can."""
    if missing := sorted(own.keys() - tensors.keys()):
        return f"it lacks {missing[0]}" + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
    if unknown := sorted(tensors.keys() - own.keys()):
        return f"the model has no {unknown[0]}" + (f" and {len(unknown) - 1} more" if len(unknown) > 1 else "")
    for name, tensor in own.items():
        if tensors[name].shape != tensor.shape:
            return f"{name} has the shape {tuple(tensors[name].shape)}, and the model needs {tuple(tensor.shape)}"
    return ""
