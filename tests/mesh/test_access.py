"""Who may read what, as an attacker sees it: every route with every kind of key, and no key's documents by any door."""

import itertools
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from fastapi import APIRouter
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from proto.collections import Filter
from services.gateway import access, app
from services.gateway.access import OWNER, RULES, Scope
from services.gateway.settings import GatewaySettings
from tests.keys import bearer, write_keys
from tests.mesh.conftest import Services, alone, fill

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SECRET = "The vault of the harbour office opens with the words pelican and marmalade."  # noqa: S105 - a test's
TEXTS = {
    ("notes", "ops-1", "ops"): SECRET,
    ("notes", "hr-1", "hr"): "The harbour office pays its keepers on the last Friday of the month.",
    ("notes", "none", ""): "The harbour office moved to the vault in 1931, says nobody's note about pelican.",
    ("safe", "v-1", "hr"): SECRET,
}
KEYS = {
    "owner": OWNER,
    "plain": Scope(),
    "hr": Scope(collections=("notes",), filters=(Filter(field="team", equals="hr"),)),
    "reader": Scope(collections=("notes",)),
    "writer": Scope(collections=("notes",), rights=frozenset({"ask", "write"})),
    "operator": Scope(collections=("notes",), rights=frozenset({"operate"})),
    "nothing": Scope(collections=(), rights=frozenset()),
}
QUERY = "which words open the vault of the harbour office?"


@pytest.fixture(scope="module")
async def services(running: dict[str, Any]) -> Services:
    """The retriever, with collections of documents of two teams and of none, and a careless generator, that says what
    it is shown; nothing else is there."""
    for collection in ("notes", "safe"):
        documents = [
            {"id": id, "title": f"{name} {id}", "text": text, "fields": {"team": team} if team else {}}
            for (name, id, team), text in TEXTS.items()
            if name == collection
        ]
        await fill(running["retriever"], collection, *documents)
    return alone(
        lambda body: next((text for text in TEXTS.values() if text in str(body["messages"])), "no"),
        retriever=running["retriever"],
    )


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_keys(tmp_path_factory.mktemp("keys") / "keys", KEYS)


@pytest.fixture
async def gateway(services: Services, keys: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with services.usual(api_keys_file=keys, abstain=False) as client:
        yield client


async def post(gateway: httpx.AsyncClient, key: str, path: str, **body: Any) -> httpx.Response:
    return await gateway.post(path, json=body, headers=bearer(key))


def address(path: str) -> str:
    return re.sub(r"{[^}]*}", "absent", path)


def test_a_route_without_a_rule_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = APIRouter()
    extra.add_api_route("/dump", lambda: "all", methods=["GET"])
    monkeypatch.setattr(app, "openai", extra)
    with pytest.raises(ValueError, match="GET /dump"):
        app.create_app(GatewaySettings())


async def test_every_route_asks_for_the_right_of_its_rule(services: Services, keys: Path) -> None:
    made = app.create_app(GatewaySettings())
    # Every operation of the OpenAPI document, and what it leaves out.
    documented = {(method.upper(), path) for path, methods in made.openapi()["paths"].items() for method in methods}
    routes = documented | {item for item in access.operations(made.routes) if item[0] != "HEAD"}
    async with services.gateway(api_keys_file=keys, page=True) as gateway:
        for (method, path), key in itertools.product(routes, ("", "wrong", *KEYS)):
            right = RULES[next(rule for rule in RULES if rule[0] == method and address(rule[1]) == address(path))]
            # A body that no route takes, so that what is let in does nothing.
            headers = bearer(key) | {"accept": "application/json"}
            status = (await gateway.request(method, address(path), content=b"[", headers=headers)).status_code
            if right is None or (key in KEYS and right in KEYS[key].rights):
                assert status not in (401, 403), (method, path, key)
            else:
                assert status == (403 if key in KEYS else 401), (method, path, key)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        *(({"host": host}, 200) for host in ("gateway.mesh.svc:8000", "gateway.mesh.svc.cluster.local", "")),
        # A browser marks nothing that it reads from what it takes for the page's own place.
        ({"host": "evil.example:8000"}, 403),
        *(
            ({"host": host, "origin": f"http://{host}"}, 200)
            for host in ("localhost:8000", "127.0.0.1:8000", "[::1]:8000", "gateway:8000", "pi.local", "crag.example")
        ),
        ({"host": "gateway:8000", "origin": "https://Crag.example"}, 200),
        ({"host": "localhost:8000", "sec-fetch-site": "cross-site"}, 200),
        ({"host": "evil.example:8000", "origin": "http://evil.example:8000"}, 403),
        ({"host": "127.0.0.1.evil.example", "sec-fetch-site": "same-origin"}, 403),
        # Proxies leave the port out, or name the gateway otherwise.
        ({"host": "localhost", "origin": "http://localhost:9000"}, 200),
        ({"host": "gateway:8000", "origin": "http://localhost:9000", "sec-fetch-site": "same-origin"}, 200),
        ({"host": "gateway:8000", "origin": "http://[2001:db8::1]"}, 200),
        *(({"host": "localhost:8000", "origin": o}, 403) for o in ("http://evil.example", "http://[", "null")),
    ],
)
async def test_pages_of_other_sites_reach_no_gateway_without_a_key(
    services: Services, headers: dict[str, str], status: int
) -> None:
    async with services.usual(hosts="crag.example, other.example:8443,[2001:db8::1]") as gateway:
        for method, path in (("GET", "/strategies"), ("POST", "/answer"), ("POST", "/mcp")):
            reply = await gateway.request(method, path, content=b"[", headers=headers)
            assert (reply.status_code == 403) is (status == 403), (path, reply.text)
        assert status == 200 or "CRAGMESH_HOSTS" in reply.text


async def test_with_keys_a_page_shows_one_wherever_it_is_from(gateway: httpx.AsyncClient) -> None:
    page = {"host": "evil.example", "origin": "http://evil.example"}
    assert (await gateway.get("/collections", headers=page)).status_code == 401
    assert (await gateway.get("/collections", headers=page | bearer("owner"))).status_code == 200


def test_the_contract_says_which_operations_ask_for_a_key() -> None:
    document = app.create_app(GatewaySettings()).openapi()
    assert document["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
    asking = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if operation.get("security") == [{"key": []}, {}]
    }
    assert asking >= {("POST", "/answer"), ("DELETE", "/collections/{name}/documents/{id}")}
    assert not asking & {("GET", "/strategies"), ("GET", "/healthz")}


def asked(collection: str, **body: Any) -> dict[str, tuple[str, str, dict[str, Any] | None]]:
    """Every door to a collection that only reads: method, path, body."""
    options = body | {"budget_s": 20}
    chat = {"messages": [{"role": "user", "content": QUERY}], **options}
    answer = {"query": QUERY, "strategy": "naive-rag", "trace": True, **options}
    return {
        "info": ("GET", f"/collections/{collection}", None),
        "search": ("POST", f"/collections/{collection}/search", {"queries": [QUERY], **body}),
        "lists": ("POST", f"/collections/{collection}/search", {"queries": [QUERY], "lists": True, **body}),
        "answer": ("POST", "/answer", {"collection": collection, **answer}),
        "answers": ("POST", "/answer", {"collections": [collection], **answer}),
        "papers": ("POST", "/papers", {"query": QUERY, "collection": collection, "enhance": False, **options}),
        "chat": ("POST", "/v1/chat/completions", {"model": f"cragmesh/naive-rag@{collection}", **chat}),
        "chats": ("POST", "/v1/chat/completions", {"model": "cragmesh/naive-rag", "collections": [collection], **chat}),
    }


DOORS = sorted(asked("notes"))


async def through(gateway: httpx.AsyncClient, key: str, door: tuple[str, str, dict[str, Any] | None]) -> httpx.Response:
    method, path, body = door
    return await gateway.request(method, path, json=body, headers=bearer(key))


@pytest.mark.parametrize("door", DOORS)
async def test_what_a_key_may_not_read_does_not_leave(gateway: httpx.AsyncClient, door: str) -> None:
    """And with a key that may, it does: else the rest would show nothing."""
    for key, collection in (("owner", "safe"), ("plain", "safe"), ("reader", "notes"), ("hr", "notes")):
        reply = await through(gateway, key, asked(collection)[door])
        assert reply.status_code == 200, reply.text
        assert (SECRET in reply.text) is (key != "hr" and door != "info"), (key, reply.text)
    for key in ("reader", "hr", "writer", "nothing"):
        assert SECRET not in (await through(gateway, key, asked("safe")[door])).text, key


async def test_streams_keep_to_it_as_well(gateway: httpx.AsyncClient) -> None:
    for door in ("answer", "chat"):
        for key in ("owner", "hr"):
            method, path, body = asked("notes", stream=True)[door]
            headers = bearer(key) | ({"accept": "text/event-stream"} if door == "answer" else {})
            reply = await gateway.request(method, path, json=body, headers=headers)
            assert reply.headers["content-type"].startswith("text/event-stream")
            assert (SECRET in reply.text) is (key == "owner"), (door, key)


WIDER: list[dict[str, Any]] = [
    {"filters": [{"field": "team", "equals": "ops"}]},
    {"filters": [{"field": "team", "any_of": ["hr", "ops"]}]},
    {"filters": [{"field": "team", "exists": False}]},
    {"filters": [{"field": "team", "exists": True}] * 32},
    {"filters": [{"field": "team", "range": {"gte": 0}}]},
    {"filters": []},
    {"filters": None},
]


@pytest.mark.parametrize("door", [door for door in DOORS if door != "info"])
async def test_no_filter_of_a_request_widens_the_keys(gateway: httpx.AsyncClient, door: str) -> None:
    for filters in WIDER:
        reply = await through(gateway, "hr", asked("notes", **filters)[door])
        # OpenAI's clients leave out what they do not say.
        assert reply.status_code == (422 if filters["filters"] is None and "chat" in door else 200), reply.text
        assert not {SECRET, TEXTS["notes", "none", ""]} & set(
            re.findall(r"The harbour[^.]*\.|The vault[^.]*\.", reply.text)
        )
        assert "ops-1" not in reply.text, filters
    for field in ("team].x", "fields.team", "document", "", "team OR 1=1"):
        conditions = [{"field": field, "equals": "hr"}]
        reply = await through(gateway, "hr", asked("notes", filters=conditions)[door])
        assert SECRET not in reply.text
        assert reply.status_code == (200 if field == "document" else 422), reply.text


def told(reply: httpx.Response, name: str) -> Any:
    """A reply without what differs from one request to the next: ids, times, and the name that was asked for."""
    body = json.loads(reply.text.replace(name, "NAME"))

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            different = {"request_id", "id", "created", "at_ms", "elapsed_ms", "start_ms", "queue_ms", "inference_ms"}
            said = {key: plain(item) for key, item in value.items() if key not in different}
            # Who fails first is the scheduler's choice.
            said |= {"degraded": sorted(said["degraded"], key=str)} if "degraded" in said else {}
            # A trace speaks of seconds that are left.
            return said | ({"detail": re.sub(r"[0-9.]+", "N", said["detail"])} if "step" in said else {})
        return [plain(item) for item in value] if isinstance(value, list) else value

    return reply.status_code, plain(body)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("key", ["reader", "hr", "nothing"])
async def test_a_hidden_collection_is_as_absent_as_one_that_is_not_there(
    gateway: httpx.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch, key: str, door: str
) -> None:
    steps: list[list[str]] = []
    retriever = services.faults["retriever"]
    inner = retriever.app

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        steps[-1].append(f"{scope['method']} {re.sub('/collections/[^/]+', '/collections/NAME', scope['path'])}")
        await inner(scope, receive, send)

    monkeypatch.setattr(retriever, "app", listening)
    replies = []
    for name in ("safe", "barn"):
        steps.append([])
        replies.append(told(await through(gateway, key, asked(name)[door]), name))
    assert replies[0] == replies[1]
    assert steps[0] == steps[1], "what takes other steps takes another time"
    assert "safe" not in (await gateway.get("/metrics")).text


async def test_lists_hold_what_the_key_may_read_and_count_no_more(gateway: httpx.AsyncClient) -> None:
    expected: dict[str, dict[str, int]] = {
        "owner": {"notes": 3, "safe": 1},
        "plain": {"notes": 3, "safe": 1},
        "reader": {"notes": 3},
        "hr": {"notes": 1},
    }
    for key, counts in expected.items():
        listed = (await gateway.get("/collections", headers=bearer(key))).json()["collections"]
        found = {info["name"]: info["documents"] for info in listed if info["name"] in ("notes", "safe")}
        assert found == counts, key
        models = {one["id"] for one in (await gateway.get("/v1/models", headers=bearer(key))).json()["data"]}
        assert {name for name in ("notes", "safe") if f"cragmesh/adaptive@{name}" in models} == set(counts), key
    filtered = await gateway.get("/collections/notes", params={"filter": "team=ops"}, headers=bearer("hr"))
    assert filtered.json()["documents"] == 0


async def test_several_collections_are_read_together_as_far_as_they_may_be(gateway: httpx.AsyncClient) -> None:
    body = {"query": QUERY, "strategy": "naive-rag", "collections": ["notes", "safe"]}
    both = (await post(gateway, "owner", "/answer", **body)).json()
    assert {one["document"] for one in both["citations"]} >= {"ops-1", "v-1"}
    mine = (await post(gateway, "reader", "/answer", **body)).json()
    assert {one["document"] for one in mine["citations"]} == {"hr-1", "ops-1", "none"}
    assert {"stage": "retriever", "reason": "error", "detail": "there is no collection 'safe'"} in mine["degraded"]
    filtered = await post(gateway, "reader", "/answer", **body, filters=[{"field": "team", "exists": True}])
    assert {one["document"] for one in filtered.json()["citations"]} == {"hr-1", "ops-1"}


async def test_collections_are_made_and_dropped_by_whoever_may(gateway: httpx.AsyncClient) -> None:
    for key, status in (("reader", 403), ("writer", 403), ("operator", 403), ("owner", 200)):
        reply = await gateway.put("/collections/shed", json={}, headers=bearer(key))
        assert reply.status_code == status, key
    other = await gateway.put("/collections/shed", json={"chunked": False}, headers=bearer("owner"))
    assert (other.status_code, other.json()["title"]) == (409, "Conflict")
    for name in ("safe", "barn"):
        gone = await gateway.delete(f"/collections/{name}", headers=bearer("operator"))
        assert (gone.status_code, gone.json()["detail"]) == (404, f"there is no collection {name!r}")
    assert (await gateway.delete("/collections/shed", headers=bearer("owner"))).status_code == 204


async def test_agents_are_held_to_their_keys(services: Services, keys: Path) -> None:
    async with services.gateway_app(api_keys_file=keys, abstain=False) as served:

        async def told_to(key: str) -> Mapping[str, str]:
            transport = httpx2.ASGITransport(served, raise_app_exceptions=False)
            http = httpx2.AsyncClient(transport=transport, headers=bearer(key), timeout=60)
            async with http, Client(streamable_http_client("http://gateway/mcp", http_client=http)) as client:
                replies = {}
                for name in ("safe", "barn", "notes"):
                    found = await client.call_tool("search", {"query": QUERY, "collection": name})
                    replies[f"search {name}"] = str(found.content)
                    wanted = {"question": QUERY, "collections": [name], "strategy": "naive-rag"}
                    replies[f"answer {name}"] = str((await client.call_tool("answer", wanted)).content)
                wider = {"query": QUERY, "collection": "notes", "filters": [{"field": "team", "equals": "ops"}]}
                replies["wider notes"] = str((await client.call_tool("search", wider)).content)
                replies["list"] = str((await client.read_resource("cragmesh://collections")).contents)
            return replies

        owner, hr = await told_to("owner"), await told_to("hr")
        assert {name for name, text in owner.items() if SECRET in text} >= {
            "search safe",
            "search notes",
            "wider notes",
        }
        assert not {name for name, text in hr.items() if SECRET in text}
        assert hr["search safe"].replace("safe", "barn") == hr["search barn"]
        assert "safe" in owner["list"]
        assert "safe" not in hr["list"]
