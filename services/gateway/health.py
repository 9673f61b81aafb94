"""The state of the services: `GET /services` for people, `GET /readyz` for orchestrators.

All are probed side by side, within a short time, past the circuit breakers: a probe neither waits for a dead service
nor counts against it. Callers within a second share one round of probes.
"""

import asyncio
import re
import time
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

# A service that needs longer is as good as gone to a caller with a budget, and an orchestrator's probe of the gateway
# must be answered, however long a service hangs.
PROBE_S = 0.8
# Greatest age of the probes' results.
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
    error: str = ""


class Health:
    """Probes the services.

    Args:
        http: a client that reaches them.
        admission: the gateway's own places.
    """

    def __init__(self, mesh: Mesh, http: httpx.AsyncClient, settings: GatewaySettings, admission: Admission) -> None:
        self._mesh = mesh
        self._http = http
        self._admission = admission
        self._settings = settings
        self._probing: asyncio.Task[None] | None = None
        self._probed_at = -FRESH_S
        self._results: tuple[ServiceHealth, ...] = ()
        self._models: tuple[Model, ...] = ()

    async def services(self) -> Services:
        """The state of all services, at most FRESH_S old."""
        if self._probing is None and time.monotonic() - self._probed_at >= FRESH_S:
            self._probing = asyncio.create_task(self._probe_all())
        if self._probing is not None:
            # Shared by other callers: it goes on when the one who began it hangs up.
            await asyncio.shield(self._probing)
        return Services(services=(self._gateway(self._results), *self._results), confidence=self._confidence())

    async def close(self) -> None:
        """Wait for the probes under way, PROBE_S at most."""
        if self._probing is not None:
            await asyncio.wait({self._probing})

    async def _probe_all(self) -> None:
        try:
            probes = [*(self._probe(target) for target in self._mesh.services), self._probe_generator()]
            self._results = tuple(await all_of(probes))
            self._probed_at = time.monotonic()
        finally:
            self._probing = None

    def _confidence(self) -> ConfidenceHealth:
        settings, ids = self._settings, [model.id for model in self._models]
        bases = [model.id for model in self._models if model.parent is None]
        base = settings.generator_model or (bases or ids)[0] if ids else ""
        adapter = settings.web_answer_adapter if settings.web_answer_adapter in ids else ""
        return self._mesh.calibration.health(base, adapter, settings.caution)

    def _gateway(self, others: tuple[ServiceHealth, ...]) -> ServiceHealth:
        missing = ", ".join(service.name for service in others if not service.ready)
        return ServiceHealth(
            name="gateway",
            ready=True,
            reachable=True,
            detail=f"answers without: {missing}" if missing else "",
            in_flight=self._admission.in_flight,
            limit=self._admission.limit,
            answered_ms=0,
        )

    async def _probe(self, target: ServiceClient) -> ServiceHealth:
        began = time.monotonic()
        reply, metrics = await all_of((self._get(target, "/readyz"), self._get(target, "/metrics")))
        if reply.status is None:
            return _unready(target, reply.error)
        readiness = _readiness(reply)
        if readiness is None:
            detail = f"answers HTTP {reply.status}, and not as a service of this mesh"
            return _unready(target, detail, reachable=True)
        return _health(target, readiness, metrics, began)

    async def _probe_generator(self) -> ServiceHealth:
        target = self._mesh.generator
        began = time.monotonic()
        # Only our own launcher serves `/readyz`; of another engine the models have to do.
        replies = (self._get(target, path, target.headers) for path in ("/v1/models", "/metrics", "/readyz"))
        listing, metrics, ready = await all_of(replies)
        self._models = ()
        if listing.status is None:
            return _unready(target, listing.error)
        try:
            self._models = tuple(Models.model_validate_json(listing.body).data)
        except ValidationError:
            return _unready(target, f"answers HTTP {listing.status}, and lists no model", reachable=True)
        readiness = _readiness(ready) or Readiness(ready=True, service=target.name)
        models = ", ".join(model.id for model in self._models[:MAX_MODELS])
        health = _health(target, readiness.model_copy(update={"ready": True, "model": models}), metrics, began)
        return health.model_copy(update={"waiting": _gauge(metrics.body, _WAITING)})

    async def _get(self, target: ServiceClient, path: str, headers: dict[str, str] | None = None) -> _Reply:
        body = bytearray()
        try:
            async with (
                asyncio.timeout(PROBE_S),
                self._http.stream("GET", target.base_url + path, headers=headers) as response,
            ):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_REPLY_BYTES:
                        return _Reply(response.status_code)
                return _Reply(response.status_code, bytes(body))
        except TimeoutError:
            return _Reply(None, error=f"no answer within {PROBE_S:g} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            refused = isinstance(error, httpx.ConnectError)
            return _Reply(None, error="no connection" if refused else f"no answer: {type(error).__name__}")


def _health(target: ServiceClient, readiness: Readiness, metrics: _Reply, began: float) -> ServiceHealth:
    return ServiceHealth(
        **readiness.model_dump(include={"ready", "model", "device", "precision", "detail"}),
        name=target.name,
        reachable=True,
        breaker=target.breaker.state,
        in_flight=_gauge(metrics.body, _RUNNING),
        answered_ms=round((time.monotonic() - began) * 1000, 1),
    )


def _unready(target: ServiceClient, detail: str, *, reachable: bool = False) -> ServiceHealth:
    return ServiceHealth(
        name=target.name, ready=False, reachable=reachable, detail=detail, breaker=target.breaker.state
    )


def _readiness(reply: _Reply) -> Readiness | None:
    """The readiness of a service of this mesh; None where the reply is something else."""
    try:
        return Readiness.model_validate_json(reply.body)
    except ValidationError:
        return None


def _gauge(metrics: bytes, names: tuple[str, ...]) -> int | None:
    """The sum over its labels of the first gauge that Prometheus' text has; None where it has none of the names."""
    text = metrics.decode(errors="replace")
    for name in names:
        values = re.findall(
            rf"^{re.escape(name)}(?:\{{[^}}\n]*\}})?[ \t]+([0-9]+(?:\.[0-9]+)?(?:e\+?[0-9]+)?)\b", text, re.M
        )
        if values:
            return int(min(sum(map(float, values)), MAX_INT32))
    return None
