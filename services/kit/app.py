"""The app factory: a FastAPI application with what every service of the mesh has."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any
from urllib.parse import quote

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.status import HTTP_202_ACCEPTED
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from proto.base import Problem, Readiness
from services.kit.admission import Admission
from services.kit.client import JSON
from services.kit.deadline import PROBLEM_TYPE, DeadlineMiddleware, Guard, mesh_guard, problem_body, problem_reply
from services.kit.errors import MeshError, UnsupportedMediaType
from services.kit.faults import UNKNOWN, field_errors
from services.kit.heap import trim
from services.kit.settings import KitSettings
from services.kit.telemetry import Metrics, configure_logging, request_id
from services.kit.tracing import configure_tracing, flush_spans

SCHEMA_REF = "#/components/schemas/{model}"
# Time in which clients with kept connections hear that the server will close them.
CLOSING_S = 2.0
POLL_S = 0.1
Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[Mapping[str, Any]]]
Ready = Callable[[Any], Awaitable[Readiness]]


async def state_of(request: Request) -> Any:
    """The state that the lifespan has yielded; handlers take it as `Annotated[State, Depends(state_of)]`."""
    return request.scope["state"]


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """A route's problem documents, for its `responses`."""
    return {status: problem_response(_TITLES[status]) for status in statuses}


def problem_response(description: str) -> dict[str, Any]:
    """A problem document with a description of its own, for a route's `responses`."""
    schema = {"$ref": SCHEMA_REF.format(model="Problem")}
    return {"description": description, "content": {PROBLEM_TYPE: {"schema": schema}}}


def file_body(media_types: Iterable[str]) -> dict[str, Any]:
    """A route's body that is a file of one of these types, for its `openapi_extra`."""
    file = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": dict.fromkeys(media_types, file)}}


def accept(response: Response, path: str) -> None:
    """Answer with 202: the work goes on, and `path` tells its progress."""
    response.status_code = HTTP_202_ACCEPTED
    response.headers["location"] = quote(path)
    response.headers["retry-after"] = "1"


# What a body of JSON may raise beside faults of its syntax; the first that fits counts.
_UNREADABLE: dict[type[Exception], str] = {
    UnicodeDecodeError: "the body is not UTF-8",
    RecursionError: "the body is nested too deeply",
    ValueError: "the body has a number of too many digits",
}

_TITLES = {
    400: "The request is not JSON, or a header is malformed.",
    401: "The API key is missing or not one of ours.",
    403: "The API key lacks the right.",
    404: "There is none of that name, or none that this key may read.",
    409: "What is there was made otherwise; nothing was changed.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "Nothing of that media type is read; `errors` names those that are.",
    422: "A field is missing or outside its limits; `errors` names it.",
    429: "Too many requests in flight, or by this key; `Retry-After` says when to come again.",
    500: "The service failed; its log has the details.",
    503: "The service is not ready.",
    504: "The deadline passed.",
}


def create_app(
    *,
    summary: str,
    settings: KitSettings,
    lifespan: Lifespan,
    router: APIRouter,
    ready: Ready,
    metrics: Metrics,
    admission: Admission | None = None,
    guard: Guard | None = None,
    min_deadline_s: float = 0.0,
    files: frozenset[str] = frozenset(),
) -> FastAPI:
    """A service of a router, with `/healthz` (no I/O), `/readyz`, `/metrics`, `/openapi.json`, problem documents for
    all errors, and the deadline.

    Args:
        lifespan: loads and warms the model, and yields the typed state that handlers get by `state_of`.
        ready: the answer of `/readyz`, by the state, given without computing anything.
        metrics: of the service, whose name they have.
        admission, guard, files: as `DeadlineMiddleware` has them; without a guard the mesh's token is asked for, if
            there is one.
        min_deadline_s: the least deadline; 0 where callers are services, which know their time.
    """
    app = FastAPI(
        title=f"Cragmesh {metrics.service}",
        summary=summary,
        version="1",
        lifespan=_trimmed(lifespan),
        responses=documented(400, 408, 413, 415, 422, 429, 500, 503, 504),
        generate_unique_id_function=lambda route: route.name,
        # FastAPI's own pages load scripts from elsewhere, which would run where the page keeps a key.
        docs_url=None,
        redoc_url=None,
        # Many clients make `/collections/notes/` of `/collections/notes/documents/..`, and follow with DELETE.
        redirect_slashes=False,
    )
    app.include_router(router)
    app.include_router(_probes(ready, metrics))
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(MeshError, _mesh_error)
    app.add_middleware(
        DeadlineMiddleware,
        metrics=metrics,
        max_s=settings.max_deadline_s,
        min_s=min_deadline_s,
        max_body=settings.max_body_mib * 1024 * 1024,
        admission=admission,
        guard=guard or mesh_guard(settings.mesh_token),
        files=files,
    )
    _define_problem(app)
    return app


def _trimmed(lifespan: Lifespan) -> Lifespan:
    @contextlib.asynccontextmanager
    async def trimmed(app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        async with lifespan(app) as state:
            # Loading and warming up have freed much memory.
            trim()
            yield state

    return trimmed


def _define_problem(app: FastAPI) -> None:
    """Add the schema of problems to the documentation: FastAPI collects only models of `application/json`."""
    schema = Problem.model_json_schema(ref_template=SCHEMA_REF)
    schemas = {**schema.pop("$defs"), "Problem": schema}
    document = app.openapi

    def openapi() -> dict[str, Any]:
        content = document()
        content.setdefault("components", {}).setdefault("schemas", {}).update(schemas)
        return content

    app.openapi = openapi  # type: ignore[method-assign]


def _probes(ready: Ready, metrics: Metrics) -> APIRouter:
    probes = APIRouter(tags=["operations"])

    @probes.get("/healthz", summary="Whether the process is alive.")
    async def healthz() -> dict[str, str]:
        return {"service": metrics.service, "status": "alive"}

    @probes.get(
        "/readyz",
        summary="Whether the model has answered a warm-up.",
        responses={503: {"model": Readiness, "description": "Not ready; `detail` says why."}},
    )
    async def readyz(response: Response, state: Annotated[Any, Depends(state_of)]) -> Readiness:
        readiness = await ready(state)
        response.status_code = 200 if readiness.ready else 503
        return readiness

    @probes.get("/metrics", summary="Prometheus metrics.", response_class=Response)
    async def scrape() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return probes


async def _invalid(_: Request, error: Any) -> Response:
    return problem_reply(invalid(error))


def invalid(error: RequestValidationError) -> Problem:
    """The problem document of an invalid request, with an error per field."""
    details = error.errors()
    if isinstance(error.body, bytes):
        # FastAPI parses no body of another type than JSON's.
        return UnsupportedMediaType(JSON).problem(request_id())
    if any(item["type"] == "json_invalid" for item in details):
        return _unreadable("the body is not JSON")
    # The first part says body, query or path; the client knows it by the field's own name.
    located = [item | {"loc": item["loc"][1:]} for item in details]
    # A form is neither; its fields are called as their places say.
    of_body = isinstance(error.body, dict | list) and all(item["loc"][0] == "body" for item in details)
    fields = field_errors(located, error.body if of_body else UNKNOWN)
    detail = "; ".join(f"{item.field or 'body'}: {item.message}" for item in fields[:3])
    return Problem(title="Invalid request", status=422, detail=detail, errors=fields, request_id=request_id())


async def _http_error(_: Request, error: Any) -> Response:
    # FastAPI tells nothing but that it could not parse the body.
    for cause, detail in _UNREADABLE.items():
        if isinstance(error.__cause__, cause):
            return problem_reply(_unreadable(detail))
    return problem_reply(Problem(title=error.detail, status=error.status_code, request_id=request_id()), error.headers)


def _unreadable(detail: str) -> Problem:
    return Problem(title="Invalid request", status=400, detail=detail, request_id=request_id())


async def _mesh_error(_: Request, error: Any) -> Response:
    return problem_reply(error.problem(request_id()), error.headers)


def _refuse(protocol: Any, _: str) -> None:
    detail = "this is no HTTP, or its address and headers are longer than 64 KiB"
    body = problem_body(Problem(title="Bad Request", status=400, detail=detail))
    lines = (f"content-type: {PROBLEM_TYPE}", f"content-length: {len(body)}", "connection: close", "", "")
    protocol.transport.write("\r\n".join(("HTTP/1.1 400 Bad Request", *lines)).encode() + body)
    protocol.transport.close()


# Refuses what no application sees by a problem document; uvicorn would answer in plain text.
HTTP = type("HTTP", (AutoHTTPProtocol,), {"send_400_response": _refuse})


class GracefulServer(uvicorn.Server):
    """A server that announces on its connections that it will close them; the options are of `uvicorn.Config`.

    uvicorn closes idle connections as soon as it is told to stop, and loses requests that are on their way.
    """

    def __init__(self, app: ASGIApp, **options: Any) -> None:
        super().__init__(uvicorn.Config(self._answer, interface="asgi3", http=HTTP, **options))
        self._app = app
        self._closing = False

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing = True
        for _ in range(int(min(CLOSING_S, self.config.timeout_graceful_shutdown or 0) / POLL_S)):
            if self.force_exit or not self.server_state.connections:
                break
            await asyncio.sleep(POLL_S)
        await super().shutdown(sockets)
        flush_spans()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def announce(message: Message) -> None:
            if self._closing and message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, announce)


def serve(app: FastAPI, settings: KitSettings, *, service: str, port: int) -> None:
    """Run a service until it is told to stop, and finish the requests in flight."""
    configure_logging(service, settings.log_level)
    configure_tracing(service, settings.otlp_endpoint)
    server = GracefulServer(
        app,
        host=settings.host,
        port=port,
        log_config=None,
        access_log=False,
        # Load balancers keep an idle connection for 60 s, and lose requests sent into one that closes sooner.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=settings.graceful_shutdown_s,
        server_header=False,
        backlog=512,
    )
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)
