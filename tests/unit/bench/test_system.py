"""`make eval-system`: where questions are lost, and what is reported of them."""

import argparse
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import HttpUrl

from lab.evaluator.data import Item
from lab.evaluator.drive import Progress
from lab.evaluator.report import pictures
from lab.evaluator.settings import EvaluatorSettings
from lab.evaluator.store import Judgement, Passage, Prediction, RunFolder, RunInfo
from services.gateway.mesh import Mesh
from services.gateway.settings import GatewaySettings
from services.kit.errors import ServiceTimeout
from tests.bench.system import report, stages
from tests.bench.system.__main__ import Bench, arguments, names
from tests.bench.system.sets import Prepared, QuestionSet, prepare

pytestmark = pytest.mark.anyio

GOLD = "Marta Lindqvist"


def prediction(label_kind: str = "answer", **known: Any) -> Prediction:
    return Prediction(
        **{"id": "1", "query": "who?", "gold": (GOLD,), "label_kind": label_kind, "kind": "answer"} | known
    )


@pytest.mark.parametrize(
    ("line", "outcome", "place", "lost"),
    [
        (prediction(), "right", None, ""),
        (prediction("idk", kind="unknown"), "missing", None, ""),
        (prediction("idk"), "wrong", None, "answered without evidence"),
        (prediction("invalid"), "wrong", None, "premise not refused"),
        (prediction(error="HTTP 500"), "missing", "shown", "no answer in time"),
        (prediction(), "wrong", "nowhere", "not on the pages"),
        (prediction(), "wrong", "in the sources", "not retrieved"),
        (prediction(), "wrong", "retrieved", "not ranked"),
        (prediction(), "wrong", "shown", "not read"),
        (prediction(kind="unknown"), "missing", "shown", "not given"),
        (prediction(kind="unknown"), "missing", "retrieved", "not given"),
        (prediction(kind="unknown", shown=(Passage(text="x"),)), "missing", "retrieved", "not ranked"),
        (prediction(), "wrong", "untelling", "not told apart"),
        (prediction(), "wrong", None, "not told apart"),
    ],
)
def test_a_question_is_lost_where_its_answer_came_no_further(
    line: Prediction, outcome: str, place: stages.Place | None, lost: str
) -> None:
    assert stages.stage(line, Judgement(id="1", outcome=outcome, by="rules"), place) == lost


class Retriever:
    """Keeps one passage, of pages and of collections."""

    def __init__(self, text: str) -> None:
        self.found = SimpleNamespace(passages=[SimpleNamespace(text=text)], hits=[SimpleNamespace(text=text)])
        self.calls: list[Any] = []
        self.broken = False

    async def retrieve(self, request: Any, *, allow_s: float) -> Any:
        if self.broken:
            raise ServiceTimeout("retriever", "no answer")
        self.calls.append(request)
        return self.found

    async def search(self, collection: str, request: Any, *, allow_s: float) -> Any:
        self.calls.append((collection, request))
        return self.found


def item(gold: str = GOLD, **body: Any) -> Item:
    return Item(id="1", query="who?", gold=(gold,), label_kind="answer", body=body, place="")


PAGE = {"page_result": f"<p>Drawn by {GOLD}, of Bergen, in the year in which the harbour was dug.</p>"}
THERE, ELSEWHERE = f"drawn by {GOLD.upper()}!", "of the quay"


@pytest.mark.parametrize(
    ("question", "line", "kept", "documents", "place"),
    [
        (item("yes"), prediction(), THERE, (), "untelling"),
        (item(), prediction(shown=(Passage(text=THERE),)), ELSEWHERE, (), "shown"),
        (item(search_results=[PAGE]), prediction(strategy="db3"), THERE, (), "retrieved"),
        (item(collection="c"), prediction(strategy="db3"), THERE, (), "retrieved"),
        (item(search_results=[PAGE]), prediction(strategy="adaptive"), ELSEWHERE, (), "in the sources"),
        (item(collection="c"), prediction(strategy="adaptive"), ELSEWHERE, (THERE,), "in the sources"),
        (item(search_results=[{"page_result": "<p>No name.</p>"}]), prediction(strategy="x"), THERE, (), "nowhere"),
    ],
)
async def test_an_answer_is_looked_for_in_what_was_shown_then_kept_then_there(
    question: Item, line: Prediction, kept: str, documents: tuple[str, ...], place: str
) -> None:
    finder = stages.Finder(cast(Mesh, Retriever(kept)), documents)
    assert await finder.place(question, line) == place


async def test_a_place_is_looked_for_until_it_is_known(tmp_path: Path) -> None:
    retriever = Retriever(THERE)
    finder, lines = stages.Finder(cast(Mesh, retriever)), [prediction(strategy="db3")]
    wrong = {"1": Judgement(id="1", outcome="wrong", by="rules")}
    for broken in (True, False, True):
        retriever.broken = broken
        found = await stages.find(RunFolder(tmp_path), lines, wrong, {"1": item(search_results=[PAGE])}, finder)
        assert found == ({"1": "retrieved"} if retriever.calls else {})
    assert len(retriever.calls) == 1


def outcomes(*said: str, lost: tuple[str, ...] = (), seconds: tuple[float, ...] = (1.0, 3.0)) -> report.Outcomes:
    ids = [str(number) for number in range(len(said))]
    return report.Outcomes(dict(zip(ids, said, strict=True)), seconds, lost, dict.fromkeys(ids, "answer"))


def test_a_report_pairs_ours_with_each_other_over_the_questions_that_both_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.evaluator.report.pictures.THEMES", (pictures.DARK,))
    ours = outcomes("right", "right", "missing")
    other = outcomes("right", "wrong", lost=("not ranked",), seconds=(2.0,))
    results = {"freshqa": {"haystack": other, "adaptive": ours}, "squad": {"naive-rag": outcomes("wrong", seconds=())}}
    written = report.write(results, tmp_path, facts=[("judge", "rules")])
    numbers = json.loads((tmp_path / "summary.json").read_text())
    less = numbers["freshqa"]["haystack"]["ours_less_this"]
    assert (less["questions"], less["score"]["value"]) == (2, 1.0)
    assert numbers["freshqa"]["adaptive"]["ours_less_this"] is None
    assert numbers["freshqa"]["haystack"]["lost"] == {"not ranked": 1}
    text = (tmp_path / "report.md").read_text()
    assert "| adaptive | +0.667 | - |" in text
    assert "| haystack | 2 | +0.000" in text
    assert {path.name for path in written} == {"report.md", "summary.json"}
    assert [path.name for path in tmp_path.glob("*.png")] == ["outcomes-dark.png"]


def test_a_set_is_files_that_a_run_and_a_collection_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, texts = {"id": "1", "query": "who?", "answer": GOLD}, {"The_quay": ELSEWHERE}
    chosen = {"made-up": QuestionSet(lambda _: [record], lambda _: texts), "pages": QuestionSet(lambda _: [record])}
    monkeypatch.setattr("tests.bench.system.sets.SETS", chosen)
    prepared = prepare("made-up", tmp_path, tmp_path / "sets")
    assert json.loads(prepared.questions.read_text()) == record | {"collection": "eval-made-up"}
    assert prepared.documents is not None
    assert json.loads(prepared.documents.read_text()) == {"id": "The_quay", "title": "The quay", "text": ELSEWHERE}
    assert prepare("pages", tmp_path, tmp_path / "sets").documents is None


def test_names_are_given_by_commas_and_known() -> None:
    assert names("db3, adaptive", ("adaptive", "db3")) == ["db3", "adaptive"]
    with pytest.raises(argparse.ArgumentTypeError, match="'db4'; there are adaptive, db3"):
        names("db4", ("adaptive", "db3"))


async def test_each_system_has_its_runs_where_they_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Any] = []
    started: list[tuple[str, ...]] = []

    @contextlib.asynccontextmanager
    async def peer(name: str, _port: int, generator: str, *more: str, **_: Any) -> AsyncIterator[str]:
        started.append((name, generator, *more))
        yield "http://peer"

    async def drive(order: Any, *_: Any, **__: Any) -> Progress:
        orders.append(order)
        order.folder.begin(RunInfo(settings={"sample": 3}, finished=True))
        return Progress()

    monkeypatch.setattr("tests.bench.system.__main__.serving_peer", peer)
    monkeypatch.setattr("tests.bench.system.__main__.ask_questions", drive)
    settings = GatewaySettings(gateway_url=HttpUrl("http://gateway"), generator_url=HttpUrl("http://generator"))
    options = arguments(["--out", str(tmp_path), "--limit", "3"])
    bench = Bench(options, settings, EvaluatorSettings(), time.monotonic() + 60)
    prepared = Prepared("made-up", tmp_path / "questions", tmp_path / "documents")
    for _ in range(2):
        assert [await bench.ask(prepared, system) for system in ("db3", "langchain")] == [True, True]
    assert [(order.gateway_url, order.strategy, order.selection.sample) for order in orders] == [
        ("http://gateway", "db3", 3),
        ("http://peer", "langchain", 3),
    ]
    assert started == [
        ("langchain", "http://generator", "--device", "cpu", "--collection", f"eval-made-up={tmp_path / 'documents'}")
    ]
