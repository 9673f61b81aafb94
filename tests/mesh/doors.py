"""Every door of the gateway, asked as a server calls it, over canned services."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from lab.goldens.canned import Canned
from lab.goldens.cases import load
from lab.goldens.strategies import SETTINGS
from services.gateway.app import create_app
from services.gateway.settings import GatewaySettings

BUDGET_S = 5.0
QUERY = "Who designed the harbour lighthouse?"
ANSWER = "Marta Lindqvist"
ASKED = {"query": QUERY, "collection": "harbours", "budget_s": BUDGET_S}
CHAT = {"messages": [{"role": "user", "content": QUERY}], "budget_s": BUDGET_S, "model": "cragmesh/adaptive@harbours"}
AGENT = {"accept": "application/json, text/event-stream"}
# As the SDK's client of the protocol of July 2026 sends it; without them it is one that shakes hands.
NEW_AGENT = AGENT | {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "answer"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Reply:
    """What came back; a status of 0 where nobody was there any more to hear it."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    seconds: float = 0.0

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def events(self) -> list[Any]:
        """The JSON of each event of a stream, or of a reply in one piece."""
        text = self.content.decode()
        return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")] or [json.loads(text)]


@dataclass(frozen=True)
class Door:
    """A request that a door takes.

    Attributes:
        service: the one that it cannot do without.
        read: of a question's reply, the answer and which services it lacked.
    """

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    service: str = "retriever"
    read: Callable[[Reply], tuple[str, set[str]]] = lambda _: ("", set())


def answer(reply: Reply) -> tuple[str, set[str]]:
    body = reply.events[-1]
    return body["answer"], {item["stage"] for item in body["degraded"]}


def chat(reply: Reply) -> tuple[str, set[str]]:
    choices = [choice for event in reply.events for choice in event["choices"]]
    said = "".join((choice.get("message") or choice["delta"]).get("content", "") for choice in choices)
    account = next(event["cragmesh"] for event in reply.events if "cragmesh" in event)
    return said, {item["stage"] for item in account["degraded"]}


def agent(reply: Reply) -> tuple[str, set[str]]:
    result = reply.json["result"]["structuredContent"]
    return result["answer"], {item.partition(":")[0] for item in result["missing"]}


def tool(name: str, arguments: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, **more}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


TOLD = {"question": QUERY, "collection": "harbours", "budget_s": BUDGET_S}
QUESTIONS = {
    "answer": Door("POST", "/answer", ASKED, {}, "generator", answer),
    "stages": Door("POST", "/answer", ASKED, {"accept": "text/event-stream"}, "generator", answer),
    "chat": Door("POST", "/v1/chat/completions", CHAT, {}, "generator", chat),
    "chat stream": Door("POST", "/v1/chat/completions", CHAT | {"stream": True}, {}, "generator", chat),
    "agent": Door("POST", "/mcp", tool("answer", TOLD), AGENT, "generator", agent),
    "new agent": Door("POST", "/mcp", tool("answer", TOLD, _meta=META), NEW_AGENT, "generator", agent),
}
PAPERS = Door("POST", "/papers", ASKED)
ONE = "/collections/harbours/documents/a%2Fb.pdf"
TEXT = {"documents": [{"id": "a", "text": "The light of Port Ansel is 43 metres tall."}]}
DOCUMENTS = {
    "collections": Door("GET", "/collections"),
    "collection": Door("GET", "/collections/harbours"),
    "make": Door("PUT", "/collections/harbours", {}),
    "drop": Door("DELETE", "/collections/harbours"),
    "search": Door("POST", "/collections/harbours/search", {"queries": [QUERY]}),
    "list": Door("GET", "/collections/harbours/documents"),
    "document": Door("GET", ONE),
    "put": Door("PUT", ONE, '"The light."', {"content-type": "text/plain"}),
    "delete": Door("DELETE", ONE),
    "texts": Door("POST", "/collections/harbours/documents", TEXT),
    "moves": Door("POST", "/collections/harbours/moves", {"moves": [{"id": "a", "to": "b"}]}),
}
TOOLS = {
    "search tool": Door("POST", "/mcp", tool("search", {"query": QUERY, "collection": "harbours"}), AGENT),
    "kg tool": Door("POST", "/mcp", tool("kg", {"question": QUERY}), AGENT, "kg"),
}
OWN = {
    "models": Door("GET", "/v1/models", service=""),
    "feedback": Door("POST", "/feedback", {"request_id": "x", "verdict": "right"}, service=""),
    "files": Door("GET", "/v1/files", service=""),
    "batches": Door("POST", "/v1/batches", {"input_file_id": "x"}, service=""),
}
CALLING = QUESTIONS | {"papers": PAPERS} | DOCUMENTS | TOOLS
DOORS = CALLING | OWN


class Watched(Canned):
    """Canned services that know how many calls they are at."""

    under_way = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.under_way += 1
        try:
            return await super().handle_async_request(request)
        finally:
            self.under_way -= 1


class Gateway:
    """A gateway over canned services, called as a server calls it."""

    def __init__(self, app: Any, state: Mapping[str, Any], services: Watched) -> None:
        self.app, self.state, self.services = app, state, services

    async def ask(self, door: Door, headers: Mapping[str, str] = {}, *, leave_after_s: float = 1e9) -> Reply:
        content = door.body if isinstance(door.body, str) else "" if door.body is None else json.dumps(door.body)
        sent = {"host": "gateway", "content-type": "application/json", **door.headers, **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": door.method,
            "scheme": "http",
            "path": door.path.replace("%2F", "/"),
            "raw_path": door.path.encode(),
            "query_string": b"",
            "headers": [(key.encode(), value.encode()) for key, value in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("gateway", 80),
            "state": dict(self.state),
        }
        incoming = iter(
            [{"type": "http.request", "body": content.encode(errors="surrogateescape"), "more_body": False}]
        )
        messages: list[Any] = []

        async def receive() -> Any:
            if message := next(incoming, None):
                return message
            await asyncio.sleep(leave_after_s)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            messages.append(message)

        began = asyncio.get_running_loop().time()
        await self.app(scope, receive, send)
        seconds = asyncio.get_running_loop().time() - began
        start: Any = messages[0] if messages else {"status": 0, "headers": []}
        said = {key.decode().lower(): value.decode() for key, value in start["headers"]}
        return Reply(start["status"], said, b"".join(message.get("body", b"") for message in messages[1:]), seconds)


@asynccontextmanager
async def opened(services: Watched | None = None, **settings: Any) -> AsyncIterator[Gateway]:
    services = services or Watched(load()[0])
    given = SETTINGS | {"abstain": False, "breaker_threshold": 100} | settings
    app = create_app(GatewaySettings(**given, _env_file=None), transport=services)
    async with app.router.lifespan_context(app) as state:
        yield Gateway(app, state or {}, services)
