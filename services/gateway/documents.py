"""`/collections/{name}/documents` at the gateway: reading as far as the caller may, writing, removal."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from starlette.status import HTTP_204_NO_CONTENT

from proto.collections import (
    MEDIA_TYPES,
    CollectionName,
    DocumentId,
    DocumentInfo,
    Documents,
    FileDescription,
    IngestRequest,
    IngestResponse,
    Listing,
    MoveRequest,
    MoveResponse,
)
from services.gateway.asking import Given, seconds_left
from services.gateway.collections import relay_failures
from services.kit.app import accept, documented, file_body
from services.kit.errors import UnsupportedMediaType
from services.kit.filters import Filters

Id = Annotated[DocumentId, Path(min_length=1, description="The document's id.")]
router = APIRouter(
    prefix="/collections/{name}",
    tags=["collections"],
    responses=documented(401, 403, 404),
    dependencies=[Depends(relay_failures)],
)


@router.get("/documents", summary="A collection's documents, a page at a time.")
async def get_documents(
    name: CollectionName, listing: Annotated[Listing, Query()], filters: Filters, state: Given
) -> Documents:
    return await state["mesh"].documents(name, listing, filters, allow_s=seconds_left())


@router.post("/documents", summary="Write a batch of texts.", responses=documented(409))
async def post_documents(name: CollectionName, body: IngestRequest, state: Given) -> IngestResponse:
    """What the collection holds already is left; sent again after an interruption, a batch goes on where it stopped."""
    return await state["mesh"].ingest(name, body, allow_s=seconds_left())


@router.get("/documents/{id:path}", summary="One document, and how far it is.")
async def get_document(name: CollectionName, id: Id, filters: Filters, state: Given) -> DocumentInfo:
    return await state["mesh"].document(name, id, filters, allow_s=seconds_left())


@router.put(
    "/documents/{id:path}",
    summary="Write a file as a document, or another version of it.",
    responses={
        202: {"model": DocumentInfo, "description": "It is taken; `Location` says how far it is."},
        **documented(409, 415),
    },
    openapi_extra=file_body(MEDIA_TYPES),
)
async def put_document(
    name: CollectionName,
    id: Id,
    request: Request,
    description: Annotated[FileDescription, Query()],
    state: Given,
    response: Response,
) -> DocumentInfo:
    """The body is the file, and `content-type` its format.

    What takes longer than `wait_s` is answered with 202 and will be written, whatever happens to the mesh; `GET` of the
    same path says how far it is.
    """
    body, media_type = await request.body(), request.headers.get("content-type", "")
    if not media_type.isascii():
        raise UnsupportedMediaType(*MEDIA_TYPES)
    info = await state["mesh"].put_document(name, id, body, media_type, description, allow_s=seconds_left())
    if info.state != "complete":
        accept(response, f"/collections/{name}/documents/{id}")
    return info


@router.delete(
    "/documents/{id:path}", summary="Delete a document.", status_code=HTTP_204_NO_CONTENT, response_class=Response
)
async def delete_document(name: CollectionName, id: Id, state: Given) -> None:
    await state["mesh"].delete_document(name, id, allow_s=seconds_left())


@router.post("/moves", summary="Give documents other ids.")
async def post_moves(name: CollectionName, body: MoveRequest, state: Given) -> MoveResponse:
    """For files that lie elsewhere now: nothing is read or encoded again."""
    return await state["mesh"].move_documents(name, body, allow_s=seconds_left())
