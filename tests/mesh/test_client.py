"""`cragmesh-client` against the real gateway: typed answers, stages, problems as exceptions, patience."""

import ast
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

import cragmesh_client
from cragmesh_client import AsyncClient, Client, Filter
from tests.keys import write_keys
from tests.mesh.conftest import LIGHTHOUSE, Services, alone

pytestmark = pytest.mark.anyio

QUERY = "Who designed the harbour lighthouse?"


@pytest.fixture
def services() -> Services:
    """A generator, and a retriever that is not there: the client minds neither."""
    return alone(lambda _: "Marta Lindqvist")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has the keys and the feedback of the gateway."""
    return write_keys(tmp_path_factory.mktemp("client") / "keys", ("alice",)).parent


@pytest.fixture
async def transport(services: Services, folder: Path) -> AsyncIterator[httpx.AsyncBaseTransport]:
    async with services.usual_app(api_keys_file=folder / "keys", feedback_dir=folder / "feedback") as app:
        yield httpx.ASGITransport(app, raise_app_exceptions=False)


def client(transport: httpx.AsyncBaseTransport, key: str = "cm_alice", **options: Any) -> AsyncClient:
    return AsyncClient("http://gateway", api_key=key, transport=transport, **options)


async def test_an_answer_its_stages_and_a_verdict(transport: httpx.AsyncBaseTransport, folder: Path) -> None:
    async with client(transport) as mesh:
        answer = await mesh.answer(QUERY, evidence=["Marta Lindqvist designed it."], strategy="naive-rag")
        assert (answer.answer, answer.kind) == ("Marta Lindqvist", "answer")
        events = [event async for event in mesh.stream(QUERY, search_results=[LIGHTHOUSE], strategy="closed-book")]
        assert isinstance(events[-1], cragmesh_client.AnswerResponse)
        assert events[-1].answer == "Marta Lindqvist"
        assert {type(event) for event in events[:-1]} == {cragmesh_client.StageEvent}
        assert (await mesh.feedback(answer, "right")).kept_days == 30
        assert {item.name for item in (await mesh.strategies()).strategies} >= {"adaptive", "naive-rag"}
    assert QUERY in next((folder / "feedback").iterdir()).read_text()


async def test_what_is_refused_is_raised_by_its_kind(transport: httpx.AsyncBaseTransport) -> None:
    async with client(transport, retries=0) as mesh:
        with pytest.raises(cragmesh_client.Invalid) as refused:
            await mesh.answer(QUERY, strategy="none")
        assert [error.field for error in refused.value.problem.errors] == ["strategy"]
        with pytest.raises(cragmesh_client.Invalid):
            _ = [event async for event in mesh.stream(QUERY, strategy="none")]
        with pytest.raises(cragmesh_client.NotFound):
            await mesh.feedback("no-such-answer", "wrong")
        with pytest.raises(cragmesh_client.Overloaded):
            await mesh.collection("notes", [Filter(field="team", equals="hr")])
        with pytest.raises(ValidationError):
            await mesh.answer("x" * 2_001)
    async with client(transport, "cm_mallory") as mesh:
        with pytest.raises(cragmesh_client.Unauthorized):
            await mesh.answer(QUERY)


async def test_a_stranger_and_nobody_are_told_apart() -> None:
    for handler, error in (
        (lambda _: httpx.Response(200, text="<html>"), cragmesh_client.BadReply),
        (lambda _: httpx.Response(502, text="<html>"), cragmesh_client.BadReply),
        (lambda request: (_ for _ in ()).throw(httpx.ConnectError("no", request=request)), cragmesh_client.Unreachable),
    ):
        async with client(httpx.MockTransport(handler)) as mesh:
            with pytest.raises(error):
                await mesh.answer(QUERY)
            with pytest.raises(error):
                await anext(mesh.stream(QUERY))
        with Client("http://gateway", transport=httpx.MockTransport(handler)) as sync, pytest.raises(error):
            sync.answer(QUERY)


def in_pieces(content: bytes) -> httpx.MockTransport:
    """A stream whose chunks end anywhere."""

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 7):
            yield content[start : start + 7]

    return httpx.MockTransport(lambda _: httpx.Response(200, content=pieces()))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_any_text_comes_through_a_stream(end: str) -> None:
    text = "a\u2028b\u2029c\x85d ü"
    answer = ANSWER | {"answer": text}
    content = (SSE % json.dumps(answer, ensure_ascii=False)).replace("\n", end).encode()
    async with client(in_pieces(content)) as mesh:
        events = [event async for event in mesh.stream(QUERY)]
    last = events[-1]
    assert isinstance(last, cragmesh_client.AnswerResponse)
    assert last.answer == text


ANSWER = {"answer": "Marta", "kind": "answer", "confidence": 1, "source": "web", "strategy": "adaptive"}
SSE = 'event: stage\ndata: {"stage":"search","status":"started","left_ms":9}\n\nevent: answer\ndata: %s\n\n'


class Busy:
    """Says `Retry-After` to the first calls."""

    def __init__(self, *pauses: str, status: int = 429) -> None:
        self.pauses = list(pauses)
        self.status = status
        self.calls = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.calls += 1
        if self.pauses:
            headers = {"retry-after": self.pauses.pop(0)}
            problem = {"title": "Overloaded", "status": self.status}
            return httpx.Response(self.status, json=problem, headers=headers)
        if request.headers.get("accept") == "text/event-stream":
            return httpx.Response(200, text=SSE % httpx.Response(200, json=ANSWER).text)
        return httpx.Response(200, json=ANSWER)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    # In that module alone: tasks and threads of what other tests have started sleep in this process too.
    monkeypatch.setattr("cragmesh_client.client.asyncio", SimpleNamespace(sleep=sleep))
    clock = SimpleNamespace(sleep=waited.append, monotonic=time.monotonic)
    monkeypatch.setattr("cragmesh_client.client.time", clock)
    return waited


@pytest.mark.parametrize("status", [429, 503])
async def test_it_comes_again_when_it_is_told_to(pauses: list[float], status: int) -> None:
    for streamed in (False, True):
        busy = Busy("2", "3", status=status)
        with Client("http://gateway", transport=httpx.MockTransport(busy)) as mesh:
            answer = list(mesh.stream(QUERY))[-1] if streamed else mesh.answer(QUERY)
        assert isinstance(answer, cragmesh_client.AnswerResponse)
        async with client(httpx.MockTransport(Busy("2", "3", status=status))) as other:
            events = [event async for event in other.stream(QUERY)] if streamed else [await other.answer(QUERY)]
        assert events[-1] == answer
    assert pauses == [2, 3] * 4


@pytest.mark.parametrize(("asked", "calls"), [(["1"] * 9, 4), (["60"], 1)])
async def test_patience_ends_with_the_retries_and_with_the_calls_time(
    pauses: list[float], asked: list[str], calls: int
) -> None:
    busy = Busy(*asked)
    async with client(httpx.MockTransport(busy)) as mesh:
        with pytest.raises(cragmesh_client.Overloaded) as refused:
            await mesh.answer(QUERY)
    assert (busy.calls, refused.value.retry_after_s) == (calls, float(asked[0]))


class Library:
    """A gateway's documents; the first reply to each deletion, move and upload is lost after its work is done."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self.calls: list[tuple[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        lost = request.method != "GET" and (request.method, request.url.path) not in self.calls
        self.calls.append((request.method, request.url.path))
        path, id = request.url.raw_path.decode().partition("?")[0], request.url.path.rpartition("/")[2]
        reply = httpx.Response(200)
        if request.method == "PUT":
            assert (request.content, request.headers["content-type"]) == (b"%PDF", "application/pdf")
            assert request.url.params["title"] == "A manual"
            self.state[id] = "waiting"
        elif request.method == "DELETE":
            gone = self.state.pop(id, None)
            reply = httpx.Response(204) if gone else httpx.Response(404, json={"title": "Not found", "status": 404})
        elif path.endswith("/moves"):
            reply = httpx.Response(200, json={"moved": 1})
        elif path.endswith("/documents"):
            reply = httpx.Response(200, json={"documents": [{"id": "a b", "state": "complete"}], "next": ""})
        if lost:
            raise httpx.ReadError("reset", request=request)
        if id in self.state:
            reply = httpx.Response(200, json={"id": id, "state": self.state[id]})
            self.state[id] = {"waiting": "writing"}.get(self.state[id], "complete")
        return reply


async def test_documents_are_written_listed_moved_and_removed_over_lost_connections(pauses: list[float]) -> None:
    file = ("notes", "a b", b"%PDF", "application/pdf")
    for sync in (True, False):
        library, told = Library(), list[str]()
        transport = httpx.MockTransport(library)

        def told_by(info: cragmesh_client.DocumentInfo, told: list[str] = told) -> None:
            told.append(info.state)

        moves = [cragmesh_client.Move(id="a b", to="b")]
        if sync:
            with Client("http://gateway", transport=transport) as mesh:
                put = mesh.put_document(*file, progress=told_by, title="A manual")
                listed = mesh.documents("notes", limit=10)
                mesh.delete_document("notes", "a b")
                moved = mesh.move_documents("notes", moves)
                with pytest.raises(cragmesh_client.NotFound):
                    mesh.delete_document("notes", "a b")
        else:
            async with client(transport) as other:
                put = await other.put_document(*file, progress=told_by, title="A manual")
                listed = await other.documents("notes", limit=10)
                await other.delete_document("notes", "a b")
                moved = await other.move_documents("notes", moves)
                with pytest.raises(cragmesh_client.NotFound):
                    await other.delete_document("notes", "a b")
        assert (put.state, told) == ("complete", ["waiting", "writing"])
        assert ([one.id for one in listed.documents], moved.moved) == (["a b"], 1)


@pytest.mark.parametrize("id", [".", ".."])
def test_an_id_that_addresses_read_otherwise_reaches_nobody(id: str) -> None:
    mesh = Client("http://gateway", transport=httpx.MockTransport(Library()))
    with mesh, pytest.raises(ValueError, match="no document's id"):
        mesh.delete_document("notes", id)


def test_both_clients_have_the_same_methods_and_import_nothing_of_the_server() -> None:
    sync, other = ({name for name in vars(one) if not name.startswith("_")} for one in (Client, AsyncClient))
    assert sync == other
    for file in Path(cragmesh_client.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                assert not {name.split(".")[0] for name in names} & {"proto", "services", "lab", "tests"}, file
