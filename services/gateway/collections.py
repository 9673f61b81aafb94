"""`/collections` at the gateway: lists, searches, creation and deletion, as far as the caller may."""

from collections.abc import AsyncIterator

from fastapi import APIRouter, Depends, Response
from starlette.status import HTTP_204_NO_CONTENT

from proto.base import Problem
from proto.collections import (
    CollectionInfo,
    CollectionName,
    Collections,
    CreateCollection,
    SearchRequest,
    SearchResponse,
)
from services.gateway.access import current_scope
from services.gateway.asking import Given, seconds_left
from services.gateway.mesh import NoCollection
from services.kit.app import documented
from services.kit.errors import (
    DeadlineExceeded,
    Forbidden,
    MeshError,
    NotFound,
    Overloaded,
    ServiceFailure,
    ServiceOverloaded,
    ServiceRejected,
    ServiceTimeout,
    Unavailable,
)
from services.kit.filters import Filters


class Refused(MeshError):
    """The refusal of a service behind, in its own words."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail, errors=problem.errors)
        self.status, self.title = problem.status, problem.title  # type: ignore[misc]


async def relay_failures() -> AsyncIterator[None]:
    """A dependency of routes that only call a service: relays its failure in the gateway's name.

    Raises:
        MeshError: the call failed; a refusal of the request keeps its status and its reasons, but for 404, which names
            what the caller asked for.
    """
    try:
        yield
    except NoCollection as failure:
        raise NotFound(failure.detail) from failure
    except ServiceTimeout as failure:
        raise DeadlineExceeded(str(failure)) from failure
    except ServiceOverloaded as failure:
        raise Overloaded(f"the {failure.service} has more to do than it takes") from failure
    except ServiceFailure as failure:
        if isinstance(failure, ServiceRejected) and (refusal := failure.refusal):
            raise Refused(refusal) from failure
        raise Unavailable(str(failure)) from failure


router = APIRouter(
    prefix="/collections",
    tags=["collections"],
    responses=documented(401, 403),
    dependencies=[Depends(relay_failures)],
)


@router.get("", summary="The collections that the caller may read.")
async def get_collections(state: Given, filters: Filters) -> Collections:
    """Documents are counted as far as the filters, and those of the key, let them through."""
    return await state["mesh"].collections(filters, allow_s=seconds_left())


@router.get("/{name}", summary="One collection.", responses=documented(404))
async def get_collection(name: CollectionName, state: Given, filters: Filters) -> CollectionInfo:
    return await state["mesh"].collection(name, filters, allow_s=seconds_left())


@router.post("/{name}/search", summary="The best chunks or documents for a query.", responses=documented(404, 409))
async def search_collection(name: CollectionName, body: SearchRequest, state: Given) -> SearchResponse:
    return await state["mesh"].search(name, body, allow_s=seconds_left())


@router.put("/{name}", summary="Make a collection; the same again changes nothing.", responses=documented(409))
async def put_collection(name: CollectionName, body: CreateCollection, state: Given) -> CollectionInfo:
    if not current_scope.get().reads(name):
        raise Forbidden("this key is for other collections")
    return await state["mesh"].create_collection(name, body, allow_s=seconds_left())


@router.delete(
    "/{name}",
    summary="Delete a collection with all its documents.",
    status_code=HTTP_204_NO_CONTENT,
    response_class=Response,
    responses=documented(404, 409),
)
async def delete_collection(name: CollectionName, state: Given) -> None:
    await state["mesh"].delete_collection(name, allow_s=seconds_left())
