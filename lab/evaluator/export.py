"""Runs in the shape that other evaluators read."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from lab.evaluator.store import Prediction

Format = Literal["ragas", "deepeval"]


def ragas(line: Prediction) -> dict[str, Any]:
    """A `SingleTurnSample` of Ragas."""
    return {
        "user_input": line.query,
        "response": line.prediction,
        "retrieved_contexts": [one.text for one in line.shown],
        "reference": line.gold[0] if line.gold else "",
    }


def deepeval(line: Prediction) -> dict[str, Any]:
    """A test case of DeepEval."""
    return {
        "input": line.query,
        "actual_output": line.prediction,
        "expected_output": line.gold[0] if line.gold else "",
        "retrieval_context": [one.text for one in line.shown],
        "name": line.id,
    }


FORMATS: dict[Format, Callable[[Prediction], dict[str, Any]]] = {"ragas": ragas, "deepeval": deepeval}


def exported(predictions: Sequence[Prediction], to: Format) -> str:
    """The text of the file, without the questions that got no answer.

    JSON Lines for Ragas' `EvaluationDataset.from_jsonl`, a JSON list for DeepEval's `add_test_cases_from_json_file`.
    """
    lines = [FORMATS[to](line) for line in predictions if not line.error]
    if to == "ragas":
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return json.dumps(lines, ensure_ascii=False, indent=1) + "\n"
