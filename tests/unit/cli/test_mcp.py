"""`cragmesh mcp` as an agent starts it: a process on stdio that forwards to a gateway on this machine."""

import asyncio
import contextlib
import json
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.server.mcpserver import MCPServer
from typer.testing import CliRunner

from services.cli.main import app
from tests.unit.lab.evaluator.conftest import environment

pytestmark = pytest.mark.anyio

SHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
CALL = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": SHAKE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "answer", "arguments": {"question": "slowly, who?"}},
    },
)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A socket that clients can connect to before a server reads from it."""
    with listener(0) as one:
        yield one


def listener(port: int) -> socket.socket:
    """A socket that listens, also where one that has ended did."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    one.listen()
    return one


def commanded(url: str) -> Client:
    """An agent's client of the command, to be opened."""
    arguments = ["-m", "services.cli", "mcp"]
    return Client(stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=environment(url))))


@pytest.fixture
def gateway() -> MCPServer:
    """A gateway's tools: one that answers, after half a second where the question asks for it."""
    gateway = MCPServer("gateway", instructions="Ask.")

    @gateway.tool()
    async def answer(question: str) -> str:
        await asyncio.sleep(0.5 * question.startswith("slowly"))
        return f"an answer to {question}"

    return gateway


@asynccontextmanager
async def serving(gateway: MCPServer, listening: socket.socket) -> AsyncIterator[str]:
    """The address of a gateway with these tools."""
    tools = gateway.streamable_http_app(stateless_http=True, json_response=True)
    server = uvicorn.Server(uvicorn.Config(tools, log_config=None))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


async def test_an_agent_calls_the_gateways_tools_over_stdio(gateway: MCPServer, listening: socket.socket) -> None:
    @gateway.resource("cragmesh://collections")
    async def collections() -> str:
        return "notes"

    async with serving(gateway, listening) as url, commanded(url) as client:
        assert client.instructions == "Ask."
        assert [tool.name for tool in (await client.list_tools()).tools] == ["answer"]
        result = await client.call_tool("answer", {"question": "who?"})
        assert result.content[0].text == "an answer to who?"  # type: ignore[union-attr]
        read = await client.read_resource("cragmesh://collections")
        assert read.contents[0].text == "notes"  # type: ignore[union-attr]


async def test_a_gateway_that_restarts_costs_the_calls_meanwhile_alone(
    gateway: MCPServer, listening: socket.socket
) -> None:
    port = listening.getsockname()[1]
    async with contextlib.AsyncExitStack() as agent:
        async with serving(gateway, listening) as url:
            client = await agent.enter_async_context(commanded(url))
            await client.call_tool("answer", {"question": "who?"})
        listening.close()
        for _ in range(2):
            with pytest.raises(MCPError, match="the gateway cannot be reached"):
                await client.call_tool("answer", {"question": "who?"})
        with listener(port) as again:
            async with serving(gateway, again):
                result = await client.call_tool("answer", {"question": "who?"})
    assert result.content[0].text == "an answer to who?"  # type: ignore[union-attr]


async def test_a_call_is_answered_whose_agent_closes_its_side_at_once(
    gateway: MCPServer, listening: socket.socket
) -> None:
    async with serving(gateway, listening) as url:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.cli", "mcp"), env=environment(url), stdin=PIPE, stdout=PIPE
        )
        output, _ = await process.communicate("".join(json.dumps(message) + "\n" for message in CALL).encode())
    replies = {reply["id"]: reply for reply in map(json.loads, output.splitlines())}
    assert replies[2]["result"]["content"][0]["text"] == "an answer to slowly, who?"
    assert process.returncode == 0


def test_without_a_gateway_it_says_so() -> None:
    done = CliRunner().invoke(app, ["mcp"], env={"CRAGMESH_GATEWAY_URL": "http://127.0.0.1:9"})
    assert done.exit_code == 3
    assert "the gateway cannot be reached" in done.stderr
