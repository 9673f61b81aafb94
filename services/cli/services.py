"""The embedded mesh as data: adding a service is one line in `embedded`."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError

from proto.base import Readiness
from services.cli.caller import bearer
from services.cli.ending import settings_of
from services.generator.choice import context_tokens, prefill_tokens_per_s, size_of
from services.generator.doctor import require
from services.generator.errors import GeneratorError
from services.generator.launch import base_model, command
from services.generator.settings import GeneratorSettings
from services.kit.settings import MeshUrls

# What the gateway is started after.
MODELS = ("generator", "retriever", "reranker", "classifier", "kg")
# The embedded model that writes SQL.
WRITES_SQL = "large"
# The generator starts beside the graph, and on a slow CPU reads the tables of a domain in half a minute.
READS_FIRST_S = 150
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class NotPrepared(Exception):
    """Something that a service needs to start is missing; the message says which command makes it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start: its arguments, and variables that its environment has besides ours."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Service:
    """One service of the mesh.

    Args:
        launch: how to start it, NotPrepared when something is missing; None for a service that others run.
        after: names of the services that it is started after.
        ready_path: answers 2xx once the service is ready.
        headers: sent with every probe.
    """

    name: str
    url: str
    launch: Callable[[], Launch] | None
    after: tuple[str, ...] = ()
    ready_path: str = "/readyz"
    start_timeout_s: float = 120.0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def port(self) -> int:
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    async def probe(self, http: httpx.AsyncClient) -> tuple[bool, Readiness]:
        """Whether it is ready, and its readiness document."""
        readiness = Readiness(ready=False, service=self.name)
        try:
            reply = await http.get(self.url + self.ready_path, headers=dict(self.headers))
            if self.ready_path == "/readyz":
                readiness = Readiness.model_validate_json(reply.content)
            elif reply.is_success:
                models = await http.get(f"{self.url}/v1/models", headers=dict(self.headers))
                readiness = Readiness(ready=True, service=self.name, model=_first_model(models))
        except (httpx.HTTPError, httpx.InvalidURL, ValidationError):
            return False, readiness
        return reply.is_success, readiness


def _first_model(reply: httpx.Response) -> str:
    try:
        return str(reply.json()["data"][0]["id"])
    except (ValueError, LookupError, TypeError):
        return ""


def embedded(urls: MeshUrls) -> tuple[Service, ...]:
    """All services in the order of tables; one whose URL is on another machine is only checked.

    A searcher is among them where its URL is set.
    """
    searcher = (_ours("searcher", urls, start_timeout_s=60),) if urls.searcher_url else ()
    return (
        _generator(urls),
        _ours("retriever", urls, start_timeout_s=180),
        _ours("reranker", urls, start_timeout_s=180),
        _ours("classifier", urls, knows=("generator",), start_timeout_s=180),
        _ours("kg", urls, knows=("generator",), start_timeout_s=180),
        *searcher,
        _ours("gateway", urls, after=(*MODELS, *(service.name for service in searcher)), start_timeout_s=60),
    )


def root(name: str, urls: MeshUrls) -> str:
    """A service's address: its URL, else its port on this machine, else its default."""
    port = os.environ.get(f"CRAGMESH_{name.upper()}_PORT")
    if port and f"{name}_url" not in urls.model_fields_set:
        return f"http://127.0.0.1:{port}"
    return str(getattr(urls, f"{name}_url")).rstrip("/")


def model_environment() -> dict[str, str]:
    """Defaults for a process that runs a model."""
    threads = os.environ.get("CRAGMESH_THREADS") or str(min(2, len(os.sched_getaffinity(0))))
    return {
        # Threads that spin for long between two operations take the cores from the other models of the mesh, ten times
        # as slow then; those that never spin are a fifth slower alone.
        "GOMP_SPINCOUNT": "1000",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        # The last lines before a crash are the ones that matter.
        "PYTHONUNBUFFERED": "1",
    }


def embedded_model_environment(service: str) -> dict[str, str]:
    """Defaults that follow from the embedded model: the gateway's context length and speeds, the graph's SQL.

    Empty where no embedded model is prepared: the gateway's own defaults are the small one's.
    """
    settings = settings_of(GeneratorSettings)
    try:
        size = size_of(base_model(settings))
    except GeneratorError:
        return {}
    if size and service == "gateway":
        return {
            "CRAGMESH_MAX_CONTEXT_TOKENS": str(context_tokens(settings, size)),
            "CRAGMESH_PREFILL_TOKENS_PER_S": f"{prefill_tokens_per_s(settings, size):.0f}",
            "CRAGMESH_DECODE_TOKENS_PER_S": f"{size.decode_tokens_per_s:g}",
        }
    if size and service == "kg" and size.name == WRITES_SQL:
        return {"CRAGMESH_KG_SQL": "1", "CRAGMESH_KG_READS_FIRST_S": str(READS_FIRST_S)}
    return {}


def _ours(
    name: str, urls: MeshUrls, *, after: tuple[str, ...] = (), knows: tuple[str, ...] = (), start_timeout_s: float
) -> Service:
    url = root(name, urls)

    def launch() -> Launch:
        addresses = {f"CRAGMESH_{other.upper()}_URL": root(other, urls) for other in (*after, *knows)}
        port = {f"CRAGMESH_{name.upper()}_PORT": str(urlsplit(url).port or 80)}
        own = {} if "generator_url" in urls.model_fields_set else embedded_model_environment(name)
        # What the shell has set stays.
        defaults = {key: value for key, value in (model_environment() | own).items() if key not in os.environ}
        return Launch((sys.executable, "-m", f"services.{name}"), defaults | addresses | port)

    here = urlsplit(url).hostname in LOOPBACK
    return Service(name, url, launch if here else None, after=after, start_timeout_s=start_timeout_s)


def _generator(urls: MeshUrls) -> Service:
    url = root("generator", urls).removesuffix("/v1")
    headers = bearer(urls.generator_api_key)
    if "generator_url" in urls.model_fields_set:
        # Every OpenAI-compatible server lists its models; not every one has vLLM's `/health`.
        return Service("generator", url, None, ready_path="/v1/models", headers=headers)
    return Service("generator", url, _launch_generator, start_timeout_s=600, headers=headers)


def _launch_generator() -> Launch:
    settings = settings_of(GeneratorSettings)
    try:
        started = command(settings)
        require(settings)
    except GeneratorError as error:
        raise NotPrepared(f"{error}\n`make generator` makes all that the embedded mesh needs") from None
    return Launch(started.argv, started.env)
