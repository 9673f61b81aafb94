"""Routes of collections: `/collections`, and what is below it."""

from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request, Response
from starlette.status import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

from proto.collections import (
    CollectionInfo,
    CollectionName,
    Collections,
    CreateCollection,
    IngestRequest,
    IngestResponse,
    SearchRequest,
    SearchResponse,
)
from services.kit.app import PROBLEM_TYPE, SCHEMA_REF
from services.kit.telemetry import Metrics
from services.retriever.collections.service import CollectionService

_PROBLEM = {PROBLEM_TYPE: {"schema": {"$ref": SCHEMA_REF.format(model="Problem")}}}
_NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"description": "There is no collection of that name.", "content": _PROBLEM}
}
_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"description": "The collection was built otherwise; nothing was changed.", "content": _PROBLEM}
}


def _service(request: Request) -> CollectionService:
    return cast(CollectionService, request.state.collections)


Service = Annotated[CollectionService, Depends(_service)]
router = APIRouter(prefix="/collections", tags=["collections"])


@router.get("", summary="All collections.")
async def get_collections(service: Service) -> Collections:
    return await service.all()


@router.get("/{name}", summary="One collection.", responses=_NOT_FOUND | _CONFLICT)
async def get_collection(name: CollectionName, service: Service) -> CollectionInfo:
    return await service.info(name)


@router.put(
    "/{name}",
    summary="Make a collection; the same again changes nothing.",
    responses={201: {"model": CollectionInfo, "description": "It is new."}, **_CONFLICT},
)
async def put_collection(
    name: CollectionName, body: CreateCollection, service: Service, response: Response
) -> CollectionInfo:
    info, new = await service.create(name, body)
    response.status_code = HTTP_201_CREATED if new else HTTP_200_OK
    return info


@router.delete(
    "/{name}",
    summary="Delete a collection with all its documents.",
    status_code=HTTP_204_NO_CONTENT,
    response_class=Response,
    responses=_NOT_FOUND | _CONFLICT,
)
async def delete_collection(name: CollectionName, service: Service) -> None:
    await service.delete(name)


@router.post("/{name}/documents", summary="Write a batch of documents.", responses=_NOT_FOUND | _CONFLICT)
async def post_documents(
    name: CollectionName, body: IngestRequest, service: Service, request: Request
) -> IngestResponse:
    """What the collection holds already is left; sent again after an interruption, a batch goes on where it stopped."""
    response = await service.ingest(name, body.documents)
    metrics = cast(Metrics, request.state.metrics)
    metrics.stage.labels("retriever", "ingest", "elapsed").observe(response.timing.elapsed_ms / 1000)
    for problem in response.skipped:
        metrics.degraded.labels("retriever", "document", problem.reason).inc()
    return response


@router.post("/{name}/search", summary="The best chunks or documents for a query.", responses=_NOT_FOUND | _CONFLICT)
async def post_search(name: CollectionName, body: SearchRequest, service: Service, request: Request) -> SearchResponse:
    """A list for each encoder, BM25 and form of the query, fused by reciprocal rank."""
    response = await service.search(name, body)
    metrics = cast(Metrics, request.state.metrics)
    metrics.stage.labels("retriever", "search", "elapsed").observe(response.timing.elapsed_ms / 1000)
    metrics.stage.labels("retriever", "search", "inference").observe(response.encode_ms / 1000)
    return response
