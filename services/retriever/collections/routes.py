"""Routes of collections: `/collections`, and what is below it."""

import asyncio
from collections.abc import Mapping
from email.message import Message
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from starlette.status import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

from proto.collections import (
    FIELDS,
    MAX_FILE_BYTES,
    MEDIA_TYPES,
    TEXTS,
    CollectionInfo,
    CollectionName,
    Collections,
    CreateCollection,
    DocumentId,
    DocumentInfo,
    Documents,
    FileDescription,
    IngestRequest,
    IngestResponse,
    Listing,
    MoveRequest,
    MoveResponse,
    SearchRequest,
    SearchResponse,
)
from services.kit.app import accept, documented, file_body, problem_response, state_of
from services.kit.documents import codec
from services.kit.errors import UnsupportedMediaType, refusal
from services.kit.filters import Filters
from services.kit.telemetry import Metrics
from services.retriever.collections.documents import File
from services.retriever.collections.service import CollectionService

Responses = dict[int | str, dict[str, Any]]
_NOT_FOUND: Responses = {404: problem_response("There is no collection of that name.")}
_CONFLICT: Responses = {409: problem_response("The collection was built otherwise; nothing was changed.")}


async def _service(state: Annotated[Mapping[str, Any], Depends(state_of)]) -> Any:
    return state["collections"]


async def _metrics(state: Annotated[Mapping[str, Any], Depends(state_of)]) -> Any:
    return state["metrics"]


# Parts of the state, since the whole has a type of the application, which includes these routes.
Service = Annotated[CollectionService, Depends(_service)]
Counted = Annotated[Metrics, Depends(_metrics)]
Id = Annotated[DocumentId, Path(min_length=1, description="The document's id.")]
router = APIRouter(prefix="/collections", tags=["collections"])


@router.get("", summary="All collections.")
async def get_collections(service: Service, filters: Filters) -> Collections:
    """Documents are counted as far as the filters let them through."""
    return await service.all(filters)


@router.get("/{name}", summary="One collection.", responses=_NOT_FOUND | _CONFLICT)
async def get_collection(name: CollectionName, service: Service, filters: Filters) -> CollectionInfo:
    return await service.info(name, filters)


# Of a HEAD's reply no client reads a problem document, which all others are promised.
@router.head("/{name}", status_code=HTTP_204_NO_CONTENT, response_class=Response, include_in_schema=False)
async def head_collection(name: CollectionName, service: Service) -> None:
    await service.require(name)


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
    metrics.fell_short(response.skipped)
    return response


@router.get("/{name}/documents", summary="A collection's documents, a page at a time.", responses=_NOT_FOUND)
async def get_documents(
    name: CollectionName, listing: Annotated[Listing, Query()], filters: Filters, service: Service
) -> Documents:
    return await service.documents(name, listing, filters)


@router.get("/{name}/documents/{id:path}", summary="One document, and how far it is.", responses=_NOT_FOUND)
async def get_document(name: CollectionName, id: Id, filters: Filters, service: Service) -> DocumentInfo:
    return await service.document(name, id, filters)


@router.put(
    "/{name}/documents/{id:path}",
    summary="Write a file as a document, or another version of it.",
    responses={
        201: {"model": DocumentInfo, "description": "It is new."},
        202: {"model": DocumentInfo, "description": "It is taken; `Location` says how far it is."},
        **documented(415),
        **_NOT_FOUND,
        **_CONFLICT,
    },
    openapi_extra=file_body(MEDIA_TYPES),
)
async def put_document(
    name: CollectionName,
    id: Id,
    request: Request,
    description: Annotated[FileDescription, Query()],
    service: Service,
    response: Response,
) -> DocumentInfo:
    """The body is the file, and `content-type` its format.

    What takes longer than `wait_s` is answered with 202 and is on disk then: it will be written, whatever happens to
    the service. `GET` of the same path says how far it is.
    """
    content_type = request.headers.get("content-type", "")
    file = await asyncio.to_thread(file_of, id, await request.body(), content_type, description)
    info, new = await service.put(name, file, wait_s=description.wait_s)
    if info.state != "complete":
        accept(response, f"/collections/{name}/documents/{id}")
    elif new:
        response.status_code = HTTP_201_CREATED
    return info


@router.delete(
    "/{name}/documents/{id:path}",
    summary="Delete a document.",
    status_code=HTTP_204_NO_CONTENT,
    response_class=Response,
    responses=_NOT_FOUND,
)
async def delete_document(name: CollectionName, id: Id, service: Service) -> None:
    await service.delete_document(name, id)


@router.post("/{name}/moves", summary="Give documents other ids.", responses=_NOT_FOUND)
async def post_moves(name: CollectionName, body: MoveRequest, service: Service) -> MoveResponse:
    """For files that lie elsewhere now: nothing is read or encoded again."""
    return await service.move(name, body.moves)


@router.post("/{name}/search", summary="The best chunks or documents for a query.", responses=_NOT_FOUND | _CONFLICT)
async def post_search(name: CollectionName, body: SearchRequest, service: Service, metrics: Counted) -> SearchResponse:
    """A list for each encoder, BM25 and form of the query, fused by reciprocal rank."""
    response = await service.search(name, body)
    metrics.took("search", elapsed=response.timing.elapsed_ms, inference=response.encode_ms)
    return response


def file_of(id: str, content: bytes, content_type: str, description: FileDescription) -> File:
    """The file in a request.

    Raises:
        UnsupportedMediaType: no format of that media type is read.
        InvalidRequest: it is empty, larger than a file may be, or a text that cannot be decoded.
    """
    message = Message()
    message["content-type"] = content_type
    kind = MEDIA_TYPES.get(message.get_content_type() if content_type else "")
    if kind is None:
        raise UnsupportedMediaType(*MEDIA_TYPES)
    if not 0 < len(content) <= MAX_FILE_BYTES:
        raise refusal("body", f"holds {len(content):,} bytes", f"1 to {MAX_FILE_BYTES:,} bytes")
    properties = description.model_dump(exclude={"wait_s", "fields"}) | {
        "fields": FIELDS.validate_json(description.fields)
    }
    if kind not in TEXTS:
        return File(content, kind, id, **properties)
    encoding = codec(message.get_content_charset("utf-8"), content)
    if not encoding:
        raise refusal("content-type", "names no charset of the web")
    try:
        return File(content.decode(encoding).removeprefix("\ufeff"), kind, id, **properties)
    except ValueError as error:
        raise refusal("body", "is no text of its charset, UTF-8 where none is named") from error
