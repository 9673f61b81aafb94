"""The numbers of a report, without any question or gold answer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lab.evaluator.judge.llm import UNJUDGED
from lab.evaluator.judging import Agreement
from lab.evaluator.score import (
    Bin,
    RiskCoverage,
    Scores,
    calibration_error,
    reliability,
    risk_coverage,
    scores,
    separation,
)
from lab.evaluator.store import Judgement, Prediction, RunInfo

# CRAG's limit for an answer.
LIMIT_S = 30.0
PERCENTILES = (50, 90, 95, 99)
# Attribute of a prediction to the heading of the table with its values.
SLICES = {
    "label_kind": "Label kind",
    "domain": "Domain",
    "question_type": "Question type",
    "dynamism": "Dynamism",
    "popularity": "Popularity",
    "strategy": "Strategy",
    "source": "Source of the answer",
}
MAX_SLICES = 24


@dataclass(frozen=True, slots=True)
class Latency:
    """Wall seconds of the answered questions, as the caller saw them."""

    answered: int
    mean: float
    percentiles: dict[int, float]
    longest: float
    inside_limit: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in numbers; shares are of all questions unless said otherwise."""

    name: str
    judge: str
    info: RunInfo
    overall: Scores
    slices: dict[str, dict[str, Scores]]
    latency: Latency
    seconds: list[float]
    stages: dict[str, tuple[int, float, float]]
    degraded: float
    reasons: dict[str, int]
    failures: dict[str, int]
    usage: dict[str, float]
    curve: RiskCoverage
    bins: list[Bin]
    calibration_error: float
    separation: float
    exact: int
    cut: int
    unjudged: int
    unread: int
    agreements: dict[str, Agreement] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For `summary.json`: the same, with plain numbers."""
        whole = asdict(self)
        whole["info"] = self.info.model_dump(mode="json", exclude={"skipped"})
        for name in ("threshold", "coverage", "risk", "score"):
            whole["curve"][name] = [round(float(value), 5) for value in whole["curve"][name]]
        whole["agreements"] = {
            name: asdict(item) | {"share": item.share, "kappa": item.kappa} for name, item in self.agreements.items()
        }
        del whole["seconds"]
        return whole


def summarize(
    name: str,
    info: RunInfo,
    predictions: Sequence[Prediction],
    judgements: Mapping[str, Judgement],
    *,
    judge: str,
    agreements: Mapping[str, Agreement] | None = None,
    unread: int = 0,
) -> Summary:
    """The numbers of a run, whatever the order of its predictions.

    Args:
        judgements: one for each prediction, by id.
        agreements: of this judge with others, by the other's name.
        unread: lines of the predictions that could not be read.
    """
    lines = sorted(predictions, key=lambda line: line.id)
    outcomes = {line.id: judgements[line.id].outcome for line in lines}
    answered = [line for line in lines if not line.error]
    sure = [line for line in answered if outcomes[line.id] != "missing"]
    confidence = np.array([line.confidence for line in sure], dtype=np.float64)
    right = np.array([outcomes[line.id] == "right" for line in sure], dtype=np.bool_)
    bins = reliability(confidence, right)
    return Summary(
        name=name,
        judge=judge,
        info=info,
        overall=scores([outcomes[line.id] for line in lines]),
        slices=_slices(lines, outcomes),
        latency=_latency(answered),
        seconds=[line.seconds for line in answered],
        stages=_stages(answered),
        degraded=sum(bool(line.degraded) for line in answered) / max(1, len(answered)),
        reasons=_top(Counter(_stage_of(reason) for line in answered for reason in line.degraded)),
        failures=_top(Counter(line.error.partition(" - ")[0] for line in lines if line.error)),
        usage=_usage(answered),
        curve=risk_coverage(confidence, right, max(1, len(lines))),
        bins=bins,
        calibration_error=calibration_error(bins),
        separation=separation(confidence, right),
        exact=sum(line.reason == "exact match" for line in judgements.values()),
        cut=sum(line.answer is not None for line in lines),
        unjudged=sum(line.reason == UNJUDGED for line in judgements.values()),
        unread=unread,
        agreements=dict(agreements or {}),
    )


def _slices(lines: Sequence[Prediction], outcomes: Mapping[str, str]) -> dict[str, dict[str, Scores]]:
    slices: dict[str, dict[str, Scores]] = {}
    for attribute in SLICES:
        groups: dict[str, list[str]] = {}
        for line in lines:
            groups.setdefault(str(getattr(line, attribute)), []).append(outcomes[line.id])
        # A label that no question has, or all have, makes no slices.
        if len(groups) > 1:
            largest = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))[:MAX_SLICES]
            slices[attribute] = {name or "(not labelled)": scores(group) for name, group in largest}
    return slices


def _latency(answered: Sequence[Prediction]) -> Latency:
    seconds = np.array([line.seconds for line in answered], dtype=np.float64)
    if not len(seconds):
        return Latency(0, 0.0, dict.fromkeys(PERCENTILES, 0.0), 0.0, 0.0)
    return Latency(
        answered=len(seconds),
        mean=float(seconds.mean()),
        percentiles={level: float(np.percentile(seconds, level)) for level in PERCENTILES},
        longest=float(seconds.max()),
        inside_limit=float((seconds <= LIMIT_S).mean()),
    )


def _stages(answered: Sequence[Prediction]) -> dict[str, tuple[int, float, float]]:
    """Stage to how many questions ran it, and the median and 95th percentile of its milliseconds."""
    times: dict[str, list[float]] = {}
    for line in answered:
        for stage, milliseconds in line.timings.items():
            times.setdefault(stage, []).append(milliseconds)
    return {
        stage: (len(values), float(np.median(values)), float(np.percentile(values, 95)))
        for stage, values in sorted(times.items())
    }


def _usage(answered: Sequence[Prediction]) -> dict[str, float]:
    names = ("llm_calls", "prompt_tokens", "completion_tokens", "citations")
    count = max(1, len(answered))
    return {name: sum(getattr(line, name) for line in answered) / count for name in names}


def _stage_of(reason: str) -> str:
    """The reason without the number of a page: `page:3=timeout` is `page=timeout`."""
    stage, _, why = reason.partition("=")
    return f"{stage.partition(':')[0]}={why}"


def _top(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_SLICES])
