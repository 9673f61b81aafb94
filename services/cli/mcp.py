"""`cragmesh mcp`: the gateway's tools on standard input and output, for agents that start their servers themselves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from services.cli.caller import bearer
from services.cli.console import fail
from services.cli.ending import UNREACHABLE, settings_of
from services.cli.services import root
from services.cli.settings import CliSettings
from services.kit.concurrency import beside
from services.kit.settings import MeshUrls

if TYPE_CHECKING:
    from mcp import Client
    from mcp.server import Server
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

Reply = TypeVar("Reply")

CONNECT_S = 10.0


def mcp() -> None:
    """Serve the Model Context Protocol on stdio: what the gateway has at `/mcp`, with its key from CRAGMESH_API_KEY."""
    url, key = f"{root('gateway', settings_of(MeshUrls))}/mcp", settings_of(CliSettings).api_key
    try:
        asyncio.run(_serve(url, key))
    except KeyboardInterrupt:
        return
    except Exception as error:
        fail(_unreachable(_first(error)), UNREACHABLE)


def _first(error: Exception) -> Exception:
    """What happened: a task group's exceptions hide it behind its own name."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _unreachable(error: Exception) -> str:
    return f"the gateway cannot be reached: {error or type(error).__name__}"


async def _serve(url: str, api_key: str) -> None:
    import httpx2
    from mcp import Client, stdio_server
    from mcp.client.streamable_http import streamable_http_client

    # An answer takes up to 30 s, which the gateway sees to.
    timeout = httpx2.Timeout(60.0, connect=CONNECT_S)
    async with httpx2.AsyncClient(headers=bearer(api_key), timeout=timeout, trust_env=False) as http:

        def connect() -> Client:
            return Client(streamable_http_client(url, http_client=http))

        async with connect() as gateway:
            server = forward(connect, gateway.instructions)
        async with (
            stdio_server() as (incoming, outgoing),
            answering_all(incoming, outgoing) as (requests, replies),
        ):
            await server.run(requests, replies, server.create_initialization_options())


@asynccontextmanager
async def answering_all(
    incoming: "ReadStream[SessionMessage | Exception]", outgoing: "WriteStream[SessionMessage]"
) -> "AsyncIterator[tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]]":
    """The same streams, but that the requests end when each has its reply: the SDK's server drops its work at the end.

    An agent may close its side as soon as it has sent its last call.
    """
    import anyio
    import mcp_types as types
    from mcp.shared.message import SessionMessage

    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
    replies, from_server = anyio.create_memory_object_stream[SessionMessage]()
    under_way = set[Any]()
    replied = asyncio.Event()

    def settle(id: Any) -> None:
        under_way.discard(id)
        replied.set()

    async def read() -> None:
        async with incoming, to_server:
            async for item in incoming:
                match item.message if isinstance(item, SessionMessage) else None:
                    case types.JSONRPCRequest(id=id):
                        under_way.add(id)
                    case types.JSONRPCNotification(method="notifications/cancelled", params=params):
                        # It gets no reply.
                        settle((params or {}).get("requestId"))
                await to_server.send(item)
            while under_way:
                replied.clear()
                await replied.wait()

    async def write() -> None:
        async with outgoing, from_server:
            async for item in from_server:
                await outgoing.send(item)
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                    settle(item.message.id)

    async with beside(read()), beside(write()):
        yield requests, replies


def forward(connect: "Callable[[], Client]", instructions: str | None) -> "Server[Any]":
    """A server that has the gateway's tools and resources, and asks it for each.

    Args:
        connect: a connection for one call: one that outlived the gateway's restart would answer no other.
    """
    import mcp_types as types
    from mcp import MCPError
    from mcp.server import Server

    async def ask(call: "Callable[[Client], Awaitable[Reply]]") -> Reply:
        try:
            async with connect() as gateway:
                return await call(gateway)
        except Exception as failure:
            error = _first(failure)
            if isinstance(error, MCPError):
                raise error from None
            raise MCPError(types.INTERNAL_ERROR, _unreachable(error)) from error

    async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return await ask(lambda gateway: gateway.list_tools())

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await ask(lambda gateway: gateway.call_tool(params.name, params.arguments))

    async def list_resources(_: Any, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return await ask(lambda gateway: gateway.list_resources())

    async def list_templates(_: Any, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        return await ask(lambda gateway: gateway.list_resource_templates())

    async def read_resource(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await ask(lambda gateway: gateway.read_resource(str(params.uri)))

    return Server(
        "cragmesh",
        version="1",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
