"""Settings of the generator's launcher. What vLLM itself offers is in `profiles/*.yaml`, not here."""

import os
from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.kit.cpu import IsaLimit
from services.kit.environment import OrNone

PROFILES = Path(__file__).parent / "profiles"
# Adapters that come with the project, each for the base model that it names.
SHIPPED = Path(__file__).parent / "adapters"
# What the mesh adds to vLLM, as a package that vLLM finds by its entry points.
PLUGIN = Path(__file__).parent / "plugin"

Wanted = Literal["auto", "int8", "fp32", "bf16", "fp16"]
AUTO = "auto"
# What CRAGMESH_MODEL is where it is not set, as `.env.example` shows. An image holds one model, made where it is built:
# the compose file names it.
DEFAULT_MODEL = AUTO


def project_root() -> Path:
    """The checkout that this code runs from, or the working directory when it was installed as a package."""
    checkout = Path(__file__).resolve().parents[2]
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def _threads() -> int:
    return min(16, len(os.sched_getaffinity(0)))


class GeneratorSettings(BaseSettings):
    """How vLLM is launched. Environment variables carry the prefix `CRAGMESH_GENERATOR_`."""

    model_config = SettingsConfigDict(
        env_prefix="CRAGMESH_GENERATOR_", frozen=True, extra="ignore", populate_by_name=True
    )

    # Which of `profiles/*.yaml`, or the path of one's own, with a slash in it: the hardware decides.
    profile: str = Field("cpu", pattern=r"^([a-z0-9][a-z0-9-]{0,31}|.{0,4000}/[^/]{1,250})$")
    # The embedded model, of a profile that names none: small, medium or large; `auto`, the largest that fits the memory
    # and reads in time, as `prepare` finds out; or a hub's name. All that run or ask it read this one variable.
    embedded: str = Field(
        DEFAULT_MODEL,
        validation_alias="CRAGMESH_MODEL",
        max_length=200,
        pattern=r"^(auto|small|medium|large|[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)$",
    )
    # Empty keeps the profile's; 0.0.0.0 where a container has a network of its own.
    host: str = Field("", max_length=253)
    # None keeps the profile's; another one when two meshes share a machine.
    port: OrNone[int] = Field(None, ge=1024, le=65_535)
    # vLLM pins what the mesh pins otherwise, so it has an environment of its own; an image that brings vLLM names its
    # own interpreter here.
    interpreter: Path = Field(default_factory=lambda: project_root() / ".venv-generator/bin/python")
    # Prepared models, one folder each; another disk where this one is small.
    models_dir: Path = Field(default_factory=lambda: project_root() / "models")
    # LoRA adapters: each folder in it with an adapter_config.json is served under the folder's name, beside the shipped
    # ones of the base model; of two of one name this one is served.
    adapters_dir: Path = Field(default_factory=lambda: project_root() / "models/adapters")
    # Serves the adapters that come with the project; off to compare with the base model alone.
    shipped_adapters: bool = True
    # Lets vLLM load and unload adapters while it runs; whoever reaches its port can then name any folder.
    runtime_adapters: bool = False
    # Lets vLLM ask the model hub for what is not in `models_dir`; off, so that a start never waits for a network.
    hub: bool = False
    # Number format of weights and activations. `auto` keeps the profile's; where that leaves it open it takes what is
    # fastest on this CPU. `int8` needs a model that `prepare --int8` has made.
    precision: Wanted = "auto"
    # The newest instruction set that counts, to see here what happens on an older CPU; shared by all services.
    cpu_isa: IsaLimit = Field("", validation_alias="CRAGMESH_CPU_ISA")
    # CPU only. Threads of the engine; the machine's cores unless other models need some.
    threads: int = Field(default_factory=_threads, ge=1, le=256)
    # CPU only. Size of the key-value cache, all of it taken at start; it must hold one request of the longest kind.
    # None takes what the embedded model needs for that (0.25 to 0.5), and for a model of one's own half a GiB.
    kv_cache_gib: OrNone[float] = Field(None, ge=0.25, le=256)
    # An OpenTelemetry collector that vLLM sends its own spans to, http://host:4318/v1/traces; empty keeps none.
    otlp_traces_endpoint: str = Field("", max_length=2_000)
    # Seconds that vLLM gives requests in flight after SIGTERM; None keeps the profile's. As long as the longest request
    # where another instance takes over, as in a rolling restart.
    shutdown_timeout_s: OrNone[int] = Field(None, ge=0, le=300)
    # Asked for by vLLM as a bearer token on all of `/v1`, loading adapters included; those who call it send what this
    # same variable says. Empty lets all in.
    api_key: str = Field("", max_length=500, repr=False)
    # WARNING hides vLLM's progress at start; DEBUG shows the scheduler.
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
