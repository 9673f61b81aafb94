"""Whole runs as a user makes them: killed, resumed, refused, unreachable, on a full disk."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, patch

import pytest
from typer.testing import CliRunner

from lab.evaluator import runs
from lab.evaluator.errors import BadRun
from lab.evaluator.store import RunFolder
from services.cli.main import app
from services.kit.shard import WHOLE, Shard
from tests.unit.lab.evaluator.conftest import (
    FakeGateway,
    answered,
    by_rote,
    environment,
    evaluate,
    make_run,
    write_questions,
)

RUN = ("run", "questions.jsonl", "--out", "run", "--no-tokenizer", "-c", "4")
COUNT = 40

pytestmark = pytest.mark.usefixtures("no_pictures")


def start(folder: Path, url: str) -> "subprocess.Popen[str]":
    words = (sys.executable, "-m", "services.cli", "eval", *RUN)
    return subprocess.Popen(  # noqa: S603 - this very interpreter
        words, cwd=folder, env=environment(url), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(folder: Path, url: str, *options: str, code: int = 0) -> str:
    return evaluate(folder, url, *RUN, *options, code=code)


def lines(folder: Path) -> list[dict[str, Any]]:
    """The predictions by id, without what differs between two runs of anything: wall times."""
    found = [json.loads(line) for line in (folder / "run" / "predictions.jsonl").read_text().splitlines()]
    return sorted(({**line, "seconds": 0, "attempts": 1} for line in found), key=lambda line: str(line["id"]))


def report(folder: Path) -> dict[str, bytes]:
    """The report over the predictions without wall times."""
    (folder / "run" / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines(folder)))
    evaluate(folder, "http://127.0.0.1:1", "report", "run")
    return {path.name: path.read_bytes() for path in sorted((folder / "run" / "report").iterdir())}


def test_a_killed_run_goes_on_and_ends_as_if_nothing_had_happened(tmp_path: Path, gateway: FakeGateway) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        write_questions(folder / "questions.jsonl", COUNT)
    finish(whole, gateway.url)
    gateway.asked.clear()
    gateway.seconds = 0.04
    process = start(killed, gateway.url)
    written = killed / "run" / "predictions.jsonl"
    until = time.monotonic() + 400
    while not written.exists() or written.read_bytes().count(b"\n") < COUNT // 2:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    # A kill in the middle of a line.
    content = written.read_bytes()
    kept = {json.loads(line)["query"] for line in content[:-20].splitlines(keepends=True) if line.endswith(b"\n")}
    written.write_bytes(content[:-20])
    before = gateway.asked.copy()
    gateway.seconds = 0.0
    finish(killed, gateway.url)
    again = gateway.asked - before
    assert kept
    assert not kept & set(again)
    assert set(again) | kept == set(gateway.asked)
    assert len(gateway.asked) == COUNT
    assert lines(killed) == lines(whole)
    assert report(whole) == report(killed)


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, gateway: FakeGateway) -> None:
    write_questions(tmp_path / "questions.jsonl", COUNT)

    def reply(body: dict[str, Any]) -> tuple[int, dict[str, str], dict[str, Any]]:
        if "depot 20?" in body["query"]:
            # As a terminal's Ctrl-C: the command's own thread hears it.
            signal.raise_signal(signal.SIGINT)
        return by_rote(body)

    gateway.reply = reply
    gateway.seconds = 0.01
    assert "goes on from here" in finish(tmp_path, gateway.url, code=130)
    assert 10 <= len(lines(tmp_path)) < COUNT


def test_a_mesh_that_goes_away_stops_the_run_and_loses_nothing(tmp_path: Path, gateway: FakeGateway) -> None:
    write_questions(tmp_path / "questions.jsonl", 10)
    finish(tmp_path, gateway.url)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        assert "is not up" in finish(tmp_path, f"http://127.0.0.1:{probe.getsockname()[1]}", code=3)
    assert len(lines(tmp_path)) == 10


def test_bad_lines_are_named_and_a_missing_file_is_a_usage_error(tmp_path: Path, gateway: FakeGateway) -> None:
    questions = write_questions(tmp_path / "questions.jsonl", 5)
    questions.write_text(questions.read_text() + '{"query": "cut\n')
    assert "left out: questions.jsonl:6: not JSON" in finish(tmp_path, gateway.url)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["skipped_count"] == 1
    assert "1 lines of the source" in (tmp_path / "run" / "report" / "report.md").read_text()
    assert "another limit" in finish(tmp_path, gateway.url, "--limit", "3", code=1)
    assert "no strategy 'db4'" in finish(tmp_path, gateway.url, "--strategy", "db4", code=1)
    questions.unlink()
    assert "questions.jsonl: no such file" in finish(tmp_path, gateway.url, code=2)


GOLD = [{"query": f"who painted number {n}?", "answer": name} for n, name in enumerate(("Ann", "Bob", "Cal"))]


@pytest.mark.parametrize(
    ("records", "words", "messages", "code"),
    [
        (GOLD, [], ["questions.jsonl:4: not JSON", "% of shuffled gold is right: below 2% is wanted"], 1),
        (GOLD, ["--timed"], ["no line is a question with a right answer and a query_time"], 1),
        ([{"query": "who?"}], [], ["questions.jsonl:1: no answer", "no line is a question with a right answer"], 1),
        ([{"query": "who?", "label_kind": "idk"}], [], ["no line is a question with a right answer"], 1),
        (
            [*GOLD, {"query": "who?", "answer": "i don't know", "label_kind": "answer"}],
            [],
            [
                "gold against itself: questions.jsonl:4: missing: ",
                "gold answers that are not right against themselves: 1",
            ],
            1,
        ),
        ([{"query": f"which is {n}?", "answer": f"number {n}"} for n in range(200)], [], ["1.0000"], 0),
    ],
)
def test_a_check_that_fails_says_why(
    records: list[dict[str, str]], words: list[str], messages: list[str], code: int, tmp_path: Path
) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "questions.jsonl").write_text(f"{lines}{{cut\n")
    output = evaluate(tmp_path, "http://127.0.0.1:1", "check", "questions.jsonl", *words, code=code)
    for message in messages:
        assert message in output


def test_a_full_disk_stops_the_run(tmp_path: Path, gateway: FakeGateway) -> None:
    write_questions(tmp_path / "questions.jsonl", 5)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "predictions.jsonl").symlink_to("/dev/full")
    assert "No space left" in finish(tmp_path, gateway.url, code=1)


def test_refusals_are_outcomes_and_busy_gateways_are_asked_again(tmp_path: Path, gateway: FakeGateway) -> None:
    write_questions(tmp_path / "questions.jsonl", 6)
    problem = {"title": "Invalid request", "status": 422, "detail": "too long"}

    def reply(body: dict[str, Any]) -> tuple[int, dict[str, str], dict[str, Any]]:
        if "depot 1?" in body["query"] and gateway.asked[body["query"]] < 3:
            return 429, {"retry-after": "0"}, {"title": "Overloaded", "status": 429}
        if "depot 2?" in body["query"]:
            return 422, {}, problem
        if "depot 3?" in body["query"]:
            return 500, {}, {"title": "Internal error", "status": 500}
        if "depot 4?" in body["query"]:
            return 200, {}, {"what": "is this"}
        if "depot 5?" in body["query"]:
            return 200, {}, answered("so it is, and so on, for it goes on " * 20)
        return by_rote(body)

    gateway.reply = reply
    said = finish(tmp_path, gateway.url)
    found = {line.id: line for line in RunFolder(tmp_path / "run").predictions()}
    assert found["q0001"].attempts == 3
    assert found["q0002"].error == "HTTP 422 Invalid request - too long"
    assert found["q0003"].error == "HTTP 500 Internal error"
    assert found["q0004"].error.startswith("a reply with ")
    assert found["q0005"].answer
    assert len(found["q0005"].prediction) < len(found["q0005"].answer)
    assert "3 questions got no answer" in said
    gateway.reply = by_rote
    finish(tmp_path, gateway.url, "--retry-failed")
    assert not [line.id for line in RunFolder(tmp_path / "run").predictions() if line.error]


def test_a_line_records_what_the_gateway_told(tmp_path: Path, gateway: FakeGateway) -> None:
    write_questions(tmp_path / "questions.jsonl", 1, contexts=["it is 1000"], query_time="2024-03-01T10:00:00Z")
    labels = {"domain": "movie", "domain_certainty": 0.8}
    told = {"degraded": [{"stage": "page:2", "reason": "timeout"}], "classification": labels, "confidence": 0.9}
    gateway.reply = lambda _: (200, {}, answered("1000", **told))
    finish(tmp_path, gateway.url, "--strategy", "rote", "--budget", "9")
    assert gateway.bodies == [
        {
            "query": "what is the code of depot 0? it is 1000",
            "query_time": "2024-03-01T10:00:00Z",
            "evidence": ["it is 1000"],
            "strategy": "rote",
            "budget_s": 9.0,
            "interaction_id": "q0000",
        }
    ]
    (line,) = RunFolder(tmp_path / "run").predictions()
    assert (line.prediction, line.confidence, line.citations, line.citation_scores) == ("1000", 0.9, 2, (0.7, 0.2))
    assert (line.support, line.degraded, line.timings) == (1.0, ("page:2=timeout",), {"generate": 12.5})
    assert (line.llm_calls, line.prompt_tokens, line.completion_tokens) == (1, 100, 5)
    assert line.classification is not None
    assert line.classification.domain == "movie"
    text = (tmp_path / "run" / "report" / "report.md").read_text()
    assert "depot" not in text
    assert "page=timeout" in text


def test_what_an_abstention_shows_is_no_answer(tmp_path: Path, gateway: FakeGateway) -> None:
    write_questions(tmp_path / "questions.jsonl", 3)
    shown = {"span": "1000", "passage": "it is 1000", "start": 6, "end": 10, "citation": 0, "probability": 0.6}
    gateway.reply = lambda _: (200, {}, answered("i don't know", source="none", candidates=[shown]))
    finish(tmp_path, gateway.url)
    found = [(line.kind, line.prediction) for line in RunFolder(tmp_path / "run").predictions()]
    assert found == [("unknown", "i don't know")] * 3
    summary = json.loads((tmp_path / "run" / "report" / "summary.json").read_text())
    assert (summary["overall"]["right"], summary["overall"]["missing"]) == (0, 3)


@pytest.mark.parametrize(
    ("words", "code"),
    [(["report", "."], 1), (["compare", "a", "--out", "c"], 2), (["judge", "."], 1)],
)
def test_wrong_use_is_told_without_a_traceback(tmp_path: Path, words: list[str], code: int) -> None:
    assert "cragmesh: " in evaluate(tmp_path, "http://127.0.0.1:1", *words, code=code)


def test_shards_of_a_run_join_to_what_one_run_gives(tmp_path: Path, gateway: FakeGateway) -> None:
    questions = write_questions(tmp_path / "questions.jsonl", 30)

    def ask(shard: Shard) -> RunFolder:
        folder = RunFolder(tmp_path / f"{shard.index}-of-{shard.count}")
        selection = runs.Selection(shard=shard)
        order = runs.Order(sources=(questions,), folder=folder, gateway_url=gateway.url, selection=selection)
        asyncio.run(runs.run(order, None))
        return folder

    def joined(name: str, *shards: RunFolder) -> list[bytes]:
        into = RunFolder(tmp_path / name)
        runs.merge(shards, into)
        runs.judge_by_rules(into, runs.read(into).predictions)
        assert into.info().finished
        measured = re.compile(rb'"seconds":[0-9.]+,?')
        return [measured.sub(b"", path.read_bytes()) for path in (into.predictions_file, into.judgements_file("rules"))]

    alone = ask(WHOLE)
    shards = [ask(Shard(index, 3)) for index in range(3)]
    assert set(gateway.asked.values()) == {2}
    # Killed in the middle of a line, it goes on.
    written = shards[1].predictions_file.read_bytes()
    shards[1].predictions_file.write_bytes(written[: len(written) // 2])
    ask(Shard(1, 3))
    assert set(gateway.asked.values()) == {2, 3}
    assert joined("joined", *shards[::-1]) == joined("alone", alone)
    with pytest.raises(BadRun, match="each once"):
        runs.merge(shards[:2], RunFolder(tmp_path / "lacking"))


def test_a_run_that_another_process_writes_is_left_alone(tmp_path: Path, gateway: FakeGateway) -> None:
    write_questions(tmp_path / "questions.jsonl", 5)
    finish(tmp_path, gateway.url)
    before = (tmp_path / "run" / "predictions.jsonl").read_bytes()
    with RunFolder(tmp_path / "run").alone():
        assert "another process is writing it" in finish(tmp_path, gateway.url, "--retry-failed", code=1)
    assert (tmp_path / "run" / "predictions.jsonl").read_bytes() == before


def test_a_run_goes_on_with_its_generator_alone(tmp_path: Path, gateway: FakeGateway) -> None:
    write_questions(tmp_path / "questions.jsonl", 5)
    finish(tmp_path, gateway.url)
    folder = RunFolder(tmp_path / "run")
    earlier = folder.info()
    named = {name: earlier.model_copy(update={"mesh": earlier.mesh | {"answers_by": name}}) for name in ("one", "two")}
    folder.save(named["one"])
    with patch("lab.evaluator.mesh.MeshClient.generator", AsyncMock(return_value="two")):
        result = CliRunner().invoke(
            app,
            ["eval", "run", str(tmp_path / "questions.jsonl"), "--out", str(tmp_path / "run")],
            env=environment(gateway.url),
        )
    assert result.exit_code == 1
    assert "has answers of one, and two answers now" in " ".join(result.output.split())
    assert folder.info() == named["one"]


def test_runs_of_one_name_are_compared_by_their_parents(tmp_path: Path) -> None:
    paths = [tmp_path / one / "ablate" / "whole" for one in "ab"]
    for path in paths:
        make_run(path, [("right", 0.9), ("wrong", 0.4)] * 3)
    compared = CliRunner().invoke(app, ["eval", "compare", *map(str, paths), "--out", str(tmp_path / "out")])
    assert compared.exit_code == 0, compared.output
    assert "a/ablate/whole" in (tmp_path / "out" / "compare.md").read_text()
    assert "b/ablate/whole" in (tmp_path / "out" / "compare.md").read_text()
    twice = CliRunner().invoke(app, ["eval", "compare", str(paths[0]), str(paths[0]), "--out", str(tmp_path / "out")])
    assert (twice.exit_code, "named twice" in twice.output) == (2, True)
