"""People's verdicts on answers as a run, which `calibrate` and `eval report` take, and as questions to ask again."""

import json
from collections.abc import Callable
from pathlib import Path

from lab.evaluator.errors import BadSource
from lab.evaluator.judge.protocol import label_kind_of
from lab.evaluator.judge.verdict import Outcome
from lab.evaluator.store import Judgement, Prediction, RunFolder, RunInfo, read_lines, write_whole
from services.gateway.feedback import Judged

PEOPLE = "people"
QUESTIONS = "questions.jsonl"


def export(source: Path, target: RunFolder, on_bad: Callable[[str], None] = lambda _: None) -> int:
    """Write a run of what was judged last of each answer; returns how many there are.

    Questions of which the right answer is known are beside it, as `eval run` reads them.

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
    content = "".join(f"{line.model_dump_json(exclude_defaults=True)}\n" for line in lines)
    write_whole(target.predictions_file, content.encode())
    verdicts = [Judgement(id=line.id, outcome=_outcome(line), by=PEOPLE) for line in judged.values()]
    target.save_judgements(PEOPLE, verdicts)
    known = [line for line in lines if line.gold]
    asked = ({"query": line.query, "answer": line.gold[0], "query_time": line.query_time} for line in known)
    questions = "".join(f"{json.dumps(question)}\n" for question in asked)
    write_whole(target.path / QUESTIONS, questions.encode())
    return len(judged)


def _outcome(line: Judged) -> Outcome:
    if line.kind == "unknown":
        return "missing"
    return "right" if line.verdict == "right" else "wrong"


def _prediction(line: Judged) -> Prediction:
    right = line.right_answer or (line.answer if line.verdict == "right" and line.kind != "unknown" else "")
    found = line.classification
    return Prediction(
        id=line.id,
        query=line.query,
        gold=(right,) if right else (),
        label_kind=label_kind_of(right) if right else "answer",
        prediction=line.answer,
        query_time=line.query_time,
        domain=found.domain if found else "",
        kind=line.kind,
        confidence=line.confidence,
        source=line.source,
        strategy=line.strategy,
        classification=found,
        signals=line.signals,
    )
