"""Routes of collections: `/collections`, and what is below it."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response
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
from services.kit.app import PROBLEM_TYPE, SCHEMA_REF, state_of
from services.kit.filters import Filters
from services.kit.telemetry import Metrics
from services.retriever.collections.service import CollectionService

_PROBLEM = {PROBLEM_TYPE: {"schema": {"$ref": SCHEMA_REF.format(model="Problem")}}}
_NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"description": "There is no collection of that name.", "content": _PROBLEM}
}
_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"description": "The collection was built otherwise; nothing was changed.", "content": _PROBLEM}
}


async def _service(state: Annotated[Mapping[str, Any], Depends(state_of)]) -> Any:
    return state["collections"]


async def _metrics(state: Annotated[Mapping[str, Any], Depends(state_of)]) -> Any:
    return state["metrics"]


# Not the whole state: its type is the application's, which includes these routes.
Service = Annotated[CollectionService, Depends(_service)]
Counted = Annotated[Metrics, Depends(_metrics)]
router = APIRouter(prefix="/collections", tags=["collections"])


@router.get("", summary="All collections.")
async def get_collections(service: Service, filters: Filters) -> Collections:
    """Documents are counted as far as the filters let them through."""
    return await service.all(filters)


@router.get("/{name}", summary="One collection.", responses=_NOT_FOUND | _CONFLICT)
async def get_collection(name: CollectionName, service: Service, filters: Filters) -> CollectionInfo:
    return await service.info(name, filters)


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
    name: CollectionName, body: IngestRequest, service: Service, metrics: Counted
) -> IngestResponse:
    """What the collection holds already is left; sent again after an interruption, a batch goes on where it stopped."""
    response = await service.ingest(name, body.documents)
    metrics.took("ingest", elapsed=response.timing.elapsed_ms)
    for problem in response.skipped:
        metrics.degraded.labels("retriever", "document", problem.reason).inc()
    return response


@router.post("/{name}/search", summary="The best chunks or documents for a query.", responses=_NOT_FOUND | _CONFLICT)
async def post_search(name: CollectionName, body: SearchRequest, service: Service, metrics: Counted) -> SearchResponse:
    """A list for each encoder, BM25 and form of the query, fused by reciprocal rank."""
    response = await service.search(name, body)
    metrics.took("search", elapsed=response.timing.elapsed_ms, inference=response.encode_ms)
    return response
