"""From the gateway's events to what is printed."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from rich.console import Console
from typer.testing import CliRunner

from proto.answer import AnswerKind, AnswerResponse, Candidate, Citation, StageEvent, Usage
from proto.base import Degradation, FieldError, Problem, StageTiming
from services.cli import ask as asking
from services.cli import client, main, render
from services.cli.ask import ask
from services.cli.caller import Unreachable
from services.cli.client import events
from services.cli.console import plain
from services.cli.ending import ANSWERED, PROBLEM, UNREACHABLE, USAGE
from services.cli.questions import Question, question

pytestmark = pytest.mark.anyio

URL = "http://gateway"
SSE = {"content-type": "text/event-stream; charset=utf-8"}
QUESTION = Question({"query": "who painted it?"}, budget_s=10.0, gold=("Jan Vermeer", "Vermeer"))
PASSAGE = "A long introduction. " * 40 + "It was painted by Johannes Vermeer in Delft. " + "More text. " * 40
ANSWER = AnswerResponse(
    answer="Johannes Vermeer",
    kind="answer",
    confidence=0.83,
    source="web",
    citations=(
        Citation(page=0, page_name="The \u2028 [bold]Page[/bold]", page_url="file:p.html", text=PASSAGE, score=0.91),
    ),
    degraded=(Degradation(stage="page:3", reason="timeout", detail="took too long"),),
    timings={
        "retrieve": StageTiming(start_ms=2, elapsed_ms=400, queue_ms=100, inference_ms=250),
        "generate": StageTiming(start_ms=410, elapsed_ms=1600, inference_ms=1500),
    },
    usage=Usage(llm_calls=1, prompt_tokens=900, completion_tokens=5),
    strategy="db3",
    request_id="req-1",
)
STAGES = (
    StageEvent(stage="retrieve", status="started", left_ms=9_900),
    StageEvent(stage="retrieve", status="done", timing=StageTiming(elapsed_ms=400), left_ms=9_500),
    StageEvent(stage="rerank", status="skipped", left_ms=9_490, detail="no time"),
)


def sse(*parts: tuple[str, Any]) -> bytes:
    return "".join(f"event: {name}\ndata: {message.model_dump_json()}\n\n" for name, message in parts).encode()


def gateway(content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: httpx.Response(status, content=content, headers=headers or SSE))


async def chunked(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_events_are_read_however_they_are_cut(newline: str, size: int) -> None:
    stream = newline.join(
        [": hello", "event: stage", "data: {a", "data:b\u2028\u0085}", "id: 1", "", "data: x", "", ": bye"]
    )
    content = stream.encode()
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    assert [event async for event in events(chunked(*chunks))] == [("stage", "{a\nb\u2028\u0085}"), ("message", "x")]


async def test_stages_are_told_and_the_answer_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    requests: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, content=sse(*(("stage", item) for item in STAGES), ("answer", ANSWER)), headers=SSE)

    code = await ask(QUESTION, URL, api_key="key", transport=httpx.MockTransport(handle))
    assert code == ANSWERED
    assert json.loads(requests[0].content) == {"query": "who painted it?"}
    assert requests[0].url.path == "/answer"
    headers = requests[0].headers
    assert (headers["accept"], headers["authorization"]) == ("text/event-stream", "Bearer key")

    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "retrieve: started, 9.9 s left",
        "retrieve: done 400 ms, 9.5 s left",
        "rerank: skipped (no time), 9.5 s left",
    ]
    for expected in (
        "who painted it?",
        "Johannes Vermeer",
        "Jan Vermeer",
        "expected",
        "confidence 83%",
        "source web",
        "LLM calls 1, tokens 900 + 5",
        "[bold]Page[/bold]",
        "file:p.html",
        "painted by Johannes Vermeer in Delft",
        "page:3",
        "took too long",
        "where 2.0 s of the 10 s went (20%)",
        "1.5 s",
    ):
        assert expected in " ".join(printed.out.split())
    assert "A long introduction. " * 20 not in " ".join(printed.out.split())


async def test_json_is_the_response_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    transport = gateway(sse(("stage", STAGES[0]), ("answer", ANSWER)))
    assert await ask(QUESTION, URL, as_json=True, transport=transport) == ANSWERED
    printed = capsys.readouterr()
    assert AnswerResponse.model_validate_json(printed.out) == ANSWER
    assert printed.err == ""


@pytest.mark.parametrize("streamed", [True, False])
async def test_problems_are_rendered(streamed: bool, capsys: pytest.CaptureFixture[str]) -> None:
    problem = Problem(
        title="Invalid request",
        status=422,
        detail="no strategy of that name",
        errors=(FieldError(field="strategy", message="unknown", limit="one of db3"),),
        request_id="req-9",
    )
    plainly = {"content-type": "application/problem+json"}
    transport = (
        gateway(sse(("problem", problem))) if streamed else gateway(problem.model_dump_json().encode(), 422, plainly)
    )
    assert await ask(QUESTION, URL, transport=transport) == PROBLEM
    printed = capsys.readouterr().err
    for expected in ("422 Invalid request", "no strategy of that name", "strategy: unknown (one of db3)", "req-9"):
        assert expected in printed


@pytest.mark.parametrize(
    ("transport", "code", "message"),
    [
        (gateway(sse(("stage", STAGES[0]))), UNREACHABLE, "the connection ended before the answer"),
        (gateway(b"<html>", headers={"content-type": "text/html"}), UNREACHABLE, "no Cragmesh gateway"),
        (gateway(b"event: answer\ndata: {}\n\n"), UNREACHABLE, "no Cragmesh gateway"),
        # An error without a problem document is a problem still.
        (gateway(b"oops", 502), PROBLEM, "502 Bad Gateway"),
    ],
)
async def test_what_is_no_gateway_is_said_to_be_none(
    transport: httpx.MockTransport, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ask(QUESTION, URL, transport=transport) == code
    assert message in capsys.readouterr().err


async def test_a_silent_gateway_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silence() -> AsyncIterator[bytes]:
        yield b": wait\n"
        await anyio.sleep(30)

    monkeypatch.setattr(client, "GRACE_S", 0.05)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=silence(), headers=SSE))
    async with client.http_client(transport=transport) as http:
        with pytest.raises(Unreachable, match="no answer within"):
            await client.ask(http, URL, QUESTION.body, budget_s=0.05, on_stage=lambda _: None)


def terminal() -> Console:
    return Console(width=100, force_terminal=True, color_system="standard", legacy_windows=False, _environ={})


def rendered(**changes: Any) -> str:
    console = terminal()
    with console.capture() as capture:
        render.show_answer(console, "q", ANSWER.model_copy(update=changes), budget_s=30)
    return capture.get()


def test_kinds_have_colours_and_a_bare_answer_is_enough() -> None:
    kinds: dict[AnswerKind, str] = {"answer": "32", "unknown": "33", "invalid_question": "35"}
    for kind, colour in kinds.items():
        bare = rendered(citations=(), degraded=(), timings={}, kind=kind)
        assert f"\x1b[1;{colour}m" in bare
        assert "rests on" not in bare


@pytest.mark.parametrize(
    ("named", "name"),
    [({}, "page 2"), ({"document": "a:ferry.txt"}, "a:ferry.txt"), ({"document": "a", "page_name": "Ferry"}, "Ferry")],
)
def test_a_source_goes_by_its_name(named: dict[str, str], name: str) -> None:
    citation = Citation(page=2, page_url="file:ferry.txt", text="It leaves at seven.", score=0.9, **named)
    assert f"\x1b[1m{name}\x1b[0m" in rendered(citations=(citation,))


def test_an_abstention_shows_what_a_passage_says() -> None:
    passage = "It was painted by Johannes Vermeer in Delft."
    candidate = Candidate(span="Johannes Vermeer", passage=passage, start=18, end=34, citation=0, probability=0.41)
    output = " ".join(plain(rendered(answer="i don't know", kind="unknown", candidates=(candidate,))).split())
    for expected in ("not sure enough to answer; this passage says", "41%", "Johannes Vermeer"):
        assert expected in output
    several = (candidate, candidate.model_copy(update={"citation": 7}))
    assert "these passages say" in rendered(kind="unknown", candidates=several)
    assert "not sure enough" not in rendered()
    hostile = candidate.model_copy(update={"span": "\x1b[2J", "passage": "\x1b[2J"})
    assert "\x1b[2J" not in rendered(kind="unknown", candidates=(hostile,))


def test_text_from_elsewhere_cannot_steer_the_terminal() -> None:
    assert plain("a\x1b[2Jb\u202ec\td\n") == "a [2Jbc\td\n"
    assert "\x1b[2J" not in rendered(answer="\x1b[2J")


def test_passages_are_cut_around_the_answer() -> None:
    text = render.shorten(PASSAGE, "Johannes Vermeer", width=60)
    assert len(text) == 62
    assert text.plain.startswith("…")
    assert text.plain.endswith("…")
    marked = text.spans[-1]
    assert text.plain[marked.start : marked.end] == "Johannes Vermeer"
    assert "Vermeer" in render.shorten(PASSAGE, "It was Vermeer, the painter", width=60).plain
    assert render.shorten("short", "nothing of it").plain == "short"


def test_live_stages_follow_the_gateways_clock() -> None:
    stages = render.LiveStages(10.0)
    for event in STAGES:
        stages.update(event)
    console = terminal()
    with console.capture() as capture:
        console.print(stages)
    output = capture.get()
    for expected in ("9.5 s left", "400 ms", "no time"):
        assert expected in output


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setattr(main, "load_dotenv", lambda _: False)
    # Nothing listens on port 9 here.
    monkeypatch.setenv("CRAGMESH_GATEWAY_URL", "http://127.0.0.1:9")
    return CliRunner()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ask"], USAGE, "ask what?"),
        (["ask", "q", "--page", "none.html"], USAGE, "none.html: No such file"),
        (["ask", "q", "--budget", "31"], USAGE, "less than or equal to 30"),
        (["ask", "q", "--record", "none.jsonl"], USAGE, "none.jsonl: No such file"),
        (["ask", "q", "--record", "a.jsonl", "--page", "b.html"], USAGE, "brings its own pages"),
        (["ask", "q"], UNREACHABLE, "cragmesh up"),
        (["demo"], UNREACHABLE, "cragmesh up"),
        (["logs", "nobody"], USAGE, "no service 'nobody'"),
        (["nonsense"], USAGE, "nonsense"),
    ],
)
def test_exit_codes(cli: CliRunner, arguments: list[str], code: int, message: str) -> None:
    result = cli.invoke(main.app, arguments)
    assert result.exit_code == code, result.output
    assert message in result.output


def test_without_a_gateway_there_is_no_json(cli: CliRunner) -> None:
    result = cli.invoke(main.app, ["ask", "q", "--json"])
    assert (result.exit_code, result.stdout, "is not up" in result.stderr) == (UNREACHABLE, "", True)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["ask", "q"], "CRAGMESH_GATEWAY_URL"),
        (["collections"], "CRAGMESH_RETRIEVER_URL"),
        (["kg", "ask", "q"], "CRAGMESH_KG_URL"),
        (["kg", "shell"], "CRAGMESH_STOP_TIMEOUT_S"),
        (["classifier", "evaluate"], "CRAGMESH_JUDGE_TIMEOUT_S"),
        (["classifier", "train"], "CRAGMESH_BREAKER_THRESHOLD"),
        (["papers", "eval", "none"], "CRAGMESH_PAPERS_CANDIDATES"),
        (["train", "sft", "none.jsonl", "-o", "none"], "CRAGMESH_MAX_CONTEXT_TOKENS"),
        (["train", "sft", "none.jsonl", "-o", "none"], "CRAGMESH_GENERATOR_PORT"),
        (["train", "synthesise"], "CRAGMESH_JUDGE_TIMEOUT_S"),
        (["train", "synthesise"], "CRAGMESH_KG_WORKERS"),
        (["train", "questions"], "CRAGMESH_KG_WORKERS"),
    ],
)
def test_wrong_settings_are_named(
    cli: CliRunner, monkeypatch: pytest.MonkeyPatch, arguments: list[str], name: str
) -> None:
    monkeypatch.setenv(name, "not a url")
    result = cli.invoke(main.app, arguments)
    assert result.exit_code == USAGE
    assert f"{name}: " in result.output


def test_settings_are_read_where_wrong_ones_end_the_command() -> None:
    modules = Path(asking.__file__).parent.glob("*.py")
    bare = [(path.name, call) for path in modules for call in re.findall(r"\w+(?:Settings|Urls)\(\)", path.read_text())]
    assert not bare


def test_logs_are_shown(cli: CliRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CRAGMESH_RUN_DIR", str(tmp_path))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "gateway.log").write_text("one\ntwo\nthree\n")
    assert cli.invoke(main.app, ["logs", "gateway", "-n", "2"]).output == "two\nthree\n"
    assert cli.invoke(main.app, ["logs", "-n", "1"]).output == "gateway | three\n"


def test_the_demo_is_complete() -> None:
    pages = asking.demo_pages()
    assert len(pages) == 5
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for item in asking.demo_questions():
        answer = item.answer.removesuffix(" km")
        assert answer in text or answer == "i don't know"
        question(item.question, pages=pages)
