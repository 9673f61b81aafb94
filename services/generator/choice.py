"""Which embedded model this machine runs: the one that is named, or the largest that fits and reads in time.

What `auto` takes is decided when a model is prepared, and written beside the models: all that serve or ask read it.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.generator.errors import GeneratorError
from services.generator.settings import AUTO, GeneratorSettings
from services.generator.sizes import SIZES, Size
from services.kit.cpu import Isa, computes_int8, instruction_set
from services.kit.files import write_whole

CHOICE = "embedded.json"
MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
# A container's limit and what counts against it, of control groups' second version and of their first.
LIMITS = {"memory.max": "memory.current", "memory/memory.limit_in_bytes": "memory/memory.usage_in_bytes"}
# The prompt that a model must read within so long: one with the best passages, before an answer of some words. Where
# it takes 5.3 s, on two cores with AVX2 alone, the large model is right twice as often as the medium one, and wrong
# half as often (`docs/measurements.md`): it is worth waiting for.
PROMPT_TOKENS, PROMPT_S = 400, 7.0
# How long a slow CPU may take to read the passages of a question, and how many tokens of them are always shown.
CONTEXT_S, LEAST_CONTEXT_TOKENS = 12.0, 400
# Of the server and the engine without a model: interpreters, libraries, tokenizers, buffers. Measured, as what follows.
PROGRAMS_BYTES = 1_900_000_000
OTHERS_CACHE_GIB = 0.5
# What the other services of the mesh take.
OTHERS_BYTES = 2_000_000_000
# A vocabulary's layer of fewer weights stays in float32: the plugin's `memory.LARGE`.
INT8_VOCABULARY = 100_000_000


class Choice(BaseModel):
    """What `auto` took, and why; `machine` is what it was decided for.

    Args:
        pace: seconds that a token takes for each weight, as measured; 0 where nothing had to be measured.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: str
    reason: str
    machine: str
    pace: float = Field(0.0, ge=0)


def embedded(settings: GeneratorSettings) -> tuple[str, str]:
    """The hub's name of the model to serve, and why it is the one: empty where it was named.

    Raises:
        GeneratorError: `auto` has not decided yet.
    """
    if settings.embedded in SIZES:
        return SIZES[settings.embedded].hub, ""
    if settings.embedded != AUTO:
        return settings.embedded, ""
    choice = read_choice(settings)
    if choice is None:
        raise GeneratorError(
            "CRAGMESH_MODEL=auto has not chosen yet: run `python -m services.generator prepare`, or name "
            f"one of {', '.join(SIZES)}"
        )
    return SIZES[choice.size].hub, f"auto took {choice.size}: {choice.reason}"


def size_of(model: str) -> Size | None:
    """The embedded model of that name, of which the last part counts; None for one of the operator's own."""
    return next((size for size in SIZES.values() if size.model == model.rpartition("/")[2]), None)


def prefill_tokens_per_s(settings: GeneratorSettings, size: Size) -> float:
    """How fast an embedded model reads here: as measured where `auto` chose it, else as on two cores with VNNI."""
    choice = read_choice(settings) if settings.embedded == AUTO else None
    if choice is None or choice.size != size.name or not choice.pace:
        return size.prefill_tokens_per_s
    return 1 / (choice.pace * size.layers)


def context_tokens(settings: GeneratorSettings, size: Size) -> int:
    """How much of the evidence the gateway shows an embedded model: what pays, or less where that takes too long."""
    affordable = round(CONTEXT_S * prefill_tokens_per_s(settings, size))
    return min(size.max_context_tokens, max(LEAST_CONTEXT_TOKENS, affordable))


def read_choice(settings: GeneratorSettings) -> Choice | None:
    """What `auto` took last; None where it has not, or where another version wrote it or knew that size."""
    try:
        choice = Choice.model_validate_json((settings.models_dir / CHOICE).read_bytes())
    except (OSError, ValidationError):
        return None
    return choice if choice.size in SIZES else None


def choose(settings: GeneratorSettings, measure: Callable[[], float], *, anew: bool = False) -> Choice:
    """Decide for this machine, or keep what was decided for it unless `anew`, and write it down.

    Args:
        measure: the pace of this machine; called only where more than the smallest fits.
    """
    machine, last = _machine(settings), read_choice(settings)
    if last and last.machine == machine and not anew:
        return last
    size, reason, pace = _largest(settings, measure)
    return _write(settings, Choice(size=size.name, reason=reason, machine=machine, pace=pace))


def smaller(settings: GeneratorSettings, choice: Choice, problem: str) -> Choice | None:
    """Take the next smaller size, since this one cannot be prepared, and write it down; None where there is none.

    Without a network each try costs its time: the larger one is tried again with `prepare --anew`.
    """
    names = list(SIZES)
    at = names.index(choice.size)
    if not at:
        return None
    reason = f"{choice.size} cannot be prepared: {problem}; `python -m services.generator prepare --anew` tries again"
    return _write(settings, choice.model_copy(update={"size": names[at - 1], "reason": reason}))


def _write(settings: GeneratorSettings, choice: Choice) -> Choice:
    settings.models_dir.mkdir(parents=True, exist_ok=True)
    write_whole(settings.models_dir / CHOICE, choice.model_dump_json(indent=2).encode() + b"\n")
    return choice


def _largest(settings: GeneratorSettings, measure: Callable[[], float]) -> tuple[Size, str, float]:
    """The size, why it is the one, and the pace that was measured."""
    small, *larger = SIZES.values()
    room = free_memory() - OTHERS_BYTES
    needs = {size: memory_bytes(settings, size) for size in larger}
    fitting = [size for size in larger if needs[size] <= room]
    tight = (f"{size.name} needs {_giga(needs[size])}" for size in larger if size not in fitting)
    reasons = [f"{_giga(room)} of memory beside the other services", *tight]
    if not fitting:
        return small, ", ".join(reasons), 0.0
    pace = measure()
    for size in reversed(fitting):
        seconds = PROMPT_TOKENS * size.layers * pace
        if seconds <= PROMPT_S:
            return size, f"{', '.join(reasons)}, {PROMPT_TOKENS} tokens are read in {seconds:.1f} s", pace
        reasons.append(f"{size.name} reads {PROMPT_TOKENS} tokens in {seconds:.1f} s")
    return small, f"{', '.join(reasons)}, and at most {PROMPT_S:g} s are allowed", pace


def serves_int8(settings: GeneratorSettings) -> bool:
    """Whether the CPU's profile serves int8 weights here once they are prepared.

    Raises:
        GeneratorError: they are asked for, and the CPU cannot compute them.
    """
    isa = instruction_set(settings.cpu_isa)
    if settings.precision == "int8":
        require_int8(isa)
    return settings.precision in (AUTO, "int8") and computes_int8(isa)


def require_int8(isa: Isa) -> None:
    """Refuse int8 where no library multiplies it.

    Raises:
        GeneratorError: the CPU is older than AVX2.
    """
    if not computes_int8(isa):
        raise GeneratorError(f"{lacks_int8(isa)}; set CRAGMESH_GENERATOR_PRECISION to fp32 or auto")


def lacks_int8(isa: Isa) -> str:
    """Why a CPU cannot serve int8 weights, in words."""
    return f"this CPU ({isa}) has no AVX2, and no kernels for int8"


def memory_bytes(settings: GeneratorSettings, size: Size) -> int:
    """What server and engine take with a model, the key-value cache included."""
    table = 2 * size.vocabulary
    if serves_int8(settings):
        weights = size.layers + size.vocabulary * (1 if size.vocabulary >= INT8_VOCABULARY else 4)
    else:
        weights = (size.layers + size.vocabulary) * (2 if settings.precision in ("bf16", "fp16") else 4)
    return round(PROGRAMS_BYTES + table + weights + cache_gib(settings, size) * 1024**3)


def cache_gib(settings: GeneratorSettings, size: Size | None) -> float:
    """Of the key-value cache, by the settings or the embedded model; of another model half a GiB."""
    return settings.kv_cache_gib or (size.kv_cache_gib if size is not None else OTHERS_CACHE_GIB)


def free_memory() -> int:
    """Bytes that may still be taken: of the machine, and of this container's limit."""
    free = _field(MEMINFO, "MemAvailable:") * 1024
    for limit, used in LIMITS.items():
        if bound := _number(CGROUP / limit):
            # The page cache counts as used, and is given up first.
            cached = _field((CGROUP / limit).with_name("memory.stat"), "inactive_file")
            free = min(free, bound - max(0, _number(CGROUP / used) - cached))
    return max(0, free)


def _machine(settings: GeneratorSettings) -> str:
    """What a decision depends on and does not change by the hour: cores, instruction set, memory, number format."""
    total = _field(MEMINFO, "MemTotal:") * 1024
    memory = min(total, *(_number(CGROUP / limit) or total for limit in LIMITS))
    return json.dumps(
        {
            "cores": len(os.sched_getaffinity(0)),
            "threads": settings.threads,
            "isa": str(instruction_set(settings.cpu_isa)),
            "memory_gib": round(memory / 1024**3),
            "precision": settings.precision,
            "int8": serves_int8(settings),
            "kv_cache_gib": settings.kv_cache_gib,
        }
    )


def _field(path: Path, name: str) -> int:
    """The number behind a name at the beginning of a line; 0 where there is none."""
    match = re.search(rf"^{name}\s+(\d+)", _text(path), re.MULTILINE)
    return int(match[1]) if match else 0


def _number(path: Path) -> int:
    """A file's only number; 0 for `max`, or where there is no such file."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _giga(size: int) -> str:
    return f"{max(0, size) / 1e9:.1f} GB"
