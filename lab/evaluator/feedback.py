"""People's verdicts on answers: a run for `calibrate` and `eval report`, and questions to ask again."""

import json
from collections.abc import Callable
from pathlib import Path

from lab.evaluator.errors import BadSource
from lab.evaluator.judge.protocol import label_kind_of
from lab.evaluator.judge.verdict import Outcome
from lab.evaluator.store import Judgement, Prediction, RunFolder, RunInfo, read_lines, write_lines
from services.gateway.feedback import Judged

PEOPLE = "people"
QUESTIONS = "questions.jsonl"


def export(source: Path, target: RunFolder, on_bad: Callable[[str], None] = lambda _: None) -> int:
    """Write a run of the latest verdict on each answer; returns how many there are.

    Questions with a known right answer are beside it, as `eval run` reads them.

    Raises:
        BadSource: the folder holds no verdicts.
        EvaluatorError: the run cannot be written.
    """
    files = sorted(source.glob("*.jsonl"))
    judged = {line.id: line for file in files for line in read_lines(file, Judged, on_bad)}
    if not judged:
        raise BadSource(f"{source}: holds no verdicts; is it the gateway's CRAGMESH_FEEDBACK_DIR?")
    generators = sorted({line.generator for line in judged.values() if line.generator})
    target.begin(RunInfo(settings={"source": "feedback"}, mesh={"generator": list(generators)}, finished=True))
    lines = [_prediction(line) for line in judged.values()]
    target.replace(lines)
    verdicts = {name: Judgement(id=name, outcome=_outcome(line), by=PEOPLE) for name, line in judged.items()}
    target.save_judgements(PEOPLE, verdicts)
    questions = (
        {"query": line.query, "answer": line.gold[0], "query_time": line.query_time} for line in lines if line.gold
    )
    write_lines(target.path / QUESTIONS, map(json.dumps, questions))
    return len(judged)


def _outcome(line: Judged) -> Outcome:
    if line.kind == "unknown":
        return "missing"
    return "right" if line.verdict == "right" else "wrong"


def _prediction(line: Judged) -> Prediction:
    right = line.right_answer or (line.answer if line.verdict == "right" and line.kind != "unknown" else "")
    return Prediction(
        id=line.id,
        query=line.query,
        gold=(right,) if right else (),
        label_kind=label_kind_of(right) if right else "answer",
        prediction=line.answer,
        query_time=line.query_time,
        domain=line.classification.domain if line.classification else "",
        kind=line.kind,
        confidence=line.confidence,
        source=line.source,
        strategy=line.strategy,
        generator=line.generator,
        classification=line.classification,
        signals=line.signals,
    )
