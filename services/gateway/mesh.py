"""The services as the gateway sees them: typed calls, nothing else."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import httpx

from proto.base import Contract
from proto.classify import ClassifyRequest, ClassifyResponse
from proto.collections import (
    CollectionInfo,
    Collections,
    CreateCollection,
    DocumentInfo,
    Documents,
    FileDescription,
    Filter,
    IngestRequest,
    IngestResponse,
    Listing,
    MoveRequest,
    MoveResponse,
    SearchRequest,
    SearchResponse,
)
from proto.kg import KgExecuteRequest, KgRequest, KgResponse
from proto.read import ReadRequest, ReadResponse
from proto.rerank import RerankRequest, RerankResponse
from proto.retrieve import RetrieveRequest, RetrieveResponse
from proto.web import WebSearchRequest, WebSearchResponse
from services.gateway.access import current_scope, readable, with_key_filters
from services.gateway.calibration import Calibration, ConfidenceHealth
from services.gateway.settings import GatewaySettings
from services.gateway.speed import GeneratorSpeed
from services.kit.client import Reply, ServiceClient
from services.kit.concurrency import all_of
from services.kit.deadline import MESH_TOKEN_HEADER
from services.kit.errors import ServiceRejected, ServiceUnavailable
from services.kit.filters import as_query
from services.kit.generator import generator
from services.kit.llm import LLM

NOT_FOUND = 404
# Seconds of a caller's time for a file to arrive and for the reply.
PUT_RESERVE_S = 5.0


class NoCollection(ServiceRejected):
    """The collection or document does not exist, or the caller may not read it; the message does not say which."""

    def __init__(self, name: str, document: str = "") -> None:
        what = f"no document {document!r} in the collection {name!r}" if document else f"no collection {name!r}"
        super().__init__("retriever", f"there is {what}", status=NOT_FOUND)


@contextlib.contextmanager
def _absent(name: str, document: str = "") -> Iterator[None]:
    """Name the caller's collection or document where the retriever has none: its own reply may name another."""
    try:
        yield
    except ServiceRejected as failure:
        if failure.status == NOT_FOUND:
            raise NoCollection(name, document) from failure
        raise


def _document(name: str, id: str) -> str:
    return f"/collections/{readable(name)}/documents/{quote(id, safe='')}"


def _query(filters: Sequence[Filter], **listing: object) -> str:
    """The query of an address, with the caller's own filters."""
    return f"?{urlencode([*listing.items(), *as_query(with_key_filters(filters))])}"


@dataclass(frozen=True, slots=True)
class Mesh:
    """Clients of all services, the generator's speed, and the confidence in its answers.

    Attributes:
        reader: the reranker's service with a breaker of its own, so that a failing reader stops no ranking.
        searcher: None where the mesh has none.
    """

    retriever: ServiceClient
    reranker: ServiceClient
    reader: ServiceClient
    classifier: ServiceClient
    kg: ServiceClient
    searcher: ServiceClient | None
    llm: LLM
    speed: GeneratorSpeed
    calibration: Calibration

    @classmethod
    def connect(cls, settings: GatewaySettings, http: httpx.AsyncClient, speed: GeneratorSpeed | None = None) -> "Mesh":
        # Never sent to the generator, which others may run.
        token = {MESH_TOKEN_HEADER: settings.mesh_token} if settings.mesh_token else None

        def client(name: str, url: object) -> ServiceClient:
            return ServiceClient(name, str(url), http, breaker=settings.breaker(), headers=token)

        return cls(
            retriever=client("retriever", settings.retriever_url),
            reranker=client("reranker", settings.reranker_url),
            reader=client("reader", settings.reranker_url),
            classifier=client("classifier", settings.classifier_url),
            kg=client("kg", settings.kg_url),
            searcher=client("searcher", settings.searcher_url) if settings.searcher_url else None,
            llm=generator(settings, http, breaker=settings.breaker()),
            speed=speed or GeneratorSpeed.configured(settings),
            calibration=Calibration(settings.confidence_dir),
        )

    @property
    def services(self) -> tuple[ServiceClient, ...]:
        """The mesh's own services, without the generator."""
        return tuple(filter(None, (self.retriever, self.reranker, self.classifier, self.kg, self.searcher)))

    @property
    def generator(self) -> ServiceClient:
        return self.llm.client

    def weighing(self, settings: GatewaySettings) -> ConfidenceHealth:
        """The confidence of the generator's answers, by the models that it listed last."""
        adapter = settings.web_answer_adapter if settings.web_answer_adapter in self.llm.served else ""
        return self.calibration.health(self.llm.model, adapter, settings.caution)

    async def retrieve(self, request: RetrieveRequest, *, allow_s: float) -> RetrieveResponse:
        return await self.retriever.call("/retrieve", request, RetrieveResponse, allow_s=allow_s)

    async def search(self, collection: str, request: SearchRequest, *, allow_s: float) -> SearchResponse:
        """Search a collection as far as the caller may read it; raises as `collection`."""
        within = request.model_copy(update={"filters": with_key_filters(request.filters)})
        return await self._collection_call(collection, "/search", within, SearchResponse, allow_s=allow_s)

    async def collections(self, filters: Sequence[Filter] = (), *, allow_s: float) -> Collections:
        """The collections that the caller may read, with the documents that it may read counted."""
        names = current_scope.get().collections
        if names is not None:
            infos = await all_of(self._info(name, filters, allow_s=allow_s) for name in sorted(names))
            return Collections(collections=tuple(filter(None, infos)))
        path = f"/collections{_query(filters)}"
        return await self.retriever.call(path, None, Collections, allow_s=allow_s, method="GET")

    async def collection(self, name: str, filters: Sequence[Filter] = (), *, allow_s: float) -> CollectionInfo:
        """One collection, with the documents that the caller may read counted.

        Raises:
            NoCollection: the caller may read none of that name.
            ServiceFailure: the retriever gave no usable reply.
        """
        return await self._collection_call(name, _query(filters), None, CollectionInfo, allow_s=allow_s)

    async def require_collection(self, name: str, *, allow_s: float) -> None:
        """Check that the caller may read a collection, without a count of it; raises as `collection`."""
        with _absent(name):
            await self.retriever.request("HEAD", f"/collections/{readable(name)}", allow_s=allow_s)

    async def create_collection(self, name: str, request: CreateCollection, *, allow_s: float) -> CollectionInfo:
        """Make a collection that the caller may read.

        Raises:
            ServiceFailure: the retriever refused, or gave no usable reply.
        """
        return await self.retriever.call(f"/collections/{name}", request, CollectionInfo, allow_s=allow_s, method="PUT")

    async def delete_collection(self, name: str, *, allow_s: float) -> None:
        """Delete a collection; raises as `collection`."""
        with _absent(name):
            await self.retriever.request("DELETE", f"/collections/{readable(name)}", allow_s=allow_s)

    async def documents(self, name: str, listing: Listing, filters: Sequence[Filter], *, allow_s: float) -> Documents:
        """A page of those documents of a collection that the caller may read; raises as `collection`."""
        path = f"/documents{_query(filters, **listing.model_dump())}"
        return await self._collection_call(name, path, None, Documents, allow_s=allow_s)

    async def document(self, name: str, id: str, filters: Sequence[Filter], *, allow_s: float) -> DocumentInfo:
        """A document that the caller may read; raises as `collection`, for the document too."""
        path = f"{_document(name, id)}{_query(filters)}"
        with _absent(name, id):
            return await self.retriever.call(path, None, DocumentInfo, allow_s=allow_s, method="GET")

    async def put_document(
        self, name: str, id: str, body: bytes, media_type: str, description: FileDescription, *, allow_s: float
    ) -> DocumentInfo:
        """Write a file as a document; raises as `collection`."""
        # Wait for its processing only as long as the reply, which says how far it is, can still arrive.
        wait_s = min(description.wait_s, max(0.0, allow_s - PUT_RESERVE_S))
        path = f"{_document(name, id)}?{urlencode(description.model_dump() | {'wait_s': wait_s})}"
        with _absent(name):
            content = await self.retriever.request("PUT", path, body, allow_s=allow_s, media_type=media_type)
        return self.retriever.parse(content, DocumentInfo)

    async def delete_document(self, name: str, id: str, *, allow_s: float) -> None:
        """Delete a document; raises as `collection`, for the document too."""
        with _absent(name, id):
            await self.retriever.request("DELETE", _document(name, id), allow_s=allow_s)

    async def ingest(self, name: str, request: IngestRequest, *, allow_s: float) -> IngestResponse:
        """Write a batch of texts; raises as `collection`."""
        return await self._collection_call(name, "/documents", request, IngestResponse, allow_s=allow_s)

    async def move_documents(self, name: str, request: MoveRequest, *, allow_s: float) -> MoveResponse:
        """Give documents other ids; raises as `collection`."""
        return await self._collection_call(name, "/moves", request, MoveResponse, allow_s=allow_s)

    async def _collection_call(
        self, name: str, path: str, request: Contract | None, reply: type[Reply], *, allow_s: float
    ) -> Reply:
        """Call below a collection's path; raises as `collection`."""
        path, method = f"/collections/{readable(name)}{path}", "GET" if request is None else "POST"
        with _absent(name):
            return await self.retriever.call(path, request, reply, allow_s=allow_s, method=method)

    async def _info(self, name: str, filters: Sequence[Filter], *, allow_s: float) -> CollectionInfo | None:
        try:
            return await self.collection(name, filters, allow_s=allow_s)
        except NoCollection:
            return None

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
