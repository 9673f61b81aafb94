"""Settings that every service has. Environment variables carry the prefix `CRAGMESH_`."""

from typing import Literal

from pydantic import Field, HttpUrl
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.kit.breaker import Breaker
from services.kit.cpu import IsaLimit
from services.kit.environment import OrNone
from services.kit.precision import DtypeSetting


class KitSettings(BaseSettings):
    """Base of a service's settings; each knob is typed, bounded and has one comment on why one would turn it."""

    model_config = SettingsConfigDict(env_prefix="CRAGMESH_", frozen=True, extra="ignore")

    # Loopback unless a container or a cluster gives the service a network of its own.
    host: str = "127.0.0.1"
    # DEBUG shows each call to another service; never page bodies at any level.
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    # Seconds that a request may take; callers can lower it with x-deadline-ms.
    max_deadline_s: float = Field(30.0, gt=0, le=600)
    # Larger bodies are refused with 413; 32 MiB of HTML fits, escaped as JSON.
    max_body_mib: int = Field(64, ge=1, le=512)
    # How long a stopping service waits for requests in flight before it cancels them.
    graceful_shutdown_s: int = Field(5, ge=0, le=60)
    # An OpenTelemetry collector, http://host:4318; empty keeps no traces.
    otlp_endpoint: str = ""
    # Shared by all services and checked by each but the gateway; for networks without policies of their own.
    mesh_token: str = Field("", repr=False)
    # Time-outs and refused connections in a row before a service is left alone for a while.
    breaker_threshold: int = Field(5, ge=1, le=100)
    # The longest that a service is left alone; short, so that a recovered service is found again soon.
    breaker_max_open_s: float = Field(5.0, gt=0, le=60)

    def breaker(self) -> Breaker:
        """A circuit breaker for one target."""
        return Breaker(threshold=self.breaker_threshold, max_open_s=self.breaker_max_open_s)


class MeshUrls(BaseSettings):
    """The services' URLs; the defaults are those of the embedded mesh of `cragmesh up`."""

    model_config = SettingsConfigDict(env_prefix="CRAGMESH_", frozen=True, extra="ignore")

    gateway_url: HttpUrl = HttpUrl("http://127.0.0.1:8000")
    retriever_url: HttpUrl = HttpUrl("http://127.0.0.1:8001")
    reranker_url: HttpUrl = HttpUrl("http://127.0.0.1:8002")
    classifier_url: HttpUrl = HttpUrl("http://127.0.0.1:8003")
    kg_url: HttpUrl = HttpUrl("http://127.0.0.1:8004")
    # Pages of the web for questions that ask to be searched for; none when empty.
    searcher_url: OrNone[HttpUrl] = None
    # Any OpenAI-compatible server.
    generator_url: HttpUrl = HttpUrl("http://127.0.0.1:8005")
    # The model's name at the generator; empty takes the first that it serves.
    generator_model: str = ""
    # Sent as a bearer token to the generator, for hosted endpoints.
    generator_api_key: str = Field("", repr=False)


class EncoderSettings(BaseSettings):
    """The sentence encoder of the retriever and of the weight-free reranker."""

    model_config = SettingsConfigDict(env_prefix="CRAGMESH_", frozen=True, extra="ignore")

    # A folder or a hub name; empty is the MiniLM that ships inside a package.
    encoder_model: str = ""
    # auto picks the fastest format that is exact enough on this device, by a short measurement.
    precision: DtypeSetting = "auto"
    # Pretend an older CPU, to see here how it runs there; ONNX Runtime's own kernels ignore it.
    cpu_isa: IsaLimit = ""
    # Threads of one model process; two processes that both take every core run many times slower.
    threads: int = Field(2, ge=1, le=64)
