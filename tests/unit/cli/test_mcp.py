"""`cragmesh mcp` as an agent starts it: a process on stdio that forwards to a gateway on this machine."""

import asyncio
import socket
import sys
from collections.abc import Iterator

import pytest
import uvicorn
from mcp import Client, StdioServerParameters, stdio_client
from mcp.server.mcpserver import MCPServer
from typer.testing import CliRunner

from services.cli.main import app
from tests.unit.lab.evaluator.conftest import environment

pytestmark = pytest.mark.anyio


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A socket that clients can connect to before a server reads from it."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        yield one


async def test_an_agent_calls_the_gateways_tools_over_stdio(listening: socket.socket) -> None:
    gateway = MCPServer("gateway", instructions="Ask.")

    @gateway.tool()
    async def answer(question: str) -> str:
        return f"an answer to {question}"

    @gateway.resource("cragmesh://collections")
    async def collections() -> str:
        return "notes"

    tools = gateway.streamable_http_app(stateless_http=True, json_response=True)
    server = uvicorn.Server(uvicorn.Config(tools, log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "services.cli", "mcp"], env=environment(url)
        )
        async with Client(stdio_client(command)) as client:
            assert client.instructions == "Ask."
            assert [tool.name for tool in (await client.list_tools()).tools] == ["answer"]
            result = await client.call_tool("answer", {"question": "who?"})
            assert result.content[0].text == "an answer to who?"  # type: ignore[union-attr]
            read = await client.read_resource("cragmesh://collections")
            assert read.contents[0].text == "notes"  # type: ignore[union-attr]
    finally:
        server.should_exit = True
        await serving


def test_without_a_gateway_it_says_so() -> None:
    done = CliRunner().invoke(app, ["mcp"], env={"CRAGMESH_GATEWAY_URL": "http://127.0.0.1:9"})
    assert done.exit_code == 3
    assert "the gateway cannot be reached" in done.stderr
