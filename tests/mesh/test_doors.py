"""Every door of the gateway, over canned services and a virtual clock: faults, the budget, hang-ups, refusals."""

import asyncio
import functools
import itertools
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from structlog.testing import capture_logs

from lab.goldens import virtual
from lab.goldens.canned import Canned
from lab.goldens.cases import load
from lab.goldens.strategies import SERVICES, SETTINGS
from services.gateway.access import RULES
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
    read: Callable[[Reply], tuple[str, set[str]]] = lambda reply: (
        "",
        {item["stage"] for item in reply.json["degraded"]},
    )


def _answer(reply: Reply) -> tuple[str, set[str]]:
    body = reply.events[-1]
    return body["answer"], {item["stage"] for item in body["degraded"]}


def _chat(reply: Reply) -> tuple[str, set[str]]:
    choices = [choice for event in reply.events for choice in event["choices"]]
    said = "".join((choice.get("message") or choice["delta"]).get("content", "") for choice in choices)
    account = next(event["cragmesh"] for event in reply.events if "cragmesh" in event)
    return said, {item["stage"] for item in account["degraded"]}


def _agent(reply: Reply) -> tuple[str, set[str]]:
    result = reply.json["result"]["structuredContent"]
    return result["answer"], {item.partition(":")[0] for item in result["missing"]}


def tool(name: str, arguments: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, **more}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


TOLD = {"question": QUERY, "collection": "harbours", "budget_s": BUDGET_S}
QUESTIONS = {
    "answer": Door("POST", "/answer", ASKED, {}, "generator", _answer),
    "stages": Door("POST", "/answer", ASKED, {"accept": "text/event-stream"}, "generator", _answer),
    "chat": Door("POST", "/v1/chat/completions", CHAT, {}, "generator", _chat),
    "chat stream": Door("POST", "/v1/chat/completions", CHAT | {"stream": True}, {}, "generator", _chat),
    "agent": Door("POST", "/mcp", tool("answer", TOLD), AGENT, "generator", _agent),
    "new agent": Door("POST", "/mcp", tool("answer", TOLD, _meta=META), NEW_AGENT, "generator", _agent),
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
        incoming = iter([{"type": "http.request", "body": content.encode(), "more_body": False}])
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


def virtually(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test under the virtual clock."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        with capture_logs():
            virtual.run(test(**fixtures))

    return run


@asynccontextmanager
async def opened(**settings: Any) -> AsyncIterator[Gateway]:
    services = Watched(load()[0])
    given = SETTINGS | {"abstain": False, "breaker_threshold": 100} | settings
    app = create_app(GatewaySettings(**given, _env_file=None), transport=services)
    async with app.router.lifespan_context(app) as state:
        yield Gateway(app, state or {}, services)


def refusal(door: Door, reply: Reply) -> str:
    """What a refusal says, in the door's own form."""
    if door.path.startswith("/v1/"):
        assert set(reply.json) == {"error"}
        return str(reply.json["error"]["message"])
    if door.path == "/mcp":
        assert (reply.json["jsonrpc"], reply.json["id"]) == ("2.0", None)
        return str(reply.json["error"]["message"])
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["status"] == reply.status
    return str(reply.json["detail"])


@virtually
async def test_a_question_is_answered_in_time_and_says_what_was_missing() -> None:
    """`test_faults.py` has more faults, in front of the real services."""
    broken = [*itertools.product(SERVICES, ("down", "hanging")), ("generator", "garbage"), ("generator", "429")]
    async with opened() as gateway:
        for (name, door), (service, fault) in itertools.product(QUESTIONS.items(), broken):
            gateway.services.faults = {service: fault}
            reply = await gateway.ask(door)
            told = f"{name}: {service} is {fault}"
            assert (reply.status, gateway.services.under_way) == (200, 0), told
            assert reply.seconds <= BUDGET_S, told
            said, missing = door.read(reply)
            assert service in missing, told
            assert (said == ANSWER) is (service != "generator"), told
        for fault in ("down", "hanging"):
            gateway.services.faults = dict.fromkeys(SERVICES, fault)
            for name, door in QUESTIONS.items():
                reply = await gateway.ask(door, {"x-deadline-ms": "500"})
                assert reply.seconds <= 0.5, name
                assert "i don't know" in door.read(reply)[0].lower(), name


@virtually
async def test_papers_are_found_in_time_and_say_what_was_missing() -> None:
    async with opened() as gateway:
        for service, fault in itertools.product(("retriever", "reranker", "generator"), ("down", "hanging", "garbage")):
            gateway.services.faults = {service: fault}
            reply = await gateway.ask(PAPERS)
            assert reply.status == 200
            assert reply.seconds <= BUDGET_S
            assert reply.json["degraded"], (service, fault)


@virtually
async def test_what_rests_on_one_service_says_in_time_that_it_failed() -> None:
    statuses = {"down": 503, "hanging": 504, "garbage": 503, "500": 503, "503": 503, "429": 429}
    async with opened() as gateway:
        for (name, door), fault in itertools.product((DOCUMENTS | TOOLS).items(), statuses):
            gateway.services.faults = {door.service: fault}
            reply = await gateway.ask(door, {"x-deadline-ms": "5000"})
            assert reply.seconds <= BUDGET_S, (name, fault)
            if name in TOOLS:
                result = reply.json["result"]
                assert (result["isError"], door.service in result["content"][0]["text"]) == (True, True), result
            # A deletion's reply says nothing.
            elif (fault, door.method) != ("garbage", "DELETE"):
                assert reply.status == statuses[fault], (name, fault)
                assert "retriever" in refusal(door, reply)
                assert ("retry-after" in reply.headers) is (fault == "429")


@virtually
async def test_who_hangs_up_stops_the_work() -> None:
    async with opened() as gateway:
        for name, door in CALLING.items():
            gateway.services.faults = {door.service: "hanging"}
            asking = asyncio.create_task(gateway.ask(door, leave_after_s=2.0))
            await asyncio.sleep(1.9)
            assert gateway.services.under_way == 1, name
            reply = await asking
            assert gateway.services.under_way == 0, name
            assert reply.seconds < 2.1, name
            assert reply.status == 0 or "stream" in reply.headers["content-type"], name
        metrics = (await gateway.ask(Door("GET", "/metrics"))).content.decode()
        assert f'cut_short_total{{cause="hang-up",service="gateway"}} {len(CALLING)}.0' in metrics


@virtually
async def test_a_rate_is_told_in_each_doors_own_form() -> None:
    async with opened(api_key="sk-test", rate_per_minute=1) as gateway:
        key = {"authorization": "Bearer sk-test"}
        await gateway.ask(OWN["models"], key)
        for name, door in DOORS.items():
            reply = await gateway.ask(door, key)
            assert reply.status == 429, name
            assert 0 < int(reply.headers["retry-after"]) <= 60, name
            assert "a minute" in refusal(door, reply), name
            assert (await gateway.ask(door)).status == 401, name


@virtually
async def test_a_full_gateway_says_so_in_each_doors_own_form() -> None:
    writing = [door for door in DOORS.values() if door.method != "GET"]

    async with opened(gateway_max_in_flight=1) as gateway:
        gateway.services.faults = {"generator": "hanging"}
        asking = asyncio.create_task(gateway.ask(QUESTIONS["answer"]))
        await asyncio.sleep(1)
        for door, reply in zip(writing, await asyncio.gather(*map(gateway.ask, writing)), strict=True):
            assert (reply.status, "retry-after" in reply.headers) == (429, True), door
            assert "in flight" in refusal(door, reply), door
        assert (await asking).status == 200


@virtually
async def test_a_batch_holds_the_budget_of_each_of_its_questions(tmp_path: Path) -> None:
    """And one that is cancelled while it is answered holds nobody up."""
    parts = (
        '--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        '--x\r\ncontent-disposition: form-data; name="file"; filename="q.jsonl"\r\n\r\n%s\r\n--x--\r\n'
    )
    line = {"custom_id": "q", "method": "POST", "url": "/v1/chat/completions", "body": CHAT}
    multipart = {"content-type": "multipart/form-data; boundary=x"}

    async with opened(batches_database=f"sqlite:///{tmp_path / 'batches.sqlite'}") as gateway:
        for service in SERVICES:
            gateway.services.faults = {service: "hanging"}
            file = await gateway.ask(Door("POST", "/v1/files", parts % json.dumps(line), multipart))
            wanted = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
            batch = await gateway.ask(Door("POST", "/v1/batches", wanted | {"input_file_id": file.json["id"]}))
            await asyncio.sleep(BUDGET_S + 1)
            ended = (await gateway.ask(Door("GET", f"/v1/batches/{batch.json['id']}"))).json
            assert ended["status"] == "completed", (service, ended)
            content = await gateway.ask(Door("GET", f"/v1/files/{ended['output_file_id']}/content"))
            said, missing = _chat(Reply(200, {}, json.dumps(content.json["response"]["body"]).encode()))
            assert (service in missing, said == ANSWER) == (True, service != "generator")


def test_each_route_that_works_is_a_door_here() -> None:
    def shape(method: str, path: str) -> tuple[str, ...]:
        return (method, *("*" if "{" in part else part for part in path.split("/")))

    quiet = {"/v1/files", "/v1/batches", "/mcp", "/v1/models"}
    tried = {shape(door.method, path) for door in DOORS.values() for path in [door.path]}
    rules = {shape(*rule) for rule, right in RULES.items() if right and not any(map(rule[1].startswith, quiet))}
    named = {tuple("*" if part in ("harbours", "a%2Fb.pdf") else part for part in one) for one in tried}
    assert rules <= named, rules - named
