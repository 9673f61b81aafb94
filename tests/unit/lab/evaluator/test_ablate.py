"""An ablation as a user runs it: one run a part, paired with the whole strategy."""

import json
from pathlib import Path

import pytest

from tests.unit.lab.evaluator.conftest import Body, FakeGateway, Reply, answered, evaluate, write_questions

COUNT = 12
pytestmark = pytest.mark.usefixtures("no_pictures")
PARTS: dict[str, Body] = {"kg": {"kg": "off"}, "rerank": {"rerank": False}}


def right_with_the_graph(body: Body) -> Reply:
    """Right where the graph may be asked; reranking changes nothing."""
    word = body["query"].split()[-1].rstrip("?")
    graph = body.get("options", {}).get("kg") != "off"
    return 200, {}, answered(word if graph else "999999", strategy=body["strategy"])


def rows(table: str) -> list[str]:
    return [line for line in table.splitlines() if " less " in line]


def ablate(folder: Path, url: str, *options: str, code: int = 0) -> str:
    return evaluate(folder, url, "ablate", "questions.jsonl", "--out", "parts", *options, code=code)


@pytest.fixture
def questions(tmp_path: Path, gateway: FakeGateway) -> Path:
    write_questions(tmp_path / "questions.jsonl", COUNT)
    gateway.parts = PARTS
    gateway.reply = right_with_the_graph
    return tmp_path


def test_each_part_is_left_out_once_and_paired_with_the_whole(questions: Path, gateway: FakeGateway) -> None:
    told = ablate(questions, gateway.url, "--option", "context_tokens=700")
    sent = [body.get("options") for body in gateway.bodies]
    for options in ({}, {"kg": "off"}, {"rerank": False}):
        assert sent.count({"context_tokens": 700} | options) == COUNT
    table = (questions / "parts" / "compare" / "compare.md").read_text()
    assert {"without-kg less whole", "without-rerank less whole"} <= {row.split("|")[1].strip() for row in rows(table)}
    assert not any("less without-kg" in row for row in rows(told))
    settings = {
        name: json.loads((questions / "parts" / name / "run.json").read_text())["settings"].get("options")
        for name in ("whole", "without-kg", "without-rerank")
    }
    assert settings["without-kg"] == {"context_tokens": 700, "kg": "off"}
    asked = len(gateway.bodies)
    ablate(questions, gateway.url, "--option", "context_tokens=700", "--part", "kg")
    assert len(gateway.bodies) == asked


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--part", "tables"), "rote has no part 'tables'; it has kg, rerank"),
        (("--option", "colour=red"), "no knob is named 'colour'"),
        (("--option", "recall_k=0"), "--option recall_k: Input should be greater than or equal to 1"),
    ],
)
def test_what_cannot_be_ablated_is_said(
    questions: Path, gateway: FakeGateway, options: tuple[str, ...], reason: str
) -> None:
    assert reason in ablate(questions, gateway.url, *options, code=2)
    assert gateway.bodies == []
