"""`cragmesh train`: the commands, end to end on a tiny model and a small run; no mesh runs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from lab.evaluator.data import Source
from lab.evaluator.store import AppendLog, Prediction, RunFolder, RunInfo
from lab.trainer import dataset, labelling
from lab.trainer.errors import BadLabels
from proto.base import parse_query_time
from services.cli import train
from services.cli.ending import PROBLEM, USAGE
from services.cli.main import app
from services.gateway import prompts
from services.gateway.evidence import Evidence
from services.gateway.steps.generate import TAUGHT_PROMPT, chat
from services.kit.client import ServiceClient, http_client
from services.kit.llm import LLM
from tests.unit.lab.trainer.tiny import NAME, save_data, save_model

QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "a",
        "query": "who keeps the velmora light?",
        "answer": "Ilse Marwick",
        "query_time": "02/28/2024, 10:04:54 PT",
        "contexts": ["The Velmora light is kept by Ilse Marwick.", "Opened in 1840."],
        "domain": "open",
        "question_type": "simple",
    },
    {"id": "b", "query": "when did it open?", "answer": "1840", "contexts": ["A recipe for bread."], "domain": "open"},
    {"id": "c", "query": "why did it close?", "answer": "invalid question", "contexts": ["It is open."]},
    {"id": "d", "query": "who built it?", "answer": "Jon Vance", "domain": "open"},
]
ANSWERS = {"a": "Bo", "b": "1850", "c": "a storm", "d": "Jon Vance"}


ROOT = Path(__file__).parents[3]


def run(*arguments: str | Path | int) -> Any:
    return CliRunner().invoke(app, ["train", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return path


@pytest.fixture
def made_run(tmp_path: Path, source: Path) -> Path:
    """A run over the questions, as the evaluator leaves it."""
    folder = RunFolder(tmp_path / "run")
    folder.begin(RunInfo(settings={}))
    with AppendLog(folder.predictions_file) as log:
        for item in Source([source]).items():
            fields = {name: getattr(item, name) for name in ("id", "query", "gold", "label_kind")}
            log.append(Prediction(**fields, prediction=ANSWERS[item.id]))
    return folder.path


def test_labels_of_a_run_follow_db3(tmp_path: Path, source: Path, made_run: Path) -> None:
    to = tmp_path / "labels.jsonl"
    result = run("labels", source, "--run", made_run, "--out", to)
    assert result.exit_code == 0, result.output
    made = {example.id: example for example in dataset.read([to], task="answer")}
    assert {name: (example.completion, example.kind) for name, example in made.items()} == {
        "run:a": ("Ilse Marwick", "answer"),
        "run:b": ("i don't know", "unknown"),
        "run:c": ("invalid question", "invalid_question"),
    }
    assert "left out: no contexts were given, and the run kept none (--keep-contexts)" in result.output
    example = made["run:a"]
    assert (example.source, example.domain, example.question_type) == ("labels:run", "open", "simple")
    question = QUESTIONS[0]
    evidence = [Evidence(text, page) for page, text in enumerate(question["contexts"])]
    moment = parse_query_time(question["query_time"])
    served = chat(prompts.load(TAUGHT_PROMPT), question["query"], moment, evidence)
    assert [(turn.role, turn.content) for turn in example.messages] == [(one.role, one.content) for one in served]


def test_lines_that_give_no_label_are_counted(tmp_path: Path, source: Path, made_run: Path) -> None:
    asked = source.read_text()
    source.write_text(f"{asked}torn\n{json.dumps(QUESTIONS[0] | {'id': 'z'})}\n")
    result = run("labels", source, "--run", made_run, "--out", tmp_path / "labels.jsonl")
    assert result.exit_code == 0, result.output
    assert "1  left out: not in the run" in result.output
    assert "1  left out: not JSON" in result.output


def test_labels_without_a_run_or_of_another_or_damaged_one_are_refused(
    tmp_path: Path, source: Path, made_run: Path
) -> None:
    def refused(code: int, message: str, *options: str | Path) -> None:
        result = run("labels", source, "--out", tmp_path / "x", *options)
        assert result.exit_code == code
        assert message in result.output
        assert not (tmp_path / "x").exists()

    refused(2, "--run")
    source.write_text(json.dumps({**QUESTIONS[0], "query": "who else?"}) + "\n")
    refused(1, "questions.jsonl:1: query", "--run", made_run)
    source.write_text(json.dumps({**QUESTIONS[0], "id": "z"}) + "\n")
    refused(1, "none of its 4 questions", "--run", made_run)
    with (made_run / "predictions.jsonl").open("a") as file:
        file.write('{"id": 7}\n')
    refused(1, "predictions.jsonl:5", "--run", made_run)


def test_evaluation_data_is_never_learnt_from(
    tmp_path: Path, source: Path, made_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAGMESH_EVAL_DATA", str(tmp_path))
    result = run("labels", source, "--run", made_run, "--out", tmp_path / "x")
    assert result.exit_code == 1
    assert "evaluation data" in result.output
    taught = run("sft", save_data(tmp_path / "data.jsonl", 60), "--out", tmp_path / "run", "--base", tmp_path, *SMALL)
    assert taught.exit_code == PROBLEM
    assert "evaluation data" in taught.output
    with pytest.raises(BadLabels):
        labelling.allowed([tmp_path / "a" / ".." / "b.jsonl"], tmp_path)


@pytest.mark.anyio
async def test_programs_are_tried_until_their_facts_hold_the_answer(source: Path) -> None:
    """The generator and the graph are stubs; what is asked of them is what the services take."""
    requests: list[dict[str, Any]] = []
    programs = ['get_open("Velmora light", "opened")', 'get_open("Velmora light", "keeper")', "none"]

    def reply(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": "base"}, {"id": "kg-api", "parent": "base"}]})
        body = json.loads(request.content)
        requests.append({"path": path, **body})
        if path == "/v1/chat/completions":
            choices = [{"message": {"content": text}, "finish_reason": "stop"} for text in programs]
            choices.append({"message": {"content": "get_open("}, "finish_reason": "length"})
            return httpx.Response(200, json={"model": body["model"], "choices": choices})
        if body["program"] == "none":
            return httpx.Response(422, json={"title": "refused"})
        text = "keeper: Ilse Marwick" if "keeper" in body["program"] else "opened: 1840"
        return httpx.Response(200, json={"status": "ok", "program": body["program"], "text": text})

    async with http_client(httpx.MockTransport(reply)) as http:
        trying = labelling.Trying(
            LLM(ServiceClient("generator", "http://g", http)), ServiceClient("kg", "http://k", http), 4
        )
        tally: labelling.Tally = labelling.Tally()
        made = await labelling.from_trying([source], trying, tally)
    assert [(example.query, example.completion) for example in made] == [
        ("who keeps the velmora light?", programs[1]),
        ("when did it open?", programs[0]),
    ]
    assert made[0].task == "kg-api"
    assert tally == {"kept": 2, "no program found the answer": 1, "left out: no program finds that there is nothing": 1}
    chats = [one for one in requests if "chat" in one["path"]]
    assert all(one["n"] == 4 and one["temperature"] > 0 and one["model"] == "kg-api" for one in chats)
    assert all("grammar" in one["structured_outputs"] for one in chats)
    assert not [one for one in requests if one.get("program") == "get_open("]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("cli") / "tiny")


SMALL = (
    "--base-name", NAME, "--rank", "4", "--learning-rate", "0.01", "--epochs", "0.5", "--accumulation", "1",
    "--max-batch-tokens", "256", "--max-prompt-tokens", "96", "--threads", "1", "--score-examples", "4",
)  # fmt: skip


def test_sft_writes_an_adapter_and_its_card(tmp_path: Path, tiny: Path) -> None:
    data = save_data(tmp_path / "data.jsonl")
    result = run("sft", data, "--out", tmp_path / "run", "--base", tiny, "--adapter", tmp_path / "answer", *SMALL)
    assert result.exit_code == 0, result.output
    assert result.output.rstrip().endswith(str(tmp_path / "answer"))
    config = json.loads((tmp_path / "answer" / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["r"], config["modules_to_save"]) == (NAME, 4, None)
    assert (tmp_path / "answer" / "README.md").read_text().startswith("# answer\n")
    assert (tmp_path / "answer" / "curves.png").stat().st_size > 1_000
    # No terminal here, so progress is lines of JSON.
    logged = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    assert {line["phase"] for line in logged} >= {"encoding", "training"}
    assert any("validation loss" in line.get("note", "") for line in logged)
    again = run("sft", data, "--out", tmp_path / "run", "--base", tiny, *SMALL)
    assert again.exit_code == 1
    assert "--resume" in again.output


def test_memory_is_bounded_before_torch_reads_by_what(tmp_path: Path) -> None:
    """In a process of its own, since this one has torch already; it ends where torch would be imported."""
    script = (
        "import os, sys\n"
        "from services.cli import main, train\n"
        "class Torch:\n"
        "    def find_spec(name, *_):\n"
        "        if name == 'torch':\n"
        "            print(*(os.environ[name] for name in train.SHAPE_CACHES), flush=True)\n"
        "            os._exit(0)\n"
        "sys.meta_path.insert(0, Torch)\n"
        "os.environ['LRU_CACHE_CAPACITY'] = '7'\n"
        f"main.app(['train', 'sft', {str(tmp_path / 'none')!r}, '--out', {str(tmp_path)!r}])\n"
    )
    clean = {name: value for name, value in os.environ.items() if name not in train.SHAPE_CACHES}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=clean, capture_output=True, text=True)  # noqa: S603
    # What somebody set stays.
    assert done.stdout.split() == ["128", "7"], done.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ((), 2, "data.jsonl:61: task"),
        (("--base-name", ""), 2, "--base-name"),
        (("--rank", "0"), 2, "rank"),
        (("--max-batch-tokens", "64"), 2, "max_batch_tokens must hold"),
        (("--task", "kg-api"), 2, "no example of the task"),
        (("--base", "/nonexistent"), 1, "no model that can be trained"),
        (("--from", "/nonexistent"), 1, "no adapter that can be read"),
    ],
)
def test_what_cannot_be_trained_is_told(
    tmp_path: Path, tiny: Path, options: tuple[str, ...], code: int, message: str
) -> None:
    data = save_data(tmp_path / "data.jsonl", 60)
    if not options:
        with data.open("a") as file:
            file.write('{"id": "x"}\n')
    result = run("sft", data, "--out", tmp_path / "run", "--base", tiny, *SMALL, *options)
    assert result.exit_code == code, result.output
    assert message in result.output


@pytest.mark.parametrize("named", ["adapters", "adapters/notes", "."])
def test_what_is_no_adapter_is_not_written_over(tmp_path: Path, tiny: Path, named: str) -> None:
    data = save_data(tmp_path / "data.jsonl", 60)
    other = tmp_path / "adapters" / "other" / "adapter_config.json"
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    (tmp_path / "adapters" / "notes").write_text("mine")
    result = run("sft", data, "--out", tmp_path / "run", "--base", tiny, *SMALL, "--adapter", tmp_path / named)
    assert result.exit_code == 2, result.output
    assert "would be replaced whole" in result.output
    assert other.read_text() == "{}"
    # Said before anything was learnt.
    assert not (tmp_path / "run").exists()


def test_a_reader_is_refused_what_it_cannot_learn_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = ("--out", tmp_path / "run", "--made-up", "0")
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"passage": "a", "question": "b", "answer": "c", "start": 0}\n')
    refused = run("reader", bad, *out)
    assert refused.exit_code == USAGE
    assert "bad.jsonl:1" in refused.output
    assert "too few" in run("reader", *out).output
    (tmp_path / "other").mkdir()
    assert "holds no reader" in run("reader", *out, "--weights", tmp_path / "other").output
    assert "lies in it" in run("reader", *out, "--weights", tmp_path).output
    monkeypatch.setenv("CRAGMESH_EVAL_DATA", str(tmp_path))
    kept = run("reader", bad, *out)
    assert kept.exit_code == PROBLEM
    assert "evaluation data" in kept.output


@pytest.mark.slow
def test_a_reader_is_taught_and_reported_on(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    options = ("--made-up", "30", "--batch", "4", "--held-out", "4", "--threads", "1")
    done = run("reader", "--out", tmp_path / "run", "--weights", weights, *options)
    assert done.exit_code == 0, done.output
    assert "beside up to" in done.output
    assert sorted(path.name for path in weights.iterdir()) == ["reader.json", "reader.safetensors"]
    assert (weights / "reader.safetensors").stat().st_size < 3 * 2**20
    written = ("--near", "40", "--scenes", "40", "--epochs", "0.002", *options)
    on = run("reader", "--from", weights, "--out", tmp_path / "more", *written)
    assert on.exit_code == 0, on.output
    assert "40 dense, 40 scene" in on.output
    refused = run("threshold", tmp_path)
    assert refused.exit_code == USAGE
    assert "cannot be read" in refused.output
