"""The services as the gateway sees them: typed calls, nothing else."""

from dataclasses import dataclass

import httpx
from pydantic import ValidationError

from proto.classify import ClassifyRequest, ClassifyResponse
from proto.collections import Collections, SearchRequest, SearchResponse
from proto.kg import KgExecuteRequest, KgRequest, KgResponse
from proto.read import ReadRequest, ReadResponse
from proto.rerank import RerankRequest, RerankResponse
from proto.retrieve import RetrieveRequest, RetrieveResponse
from proto.web import WebSearchRequest, WebSearchResponse
from services.gateway.calibration import Calibration, ConfidenceHealth
from services.gateway.pace import Pace
from services.gateway.settings import GatewaySettings
from services.kit.client import ServiceClient
from services.kit.concurrency import all_of
from services.kit.deadline import MESH_TOKEN_HEADER
from services.kit.errors import BadReply, ServiceUnavailable
from services.kit.generator import generator
from services.kit.llm import LLM


@dataclass(frozen=True, slots=True)
class Mesh:
    """Clients of all services, the generator's pace, and how far its answers are to be trusted.

    Attributes:
        reader: the reranker's service too, with a breaker of its own: passages are ranked while nobody reads them.
        searcher: None where the mesh has none.
    """

    retriever: ServiceClient
    reranker: ServiceClient
    reader: ServiceClient
    classifier: ServiceClient
    kg: ServiceClient
    searcher: ServiceClient | None
    llm: LLM
    pace: Pace
    calibration: Calibration

    @classmethod
    def connect(cls, settings: GatewaySettings, http: httpx.AsyncClient) -> "Mesh":
        # Never sent to the generator, which may be somebody else's.
        ours = {MESH_TOKEN_HEADER: settings.mesh_token} if settings.mesh_token else None

        def client(name: str, url: object) -> ServiceClient:
            return ServiceClient(name, str(url), http, breaker=settings.breaker(), headers=ours)

        return cls(
            retriever=client("retriever", settings.retriever_url),
            reranker=client("reranker", settings.reranker_url),
            reader=client("reader", settings.reranker_url),
            classifier=client("classifier", settings.classifier_url),
            kg=client("kg", settings.kg_url),
            searcher=client("searcher", settings.searcher_url) if settings.searcher_url else None,
            llm=generator(settings, http, breaker=settings.breaker()),
            pace=Pace(1 / settings.prefill_tokens_per_s, 1 / settings.decode_tokens_per_s),
            calibration=Calibration(settings.confidence_dir),
        )

    @property
    def services(self) -> tuple[ServiceClient, ...]:
        """Those of the mesh's own that there are, each once."""
        ours = (self.retriever, self.reranker, self.classifier, self.kg)
        return ours if self.searcher is None else (*ours, self.searcher)

    @property
    def generator(self) -> ServiceClient:
        return self.llm.client

    def weighing(self, settings: GatewaySettings) -> ConfidenceHealth:
        """What weighs the answers of the generator, as far as it has been asked what it serves."""
        adapter = settings.web_answer_adapter if settings.web_answer_adapter in self.llm.served else ""
        return self.calibration.health(self.llm.model, adapter, settings.caution)

    async def retrieve(self, request: RetrieveRequest, *, allow_s: float) -> RetrieveResponse:
        return await self.retriever.call("/retrieve", request, RetrieveResponse, allow_s=allow_s)

    async def search(self, collection: str, request: SearchRequest, *, allow_s: float) -> SearchResponse:
        path = f"/collections/{collection}/search"
        return await self.retriever.call(path, request, SearchResponse, allow_s=allow_s)

    async def collections(self, *, allow_s: float) -> Collections:
        """All collections of the retriever."""
        body = await self.retriever.request("GET", "/collections", allow_s=allow_s)
        try:
            return Collections.model_validate_json(body)
        except ValidationError as error:
            raise BadReply("retriever", "no list of collections") from error

    async def rerank(self, request: RerankRequest, *, allow_s: float) -> RerankResponse:
        return await self.reranker.call("/rerank", request, RerankResponse, allow_s=allow_s)

    async def read(self, request: ReadRequest, *, allow_s: float) -> ReadResponse:
        return await self.reader.call("/read", request, ReadResponse, allow_s=allow_s)

    async def classify(self, request: ClassifyRequest, *, allow_s: float) -> ClassifyResponse:
        return await self.classifier.call("/classify", request, ClassifyResponse, allow_s=allow_s)

    async def query_kg(self, request: KgRequest, *, allow_s: float) -> KgResponse:
        return await self.kg.call("/kg/query", request, KgResponse, allow_s=allow_s)

    async def execute_kg(self, request: KgExecuteRequest, *, allow_s: float) -> KgResponse:
        return await self.kg.call("/kg/execute", request, KgResponse, allow_s=allow_s)

    async def search_web(self, request: WebSearchRequest, *, allow_s: float) -> WebSearchResponse:
        """Pages of the web.

        Raises:
            ServiceFailure: as all calls; `unavailable` where the mesh has no searcher.
        """
        if self.searcher is None:
            raise ServiceUnavailable("searcher", "none is configured: CRAGMESH_SEARCHER_URL")
        return await self.searcher.call("/search", request, WebSearchResponse, allow_s=allow_s)

    async def ready(self, *, allow_s: float) -> dict[str, bool]:
        """Readiness of each service, asked side by side and past the breakers."""
        targets = dict.fromkeys(self.services, "/readyz")
        targets[self.generator] = "/v1/models"
        ready = await all_of(target.answers(path, allow_s=allow_s) for target, path in targets.items())
        return {target.name: ok for target, ok in zip(targets, ready, strict=True)}
