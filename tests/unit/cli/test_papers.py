"""`cragmesh papers` on a small test collection: retriever and reranker inside the command, no generator."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner

from services.cli.main import app
from services.gateway.papers.weights import Weights

TOPICS = {
    "tide": ("moon", "The gravity of the moon raises the tide in every harbour twice a day."),
    "bread": ("dough", "Sour dough ferments for days before rye bread is baked in a stone oven."),
    "bridge": ("deck", "Wind sheds vortices from the deck of a suspension bridge, which sways."),
    "bee": ("hive", "A swarm of bees leaves the hive in spring and looks for a hollow tree."),
}


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    folder = tmp_path / "village"
    folder.mkdir()
    documents = [{"doc_id": name, "title": name.title(), "abstract": text} for name, (_, text) in TOPICS.items()]
    questions = [{"query_id": name, "query": f"what has the {word} to do?"} for name, (word, _) in TOPICS.items()]
    (folder / "docs.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, questions)))
    (folder / "qrels.txt").write_text("".join(f"{name} 0 {name} 1\n" for name in TOPICS))
    return folder


@pytest.fixture(autouse=True)
def logging_is_left_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, configured = root.handlers[:], root.level, structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configured)


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAGMESH_GENERATOR_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CRAGMESH_PAGE_WORKERS", "1")
    monkeypatch.setenv("CRAGMESH_THREADS", "1")


@pytest.mark.slow
def test_tuning_measures_and_writes_weights(benchmark: Path, tmp_path: Path) -> None:
    weights, out = tmp_path / "weights.json", tmp_path / "out"
    arguments = ["papers", "tune", str(benchmark), "--out", str(out), "--to", str(weights)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    found_weights = Weights.read(weights)
    assert found_weights.of("bm25", "question") > 0
    assert "no weight, since there was no list of them: keywords, answer" in " ".join(result.output.split())
    assert "village: 4 questions" in found_weights.tuned_on
    summary = json.loads((out / "report" / "summary.json").read_text())
    assert summary["steps"]["bm25 alone"]["MAP@20"] == 1.0
    assert "+ re-scoring" in summary["steps"]
    assert str(weights) in result.output.replace("\n", "")


@pytest.mark.parametrize("place", ["absent/weights.json", "folder"])
def test_weights_that_could_not_be_written_are_told_before_the_run(benchmark: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    arguments = ["papers", "tune", str(benchmark), "--out", str(tmp_path / "out"), "--to", str(tmp_path / place)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "no file can be written there" in result.output
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "options", "code", "message"),
    [("", [], 2, "docs.jsonl"), ("village", ["--collection", "mine"], 3, "retriever")],
    ids=["no test collection", "no mesh"],
)
def test_what_is_not_there_is_named(
    benchmark: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: list[str], code: int, message: str
) -> None:
    monkeypatch.setenv("CRAGMESH_RETRIEVER_URL", "http://127.0.0.1:9")
    out = str(benchmark.parent / "out")
    result = CliRunner().invoke(app, ["papers", "eval", str(benchmark.parent / name), "--out", out, *options])
    assert result.exit_code == code
    assert message in result.output
