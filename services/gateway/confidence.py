"""How likely an answer is right, from what was seen on the way to it, by a small fitted model; and when to give it.

A wrong answer costs in CRAG what a right one earns, so an answer is worth giving when it is right more often than
wrong; where exactly the line lies is chosen on validation data (`cragmesh calibrate`). The model is data: a logistic
regression over the signals below, whose weights, scales and thresholds are in `data/confidence/`, a file a generator:
log-probabilities of one model mean something else than another's. A generator without a file of its own is weighed by
`generic.json`, whose signals mean the same for all; `calibration.py` says which files count.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from proto.classify import Classification
from proto.read import ReadResponse
from services.gateway.evidence import Evidence
from services.gateway.normalize import Normalized
from services.kit.caution import COSTS, Caution, shifted
from services.kit.llm import Sample

# What each signal says; a fitted model names those that it uses.
SIGNALS: dict[str, str] = {
    "logprob_mean": "mean log-probability of the answer's tokens",
    "logprob_min": "that of its least likely token",
    "logprob_first": "that of its first token, where an abstention would begin",
    "logprob_mean_rank": "share of this generator's recent answers whose mean is lower; 0.5 until 50 were seen",
    "logprob_min_rank": "the same of the least likely token",
    "logprob_first_rank": "the same of the first token",
    "answer_words": "words of the answer",
    "echo": "share of the answer's words that the question has",
    "support": "share of the answer's words that the evidence has",
    "numbers_supported": "share of the answer's numbers that the evidence has",
    "question_covered": "share of the question's words that the evidence has",
    "question_covered_best": "the same for the best single passage",
    "rare_covered": "share of the question's long words that the evidence has: names are among them",
    "evidence_log_words": "words of the evidence, logarithm",
    "passages": "passages of evidence",
    "yes_no": "1 for an answer that begins with yes or no",
    "agreement": "share of further samples that say the same",
    "check": "probability that the model gives to `yes` when asked whether the evidence says so",
    "abstain": "share of further samples that abstain",
    "invalid": "share of further samples that call the question invalid",
    "dynamic": "probability that the answer changes with time",
    "false_premise": "probability that the question is false",
    "sources": "share of what other sources said, the graph before the web and the model's memory, that says the same",
    "reader_same": "share of words that the extractive reader's best span and the answer have in common",
    "reader_span": "probability of the reader's spans that the answer says, or that say the answer",
    "reader_says": "probability that the passages say it at all, by the reader",
    "score_best": "relevance of the best passage, by whoever ranked it last",
    "score_gap": "how far the second best is behind it",
    "said_unknown": "1 when the model abstains",
    "said_invalid": "1 when the model calls the question invalid",
    "empty": "share of the passages that have an empty list, a missing value or a count of none",
    "no_record": "1 when a passage says that there is no such record, game or event",
    "domain_finance": "probability of the domain",
    "domain_movie": "likewise",
    "domain_music": "likewise",
    "domain_open": "likewise",
    "domain_sports": "likewise",
}
# Signals that cost a call each to the generator; a head without their names does without the call.
SAMPLED = frozenset({"agreement", "abstain", "invalid"})
CHECKED = frozenset({"check"})
REMEMBERED = frozenset({"sources"})
LOGPROBS = ("logprob_mean", "logprob_min", "logprob_first")
RANKS = frozenset(f"{name}_rank" for name in LOGPROBS)
# Which domains are asked about, and how hard each is, differs between what is made up and what is asked.
DOMAINS = frozenset(name for name in SIGNALS if name.startswith("domain_"))
# Signals that mean the same whoever answers: of texts, of the generator's agreement with itself, and of
# log-probabilities their rank. The generic confidence weighs nothing else.
GENERIC_SIGNALS = (
    SAMPLED
    | CHECKED
    | RANKS
    | {"support", "echo", "numbers_supported", "question_covered", "question_covered_best", "rare_covered"}
    | {"reader_same", "reader_span", "reader_says"}
    | {"said_unknown", "said_invalid", "false_premise", "empty", "no_record"}
)
Kind = Literal["answer", "unknown", "invalid_question"]
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
WORD = re.compile(r"[^\W\d_]{2,}")
COMMON = frozenset((files("services.gateway") / "data" / "common_words.txt").read_text(encoding="utf-8").split())
LONG_WORD = 5
# How lists, records and sentences say that they hold nothing.
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
    """A logistic regression: standardise, weigh, add.

    `thresholds` are the least probabilities that are acted upon, by caution. A file from before there were several has
    one `threshold`, which is the balanced one; the others are where theory moves it to.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    names: tuple[str, ...]
    means: tuple[Finite, ...]
    scales: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...]
    weights: tuple[Finite, ...]
    intercept: Finite
    thresholds: dict[Caution, Probability]

    @model_validator(mode="before")
    @classmethod
    def _one_threshold(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "threshold" not in values or "thresholds" in values:
            return values
        kept = {name: value for name, value in values.items() if name != "threshold"}
        one = values["threshold"]
        if isinstance(one, bool) or not isinstance(one, int | float) or not 0 <= one <= 1:
            raise ValueError("threshold is no probability")
        return kept | {"thresholds": {caution: shifted(one, cost) for caution, cost in COSTS.items()}}

    @model_validator(mode="after")
    def _whole(self) -> "Head":
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
    """`answer`: that an answer is right; `invalid`: that the question is invalid, whatever the model said of it.

    Args:
        fitted_on: what the heads were fitted on, for the reader.
        generator: whose log-probabilities they know; another model's mean something else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    answer: Head
    invalid: Head | None = None
    fitted_on: str = Field("", max_length=2_000)
    generator: str = Field("", max_length=500)

    @property
    def names(self) -> set[str]:
        """The signals that it weighs."""
        return {*self.answer.names, *(self.invalid.names if self.invalid else ())}

    def uses(self, names: frozenset[str]) -> bool:
        """Whether any head weighs one of these signals."""
        return bool(names & self.names)

    def decide(self, signals: Mapping[str, float], caution: Caution = "balanced") -> "Decision":
        """What to say: whatever gains most, `p - c (1 - p)` for a reply that is right with probability p, 0 for none.

        Args:
            caution: how dear a wrong reply is, c.
        """
        right = 0.0 if signals["said_unknown"] or signals["said_invalid"] else self.answer.probability(signals)
        invalid = 0.0 if self.invalid is None else self.invalid.probability(signals)
        if self.invalid is not None and invalid >= max(self.invalid.thresholds[caution], right):
            return Decision("invalid_question", invalid)
        return Decision("answer" if right >= self.answer.thresholds[caution] else "unknown", right)

    def may_change(self, signals: Mapping[str, float], names: Iterable[str], caution: Caution = "balanced") -> bool:
        """Whether further signals, shares or probabilities all of them, could change what is said of a question."""
        wanted = [name for name in names if self.uses(frozenset({name}))]
        extremes = (dict(zip(wanted, ends, strict=True)) for ends in product((0.0, 1.0), repeat=len(wanted)))
        return len({self.decide({**signals, **ends}, caution).kind for ends in extremes}) > 1


@dataclass(frozen=True, slots=True)
class Decision:
    """What to say of a question.

    Args:
        kind: the answer that was found, nothing, or that the question is invalid.
        probability: of being right with it; of the answer's when nothing is said.
    """

    kind: Kind
    probability: float


@cache
def load() -> Mapping[str, Confidence]:
    """The shipped models by the name of the generator; read once."""
    folder = files("services.gateway") / "data" / "confidence"
    if not folder.is_dir():
        return {}
    return {
        file.name.removesuffix(".json"): Confidence.model_validate(json.loads(file.read_text(encoding="utf-8")))
        for file in folder.iterdir()
        if file.name.endswith(".json")
    }


def name_of(generator: str, adapter: str = "") -> str:
    """What a confidence is called: MODEL, or MODEL+ADAPTER where the adapter answers.

    Args:
        generator: the base model's name, with or without its maker's.
    """
    name = generator.rpartition("/")[2]
    return f"{name}+{adapter}" if adapter else name


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one answer.

    Args:
        query: the question.
        kind: of the greedy reply.
        answer: the greedy answer, normalised.
        sample: its tokens' log-probabilities.
        evidence: what the generator was shown.
        classification: of the question.
        others: further samples.
        sources: what other sources said.
        check: the model's own probability that the evidence says so.
        ranks: of the log-probabilities, by signal; none where there are no log-probabilities.
        reading: what the extractive reader found in the evidence.
    """

    query: str
    kind: Kind
    answer: str
    sample: Sample
    evidence: Sequence[Evidence]
    classification: Classification
    others: Sequence[Normalized] = field(default=())
    sources: Sequence[Normalized] = field(default=())
    check: float | None = None
    ranks: Mapping[str, float] = field(default_factory=dict)
    reading: ReadResponse | None = None


def signals(seen: Seen) -> dict[str, float]:
    """The signals of an answer by name, see SIGNALS; those of what was not asked or not offered are missing."""
    question, answer = words(seen.query), words(seen.answer)
    passages = [words(item.text) for item in seen.evidence]
    shown: set[str] = set().union(*passages) if passages else set()
    long = {word for word in question if len(word) >= LONG_WORD}
    numbers = set(NUMBER.findall(seen.answer))
    text = " ".join(item.text for item in seen.evidence)
    plain = text.replace(",", "")
    domains = {item.label: item.probability for item in seen.classification.domain_probabilities}
    scores = sorted((item.score for item in seen.evidence), reverse=True)
    found = {
        "answer_words": float(len(seen.answer.split())),
        "echo": share(answer, question),
        "support": share(answer, shown),
        "numbers_supported": (
            sum(number.replace(",", "") in plain for number in numbers) / len(numbers) if numbers else 1.0
        ),
        "question_covered": share(question, shown),
        "question_covered_best": max((share(question, passage) for passage in passages), default=0.0),
        "rare_covered": share(long, shown),
        "evidence_log_words": math.log1p(len(text.split())),
        "passages": float(len(passages)),
        "yes_no": float(seen.answer.lower().startswith(("yes", "no"))),
        "score_best": scores[0] if scores else 0.0,
        "score_gap": scores[0] - scores[1] if len(scores) > 1 else 0.0,
        "dynamic": seen.classification.dynamic_probability,
        "said_unknown": float(seen.kind == "unknown"),
        "said_invalid": float(seen.kind == "invalid_question"),
        "empty": _mean(bool(_EMPTY.search(item.text)) for item in seen.evidence),
        "no_record": float(any(_NO_RECORD.search(item.text) for item in seen.evidence)),
        "false_premise": seen.classification.false_premise_probability,
        **{f"domain_{name}": domains.get(name, 0.0) for name in ("finance", "movie", "music", "open", "sports")},
    }
    found |= logprob_signals(seen.sample)
    found |= seen.ranks
    if seen.others:
        found |= {
            "agreement": _share_same(seen.others, answer),
            "abstain": _share_of(seen.others, "unknown"),
            "invalid": _share_of(seen.others, "invalid_question"),
        }
    if seen.sources:
        found["sources"] = _share_same(seen.sources, answer)
    if seen.check is not None:
        found["check"] = seen.check
    if seen.reading is not None:
        found |= _of_reading(seen.reading, answer)
    return found


def logprob_signals(sample: Sample) -> dict[str, float]:
    """The signals of a reply's log-probabilities; none where the server gives none."""
    logprobs = sample.token_logprobs
    if not logprobs:
        return {}
    return dict(zip(LOGPROBS, (sum(logprobs) / len(logprobs), min(logprobs), logprobs[0]), strict=True))


def _of_reading(reading: ReadResponse, answer: set[str]) -> dict[str, float]:
    spans = [(words(candidate.text), candidate.probability) for candidate in reading.candidates]
    best = spans[0][0] if spans else set()
    within = (chance for span, chance in spans if span & answer and (span <= answer or answer <= span))
    return {
        "reader_same": 2 * len(best & answer) / (len(best) + len(answer)) if best & answer else 0.0,
        "reader_span": min(1.0, sum(within)),
        "reader_says": 1.0 - reading.nothing,
    }


def words(text: str) -> set[str]:
    """A text's words without those that every text has, plurals as singulars, and its numbers without separators."""
    found = {word.removesuffix("s") for word in WORD.findall(text.lower()) if word not in COMMON}
    return found | {number.replace(",", "") for number in NUMBER.findall(text)}


def share(part: set[str], whole: set[str]) -> float:
    """Share of `part` that is in `whole`; 0 of nothing."""
    return len(part & whole) / len(part) if part else 0.0


def _mean(flags: Iterable[bool]) -> float:
    seen = list(flags)
    return sum(seen) / len(seen) if seen else 0.0


def _share_same(others: Sequence[Normalized], answer: set[str]) -> float:
    return sum(other.kind == "answer" and words(other.answer) == answer for other in others) / len(others)


def _share_of(others: Sequence[Normalized], kind: Kind) -> float:
    return sum(other.kind == kind for other in others) / len(others)
