"""Labels of a run: of contexts that came with its questions, and of those that it kept of its own retrieval."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lab.evaluator import runs
from lab.evaluator.store import Passage, Prediction, RunFolder, RunInfo
from lab.trainer.labelling import from_run
from services.gateway.normalize import UNKNOWN

QUERY = "who built the old bakery?"


def a_run(folder: Path, item: dict[str, Any], **fields: Any) -> tuple[Path, Path]:
    """A question file and the folder of a judged run of it, with one line."""
    source = folder / "questions.jsonl"
    source.write_text(json.dumps({"id": "q1", "query": QUERY, "answer": "Ines Roth"} | item) + "\n")
    target = RunFolder(folder / "run")
    target.begin(RunInfo(settings={}))
    line = Prediction(id="q1", query=QUERY, gold=("Ines Roth",), label_kind="answer", **fields)
    target.predictions_file.write_text(line.model_dump_json() + "\n")
    runs.judge_by_rules(target, [line])
    return source, target.path


@pytest.mark.parametrize(
    ("text", "completion"),
    [("The bakery was built by Ines Roth in 1902.", "Ines Roth"), ("The bakery closed in 1950.", UNKNOWN)],
)
def test_what_the_mesh_found_itself_is_learnt(tmp_path: Path, text: str, completion: str) -> None:
    shown = (Passage(text=text, page_name="Old bakery"), Passage(text="It rained.", source="kg"))
    source, run = a_run(tmp_path, {}, prediction="Paul Ender", shown=shown)
    examples = list(from_run(run, [source], "rules", tally := Counter[str]()))
    assert [example.completion for example in examples] == [completion]
    prompt = examples[0].messages[-1].content
    assert text in prompt
    assert "Old bakery" in prompt
    assert sum(tally.values()) == 1


def test_contexts_that_were_given_come_first(tmp_path: Path) -> None:
    given = {"contexts": ["Ines Roth built it."]}
    source, run = a_run(tmp_path, given, prediction="Paul Ender", shown=(Passage(text="Something else."),))
    (example,) = from_run(run, [source], "rules", Counter())
    assert "Ines Roth built it." in example.messages[-1].content
    assert "Something else." not in example.messages[-1].content
