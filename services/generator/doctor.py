"""Whether this machine's NVIDIA cards can serve a profile, in words, before vLLM is started.

The facts are those of vLLM 0.32 for CUDA 13: its `docker/versions.json` and `vllm/platforms/cuda.py`.
"""

import ctypes
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from services.generator.errors import GeneratorError
from services.generator.launch import (
    GIB,
    INT8,
    MIB,
    OPEN,
    Arguments,
    base_model,
    choose_precision,
    in_one_process,
    model_folder,
    read_profile,
)
from services.generator.settings import GeneratorSettings

QUERY = "index,uuid,name,memory.total,memory.free,driver_version,compute_cap,mig.mode.current"
SMI = ("nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits")
LIST = ("nvidia-smi", "-L")
# The oldest that CUDA 13 runs on, but for forward compatibility, and the oldest card that vLLM is compiled for.
DRIVER = 580
COMPATIBILITY = "VLLM_ENABLE_CUDA_COMPATIBILITY"
OLDEST, AMPERE = 7.5, 8.0
# CUDA's context, activations of 512 tokens, adapters and CUDA graphs; estimated, not measured.
RUNTIME_GIB = 1.3
# Lower case counts by thousands.
FACTORS = {"": 1} | {c: 1000**n for n, c in enumerate("kmgt", 1)} | {c: 1024**n for n, c in enumerate("KMGT", 1)}
# vLLM's own where a profile has none.
UTILIZATION = 0.92


@dataclass(frozen=True, slots=True)
class Card:
    """A card, or a slice of one; without memory where the driver does not tell, as in containers with a slice, and
    without a capability where an old driver does not know the word.
    """

    index: str
    uuid: str
    name: str
    total_gib: float | None
    free_gib: float | None
    driver: str
    capability: float | None


@dataclass(slots=True)
class Report:
    """What there is and what it is short of, a line each; without refusals vLLM may start."""

    lines: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


def run_smi(command: Sequence[str]) -> str:
    """What `nvidia-smi` prints.

    Raises:
        GeneratorError: it is not there, fails or hangs.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except FileNotFoundError:
        raise GeneratorError(
            "there is no nvidia-smi: the machine has no NVIDIA driver, or the container was started without its cards "
            "(NVIDIA Container Toolkit, a reservation of devices)"
        ) from None
    except subprocess.TimeoutExpired:
        raise GeneratorError("nvidia-smi hangs: the driver has lost a card; restart the machine") from None
    if done.returncode:
        reason = (done.stdout.strip() or done.stderr.strip() or f"status {done.returncode}").splitlines()[0]
        hint = "; the driver was updated while it ran: restart the machine" if "mismatch" in reason else ""
        raise GeneratorError(f"nvidia-smi fails: {reason}{hint}")
    return done.stdout


def has_cuda() -> bool:
    """Whether the driver's part of CUDA can be loaded: containers get it only with the capability `compute`."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def cards() -> list[Card]:
    """The cards that CUDA shows to a process, slices (MIG) in place of the cards that are cut into them.

    Raises:
        GeneratorError: nvidia-smi gives none.
    """
    every: list[Card] = []
    for line in run_smi(SMI).strip().splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) != len(QUERY.split(",")):
            raise GeneratorError(f"nvidia-smi fails: {line.strip()}")
        index, uuid, name, total, free, driver, capability, mig = values
        gib = MIB / GIB
        card = Card(index, uuid, name, _number(total, gib), _number(free, gib), driver, _number(capability))
        every += _slices(card, run_smi(LIST)) if mig == "Enabled" else [card]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return every
    names = [name.strip() for name in visible.split(",") if name.strip()]
    # CUDA counts them in this order.
    return [card for name in names for card in every if card.index == name or card.uuid.startswith(name)]


def _slices(card: Card, listing: str) -> list[Card]:
    """Slices of a card, with memory by their names: in GB, and a little less than what there is."""
    own = listing.partition(f"GPU {card.index}:")[2].partition("\nGPU ")[0]
    return [
        replace(card, uuid=uuid, name=f"{card.name}, {kind}", total_gib=(gib := float(size) * 1e9 / GIB), free_gib=gib)
        for kind, size, uuid in re.findall(r"(MIG [\w.+]*?(\d+)gb\S*)\s.*UUID: ([^)]+)\)", own)
    ]


def _number(value: str, unit: float = 1.0) -> float | None:
    return float(value) * unit if re.fullmatch(r"[\d.]+", value) else None


def attention(capability: float, dtype: str) -> str:
    """The backend that vLLM takes for a Llama or a Qwen."""
    if capability < AMPERE or dtype == "float32":
        return "TRITON_ATTN"
    return "FLASHINFER" if int(capability) == 10 else "FLASH_ATTN"


def examine(settings: GeneratorSettings) -> Report:
    """What there is, compared with what the settings' profile needs.

    Raises:
        GeneratorError: there is no such profile, or it cannot be read.
    """
    arguments, report = read_profile(settings.profile), Report()
    model = base_model(settings)
    if in_one_process(arguments):
        report.lines.append(f"profile {settings.profile}: {model} on the CPU; no card is needed")
        return report
    precision = choose_precision(settings, arguments)
    folder = model_folder(settings, model + INT8 if precision.name == "int8" else model)
    config = _config(folder)
    dtype = _dtype(precision.dtype, config)
    wanted = int(_value(arguments, "tensor-parallel-size", 1))
    need = _need_gib(arguments, folder, config, wanted)
    share = _value(arguments, "gpu-memory-utilization", UTILIZATION)
    report.lines += [
        f"profile {settings.profile}: {model} in {dtype or 'the format of its weights'} on "
        + ("one card" if wanted == 1 else f"{wanted} cards"),
        f"needs driver {DRIVER} and compute capability {OLDEST}, {share:.0%} of a card's memory free, "
        + (f"some {need:.1f} GiB of it" if need else f"how much of it is seen when {folder} holds the model"),
    ]
    try:
        visible = cards()
    except GeneratorError as error:
        report.refusals.append(str(error))
        return report
    report.lines += [_described(card, dtype) for card in visible]
    if len(visible) < wanted:
        report.refusals.append(f"{wanted} cards are needed, and there are {len(visible)}")
    elif wanted > 1 and any("MIG" in card.name for card in visible):
        report.refusals.append(f"{wanted} cards are needed, and CUDA gives a process no more than one slice (MIG)")
    if not has_cuda():
        report.refusals.append("CUDA is not here (libcuda.so.1): NVIDIA_DRIVER_CAPABILITIES must have `compute`")
    # vLLM takes the first ones.
    for card in visible[:wanted]:
        report.refusals += _refusals(card, dtype, need, share)
    return report


def require(settings: GeneratorSettings) -> list[str]:
    """The report's lines where the profile can be served.

    Raises:
        GeneratorError: it cannot; says why.
    """
    report = examine(settings)
    if report.refusals:
        raise GeneratorError(f"the profile {settings.profile} cannot be served here: " + "; ".join(report.refusals))
    return report.lines


def _described(card: Card, dtype: str) -> str:
    total = f"{card.total_gib:.1f} GiB" if card.total_gib else "memory not told"
    free = f" ({card.free_gib:.1f} free)" if card.free_gib is not None else ""
    computes = "compute capability not told"
    if card.capability:
        computes = f"compute capability {card.capability}, attention by {attention(card.capability, dtype)}"
    return f"card {card.index}: {card.name}, {total}{free}, driver {card.driver}, {computes}"


def _refusals(card: Card, dtype: str, need: float | None, share: float) -> list[str]:
    """Why vLLM would not start on a card, or stop there."""
    refusals = []
    major = card.driver.partition(".")[0]
    compatible = os.environ.get(COMPATIBILITY, "0").lower() in ("1", "true")
    if major.isdigit() and int(major) < DRIVER and not compatible:
        refusals.append(
            f"driver {card.driver} is too old for CUDA 13: install {DRIVER} or newer, or, on a data centre's card, "
            f"set {COMPATIBILITY}=1"
        )
    if card.capability and card.capability < OLDEST:
        refusals.append(f"{card.name} has compute capability {card.capability}: vLLM needs {OLDEST}")
    elif card.capability and card.capability < AMPERE and dtype == "bfloat16":
        refusals.append(
            f"{card.name} computes no bfloat16: `dtype: half` in the profile, or CRAGMESH_GENERATOR_PRECISION=fp16"
        )
    if card.total_gib:
        budget = share * card.total_gib
        if need and need > budget:
            refusals.append(
                f"{need:.1f} GiB are needed, and {share:.0%} of {card.name} are {budget:.1f}: take a smaller model, "
                "one in 4 bits, or more cards"
            )
        elif card.free_gib is not None and card.free_gib < budget:
            refusals.append(
                f"{card.free_gib:.1f} GiB of {card.name} are free, and vLLM starts with {budget:.1f}: "
                "another process holds the rest"
            )
    return refusals


def _config(folder: Path) -> dict[str, object]:
    """A model's configuration; empty where it is not there yet."""
    path = folder / "config.json"
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise GeneratorError(f"{path} cannot be read: {error}") from error


def _dtype(dtype: str, config: Mapping[str, object]) -> str:
    if dtype == OPEN:
        dtype = str(config.get("dtype") or config.get("torch_dtype") or "")
    return {"half": "float16", "float": "float32"}.get(dtype, dtype)


def _need_gib(arguments: Arguments, folder: Path, config: Mapping[str, object], wanted: int) -> float | None:
    """Memory of each card for weights, cache and runtime; None where the weights are not here."""
    weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    if not weights:
        return None
    cache = _value(arguments, "kv-cache-memory-bytes", 0) or _request_bytes(arguments, config) / wanted
    return (weights / wanted + cache) / GIB + RUNTIME_GIB


def _request_bytes(arguments: Arguments, config: Mapping[str, object]) -> float:
    """The cache of one request of the longest kind, in two bytes a number."""
    heads = _value(config, "num_attention_heads", 1)
    head = _value(config, "head_dim", _value(config, "hidden_size", 0) / heads)
    longest = _value(arguments, "max-model-len", _value(config, "max_position_embeddings", 0))
    keys = _value(config, "num_hidden_layers", 0) * _value(config, "num_key_value_heads", heads) * head * longest
    return 2 * 2 * keys


def _value(values: Mapping[str, object], name: str, otherwise: float) -> float:
    """A number as vLLM reads it, 8k or 2G too; `otherwise` where it is left open, and where vLLM alone can read it."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)", str(values.get(name) or otherwise))
    return float(match[1]) * FACTORS[match[2]] if match else otherwise
