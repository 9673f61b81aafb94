"""Part `judge`: the verdict of the rules on every made-up prediction beside every gold answer."""

from importlib.resources import files
from typing import Any

import yaml

from lab.goldens.records import Records
from services.evaluator.judge.rules import judge
from services.evaluator.judge.verdict import Case

LETTERS = {"right": "+", "missing": "o", "wrong": "-"}


def record() -> Records:
    """A record a question and gold answer: its predictions, each with its verdict and who gave it why."""
    content = yaml.safe_load(files(__package__).joinpath("answers.yaml").read_text(encoding="utf-8"))
    records: Records = {}
    for block in content:
        said = [str(text) for text in block["said"]]
        for gold in map(str, block["gold"]):
            for kind in ("answer", "idk", "invalid"):
                cases = (Case(block["question"], (gold,), text, kind) for text in (*said, *map(str, block["gold"])))
                records[f"{block['question']} = {gold} ({kind})"] = [_line(case) for case in cases]
    return records


def _line(case: Case) -> list[Any]:
    verdict = judge(case)
    return [LETTERS[verdict.outcome], case.prediction, verdict.by, verdict.reason]
