"""`/v1/files` and `/v1/batches`: the caller's own; those of others answer 404."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, Path, Query, UploadFile
from fastapi.responses import StreamingResponse

from services.gateway.access import current_caller
from services.gateway.asking import Given
from services.gateway.batches.wire import CreateBatch
from services.gateway.openai.errors import documented
from services.kit.errors import NotFound

router = APIRouter(prefix="/v1", tags=["openai"], responses=documented())

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
After = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
Limit = Annotated[int, Query(ge=1, le=100)]
Object = dict[str, Any]


class CallerFiles:
    """Files and batches of the caller."""

    def __init__(self, state: Given) -> None:
        if state["batches"] is None:
            raise NotFound("no batches are kept here: CRAGMESH_BATCHES_DATABASE is not set")
        self.runner, self.store = state["batches"], state["batches"].store

    async def do(self, method: Callable[..., Object], *args: Any) -> Object:
        """The result of a method of the store for this caller."""
        return await self.store.call(method, current_caller.get(), *args)


Own = Annotated[CallerFiles, Depends()]


@router.post("/files", summary="Keep a file of requests for a batch.")
async def create_file(
    own: Own, file: Annotated[UploadFile, File()], purpose: Annotated[Literal["batch"], Form()]
) -> Object:
    """JSONL, each line with `custom_id`, `method`, `url` and `body`; read when a batch is made of it."""
    return await own.do(own.store.add_file, file.filename or "batch.jsonl", await file.read())


@router.get("/files", summary="The caller's input files, the newest first.")
async def list_files(own: Own, after: After = None, limit: Limit = 20) -> Object:
    return await own.do(own.store.files, after, limit)


@router.get("/files/{file_id}", summary="An input, output or error file.")
async def retrieve_file(own: Own, file_id: Name) -> Object:
    return await own.do(own.store.file, file_id)


@router.get(
    "/files/{file_id}/content",
    summary="The lines of a file.",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}}},
)
async def retrieve_file_content(own: Own, file_id: Name) -> StreamingResponse:
    pieces = await own.store.call(own.store.content, current_caller.get(), file_id)
    return StreamingResponse(pieces, media_type="application/jsonl")


@router.delete("/files/{file_id}", summary="Remove a file; of an output file, answers and questions.")
async def delete_file(own: Own, file_id: Name) -> Object:
    return await own.do(own.store.remove_file, file_id)


@router.post("/batches", summary="Answer a file of requests within 24 hours, while nobody else asks.")
async def create_batch(own: Own, body: CreateBatch) -> Object:
    """`failed` at once where the file is not what it must be; `errors` says why, by line."""
    batch = await own.do(own.store.add_batch, body)
    own.runner.wake()
    return batch


@router.get("/batches", summary="The caller's batches, the newest first.")
async def list_batches(own: Own, after: After = None, limit: Limit = 20) -> Object:
    return await own.do(own.store.batches, after, limit)


@router.get("/batches/{batch_id}", summary="How far a batch is.")
async def retrieve_batch(own: Own, batch_id: Name) -> Object:
    return await own.do(own.store.batch, batch_id)


@router.post("/batches/{batch_id}/cancel", summary="End a batch; what was answered can be read.")
async def cancel_batch(own: Own, batch_id: Name) -> Object:
    return await own.do(own.store.cancel, batch_id)
