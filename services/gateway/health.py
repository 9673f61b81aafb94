"""How the services are, for people: `GET /services`.

Each is asked side by side, within a short time, past the circuit breakers: a look must neither wait for a dead service
nor count against it. All who look within a second share one look.
"""

import asyncio
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass

import httpx
from pydantic import Field, ValidationError

from proto.base import MAX_INT32, Contract, Count, Milliseconds, Readiness
from services.gateway.calibration import ConfidenceHealth
from services.gateway.mesh import Mesh
from services.gateway.settings import GatewaySettings
from services.kit.admission import Admission
from services.kit.client import ServiceClient
from services.kit.concurrency import all_of
from services.kit.llm import Model, Models

# What a service gets to answer; one that needs longer is as good as gone to a caller with a budget.
LOOK_S = 0.8
# How old the answer may be.
FRESH_S = 1.0
MAX_REPLY_BYTES = 2 * 1024 * 1024
MAX_MODELS = 8

_RUNNING = ("cragmesh_in_flight", "vllm:num_requests_running")
_WAITING = ("vllm:num_requests_waiting",)


class ServiceHealth(Contract):
    """One service, as it looks from the gateway."""

    name: str = Field(description="The service's name.")
    ready: bool = Field(description="Whether it takes requests.")
    reachable: bool = Field(description="Whether anything answered at its address.")
    model: str = Field("", description="The model or engine behind it.")
    device: str = Field("", description="`cpu`, `cuda:0` ...; empty where it does not say.")
    precision: str = Field("", description="`fp32`, `fp16`, `bf16` or `int8`; empty where it does not say.")
    detail: str = Field("", description="Why it is not ready, or how it was set up.")
    breaker: str = Field("", description="`closed`, `open` or `half-open`; empty for the gateway itself.")
    in_flight: Count | None = Field(None, description="Requests that it works on; null where it does not say.")
    waiting: Count | None = Field(None, description="Requests in its queue; null where it does not say.")
    limit: Count | None = Field(None, description="Requests that it takes at a time; null where it does not say.")
    answered_ms: Milliseconds | None = Field(None, description="How long it took to say so; null where it did not.")


class Services(Contract):
    """The mesh, the gateway first."""

    services: tuple[ServiceHealth, ...] = Field(description="All services, whether they are there or not.")
    confidence: ConfidenceHealth = Field(
        default_factory=ConfidenceHealth, description="Whose confidence weighs the generator's answers."
    )


@dataclass(frozen=True, slots=True)
class _Reply:
    """The probe's result: an HTTP status, or the error that prevented one."""

    status: int | None
    body: bytes = b""
    why: str = ""


class Health:
    """Looks after the services.

    Args:
        mesh: whose services and breakers.
        http: any client that reaches them.
        settings: for the generator's key.
        admission: the gateway's own places.
    """

    def __init__(self, mesh: Mesh, http: httpx.AsyncClient, settings: GatewaySettings, admission: Admission) -> None:
        self._mesh = mesh
        self._http = http
        self._admission = admission
        self._settings = settings
        self._look: asyncio.Task[None] | None = None
        self._looked = -FRESH_S
        self._seen: tuple[ServiceHealth, ...] = ()
        self._models: tuple[Model, ...] = ()

    async def services(self) -> Services:
        """How all services are, within a second at most."""
        if self._look is None and time.monotonic() - self._looked >= FRESH_S:
            self._look = asyncio.create_task(self._see())
        if self._look is not None:
            # Others wait for the same look: it goes on when the one who began it hangs up.
            await asyncio.shield(self._look)
        return Services(services=(self._gateway(self._seen), *self._seen), confidence=self._confidence())

    async def close(self) -> None:
        """Wait for a look that is under way, which is short."""
        if self._look is not None:
            await asyncio.wait({self._look})

    async def _see(self) -> None:
        mesh = self._mesh
        try:
            looks = [*(self._service(target) for target in mesh.services), self._generator()]
            self._seen = tuple(await all_of(looks))
            self._looked = time.monotonic()
        finally:
            self._look = None

    def _confidence(self) -> ConfidenceHealth:
        settings, models = self._settings, self._models
        listed = [*(model.id for model in models if model.parent is None), *(model.id for model in models)]
        base = settings.generator_model or listed[0] if listed else ""
        adapter = settings.web_answer_adapter
        served = adapter if adapter in {model.id for model in models} else ""
        return self._mesh.calibration.health(base, served, settings.caution)

    def _gateway(self, others: tuple[ServiceHealth, ...]) -> ServiceHealth:
        return ServiceHealth(
            name="gateway",
            ready=True,
            reachable=True,
            detail=answers_without(service.name for service in others if not service.ready),
            in_flight=self._admission.in_flight,
            limit=self._admission.limit,
            answered_ms=0,
        )

    async def _service(self, target: ServiceClient) -> ServiceHealth:
        began = time.monotonic()
        reply, metrics = await all_of((self._get(target, "/readyz"), self._get(target, "/metrics")))
        if reply.status is None:
            return self._gone(target, reply.why)
        said = _readiness(reply)
        if said is None:
            why = f"answers HTTP {reply.status}, and not as a service of this mesh"
            return self._gone(target, why, reachable=True)
        return self._there(target, said, metrics, began)

    async def _generator(self) -> ServiceHealth:
        target = self._mesh.generator
        began = time.monotonic()
        # Ours says what it runs; another engine has no such route, and its models have to do.
        asked = (self._get(target, path, target.headers) for path in ("/v1/models", "/metrics", "/readyz"))
        listed, metrics, ready = await all_of(asked)
        self._models = ()
        if listed.status is None:
            return self._gone(target, listed.why)
        try:
            self._models = tuple(Models.model_validate_json(listed.body).data)
        except ValidationError:
            return self._gone(target, f"answers HTTP {listed.status}, and lists no model", reachable=True)
        said = _readiness(ready) or Readiness(ready=True, service=target.name)
        models = ", ".join(model.id for model in self._models[:MAX_MODELS])
        there = self._there(target, said.model_copy(update={"ready": True, "model": models}), metrics, began)
        return there.model_copy(update={"waiting": _gauge(metrics.body, _WAITING)})

    def _there(self, target: ServiceClient, said: Readiness, metrics: _Reply, began: float) -> ServiceHealth:
        return ServiceHealth(
            name=target.name,
            ready=said.ready,
            reachable=True,
            model=said.model,
            device=said.device,
            precision=said.precision,
            detail=said.detail,
            breaker=target.breaker.state,
            in_flight=_gauge(metrics.body, _RUNNING),
            answered_ms=round((time.monotonic() - began) * 1000, 1),
        )

    def _gone(self, target: ServiceClient, why: str, *, reachable: bool = False) -> ServiceHealth:
        return ServiceHealth(
            name=target.name,
            ready=False,
            reachable=reachable,
            detail=why,
            breaker=target.breaker.state,
        )

    async def _get(self, target: ServiceClient, path: str, headers: dict[str, str] | None = None) -> _Reply:
        body = bytearray()
        try:
            async with (
                asyncio.timeout(LOOK_S),
                self._http.stream("GET", target.base_url + path, headers=headers) as response,
            ):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_REPLY_BYTES:
                        return _Reply(response.status_code)
                return _Reply(response.status_code, bytes(body))
        except TimeoutError:
            return _Reply(None, why=f"no answer within {LOOK_S:g} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            refused = isinstance(error, httpx.ConnectError)
            return _Reply(None, why="no connection" if refused else f"no answer: {type(error).__name__}")


def answers_without(missing: Iterable[str]) -> str:
    """How the gateway says which services are away; empty when none is."""
    names = ", ".join(missing)
    return f"answers without: {names}" if names else ""


def _readiness(reply: _Reply) -> Readiness | None:
    """What a service of this mesh says of itself; None where the reply is something else."""
    try:
        return Readiness.model_validate_json(reply.body)
    except ValidationError:
        return None


def _gauge(metrics: bytes, names: tuple[str, ...]) -> int | None:
    """The sum of a gauge over its labels, in Prometheus' text; None where no gauge has one of the names."""
    text = metrics.decode(errors="replace")
    for name in names:
        values = re.findall(
            rf"^{re.escape(name)}(?:\{{[^}}\n]*\}})?[ \t]+([0-9]+(?:\.[0-9]+)?(?:e\+?[0-9]+)?)\b", text, re.M
        )
        if values:
            return int(min(sum(map(float, values)), MAX_INT32))
    return None
