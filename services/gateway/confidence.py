"""How likely an answer is right, by a small model fitted on signals of its making; and when to give it.

A wrong answer costs in CRAG what a right one earns, so an answer is worth giving when it is right more often than
wrong; the exact threshold is chosen on validation data (`cragmesh calibrate`). The model is data: a logistic regression
over signals of `data/signals.yaml`, whose weights, scales and thresholds are in `data/confidence/`, a file a generator,
since log-probabilities of two models do not compare. A generator without a file of its own is weighed by
`generic.json`, of signals that mean the same for all; `calibration.py` chooses between the files.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from proto.classify import Classification
from proto.read import ReadResponse
from services.gateway.evidence import Evidence
from services.kit.caution import COSTS, Caution
from services.kit.llm import Sample

_DATA = files("services.gateway") / "data"
SIGNALS: dict[str, str] = yaml.safe_load((_DATA / "signals.yaml").read_text(encoding="utf-8"))
LOGPROBS = ("logprob_mean", "logprob_min", "logprob_first")
RANKS = frozenset(f"{name}_rank" for name in LOGPROBS)
# Signals that mean the same for all generators, all that the generic confidence weighs: of texts, and ranks of
# log-probabilities.
GENERIC_SIGNALS = (
    RANKS
    | {"support", "echo", "numbers_supported", "question_covered", "question_covered_best", "rare_covered"}
    | {"reader_same", "reader_span", "reader_says"}
    | {"said_unknown", "said_invalid", "false_premise", "empty", "no_record"}
)
Kind = Literal["answer", "unknown", "invalid_question"]
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
WORD = re.compile(r"[^\W\d_]{2,}")
COMMON = frozenset((_DATA / "common_words.txt").read_text(encoding="utf-8").split())
LONG_WORD = 5
# Empty lists, missing values and counts of none, in records and sentences.
_EMPTY = re.compile(
    r"\[\s*\]|\{\s*\}|\b(?:none|null|n/a|nan)\b|\b(?:is|are|of|has|have|had)\s+(?:0|zero|no)\b(?![.,]\d)"
    r"|\b(?:0|zero) (?:\w+ )?(?:records?|results?|movies?|films?|songs?|albums?|games?|matches|members?|awards?)\b"
    r"|\b(?:is|are|was|were):?[^\S\n]*+(?:[.;][^\S\n]*+)?$",
    re.IGNORECASE | re.MULTILINE,
)
_NO_RECORD = re.compile(
    r"\bno (?:\w+ ){0,2}(?:records?|match(?:es)?|results?|information|data|games?|events?)\b"
    r"|\bnot? (?:found|held|played)\b|\bdid not (?:play|take place|happen|exist)\b",
    re.IGNORECASE,
)
GENERIC = "generic"
Finite = Annotated[float, Field(allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Head(BaseModel):
    """A logistic regression over standardised signals.

    `thresholds` are the least probabilities that are acted upon, by caution.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    names: tuple[str, ...]
    means: tuple[Finite, ...]
    scales: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...]
    weights: tuple[Finite, ...]
    intercept: Finite
    thresholds: dict[Caution, Probability]

    @model_validator(mode="after")
    def _consistent(self) -> "Head":
        if not len(self.names) == len(self.means) == len(self.scales) == len(self.weights):
            raise ValueError("names, means, scales and weights are not of one length")
        if missing := COSTS.keys() - self.thresholds.keys():
            raise ValueError(f"thresholds lack {', '.join(sorted(missing))}")
        return self

    def probability(self, signals: Mapping[str, float]) -> float:
        """Probability, 0 to 1; a signal that is missing counts as average."""
        total = self.intercept
        for name, mean, scale, weight in zip(self.names, self.means, self.scales, self.weights, strict=True):
            total += weight * (signals.get(name, mean) - mean) / scale
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


class Confidence(BaseModel):
    """A fitted model.

    Args:
        answer: head of an answer's being right.
        invalid: head of the question's being invalid, whatever the generator replied.
        fitted_on: the data that the heads were fitted on, in words.
        generator: the generator whose log-probabilities they weigh.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    answer: Head
    invalid: Head | None = None
    fitted_on: str = Field("", max_length=2_000)
    generator: str = Field("", max_length=500)

    @property
    def names(self) -> set[str]:
        """Signals that it weighs."""
        return {*self.answer.names, *(self.invalid.names if self.invalid else ())}

    def decide(self, signals: Mapping[str, float], caution: Caution = "balanced") -> "Decision":
        """The reply that gains most: `p - c (1 - p)`, c by the caution, for one right by p; 0 for none."""
        right = 0.0 if signals["said_unknown"] or signals["said_invalid"] else self.answer.probability(signals)
        invalid = 0.0 if self.invalid is None else self.invalid.probability(signals)
        if self.invalid is not None and invalid >= max(self.invalid.thresholds[caution], right):
            return Decision("invalid_question", invalid)
        return Decision("answer" if right >= self.answer.thresholds[caution] else "unknown", right)


@dataclass(frozen=True, slots=True)
class Decision:
    """The kind of reply to give, and the probability that it, or the answer withheld, is right."""

    kind: Kind
    probability: float


@cache
def load() -> Mapping[str, Confidence]:
    """The shipped models by the name of the generator; read once."""
    return {
        file.name.removesuffix(".json"): Confidence.model_validate_json(file.read_bytes())
        for file in (_DATA / "confidence").iterdir()
        if file.name.endswith(".json")
    }


def name_of(generator: str, adapter: str = "") -> str:
    """The name of a confidence: MODEL without its maker, or MODEL+ADAPTER where the adapter answers."""
    name = generator.rpartition("/")[2]
    return f"{name}+{adapter}" if adapter else name


@dataclass(frozen=True, slots=True)
class Observation:
    """An answer and the circumstances that its signals are computed from.

    Args:
        answer: the greedy answer, normalised.
        sample: its tokens' log-probabilities.
        evidence: passages of the generator's prompt.
        ranks: of the log-probabilities, by signal.
        reading: the extractive reader's spans in the evidence.
    """

    query: str
    kind: Kind
    answer: str
    sample: Sample
    evidence: Sequence[Evidence]
    classification: Classification
    ranks: Mapping[str, float] = field(default_factory=dict)
    reading: ReadResponse | None = None


def signals(observation: Observation) -> dict[str, float]:
    """The signals of an answer by name, see SIGNALS; without those of parts that the observation lacks."""
    evidence, classification = observation.evidence, observation.classification
    question, answer = words(observation.query), words(observation.answer)
    passages = [words(item.text) for item in evidence]
    evidence_words: set[str] = set().union(*passages)
    text = " ".join(item.text for item in evidence)
    plain = text.replace(",", "")
    numbers = set(NUMBER.findall(observation.answer))
    values = {
        "answer_words": float(len(observation.answer.split())),
        "echo": share(answer, question),
        "support": share(answer, evidence_words),
        "numbers_supported": _mean(number.replace(",", "") in plain for number in numbers) if numbers else 1.0,
        "question_covered": share(question, evidence_words),
        "question_covered_best": max((share(question, passage) for passage in passages), default=0.0),
        "rare_covered": share({word for word in question if len(word) >= LONG_WORD}, evidence_words),
        "evidence_log_words": math.log1p(len(text.split())),
        "passages": float(len(passages)),
        "yes_no": float(observation.answer.lower().startswith(("yes", "no"))),
        "dynamic": classification.dynamic_probability,
        "said_unknown": float(observation.kind == "unknown"),
        "said_invalid": float(observation.kind == "invalid_question"),
        "empty": _mean(bool(_EMPTY.search(item.text)) for item in evidence),
        "no_record": float(any(_NO_RECORD.search(item.text) for item in evidence)),
        "false_premise": classification.false_premise_probability,
        **logprob_signals(observation.sample),
        **observation.ranks,
    }
    if observation.reading is not None:
        values |= _reader_signals(observation.reading, answer)
    return values


def logprob_signals(sample: Sample) -> dict[str, float]:
    """The signals of a completion's log-probabilities; none where the server gives none."""
    logprobs = sample.token_logprobs
    if not logprobs:
        return {}
    return dict(zip(LOGPROBS, (sum(logprobs) / len(logprobs), min(logprobs), logprobs[0]), strict=True))


def _reader_signals(reading: ReadResponse, answer: set[str]) -> dict[str, float]:
    spans = [(words(candidate.text), candidate.probability) for candidate in reading.candidates]
    best = spans[0][0] if spans else set()
    nested = (probability for span, probability in spans if span & answer and (span <= answer or answer <= span))
    return {
        "reader_same": 2 * len(best & answer) / (len(best) + len(answer)) if best & answer else 0.0,
        "reader_span": min(1.0, sum(nested)),
        "reader_says": 1.0 - reading.nothing,
    }


def words(text: str) -> set[str]:
    """A text's words without the common ones, plurals as singulars, and its numbers without separators."""
    rare = {word.removesuffix("s") for word in WORD.findall(text.lower()) if word not in COMMON}
    return rare | {number.replace(",", "") for number in NUMBER.findall(text)}


def share(part: set[str], whole: set[str]) -> float:
    """Share of `part` that is in `whole`; 0 of an empty part."""
    return len(part & whole) / len(part) if part else 0.0


def _mean(flags: Iterable[bool]) -> float:
    values = list(flags)
    return sum(values) / len(values) if values else 0.0
