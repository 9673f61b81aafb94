"""The labels of CRAG (section 2) as heads, and a classifier's predictions: a probability for each label."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from proto.classify import Classification, Domain, Dynamism, LabelProbability, QuestionType

UNKNOWN = "unknown"
OPEN = "open"

HEADS: Mapping[str, tuple[str, ...]] = {
    "domain": get_args(Domain),
    "dynamism": tuple(label for label in get_args(Dynamism) if label != UNKNOWN),
    "question_type": tuple(label for label in get_args(QuestionType) if label != UNKNOWN),
}

# ElectricSheep (section 4.2) collapses the four degrees to two, since their borders blur. An answer that holds for a
# year or more can come from any page; one that does not is dynamic.
DYNAMIC = frozenset({"fast-changing", "real-time"})

Distribution = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One head's probabilities, in 0..1, summing to 1, by a mode; `chosen` overrules the most probable label."""

    probabilities: Distribution
    mode: str = ""
    chosen: str = ""

    @property
    def label(self) -> str:
        """The label chosen, or the most probable one, of several the first in the contract's order."""
        return self.chosen or max(self.probabilities, key=lambda label: self.probabilities[label])

    @property
    def certainty(self) -> float:
        return self.probabilities[self.label]

    def of(self, labels: frozenset[str]) -> float:
        """Probability that one of these labels is right."""
        return sum(probability for label, probability in self.probabilities.items() if label in labels)


# A classifier's result for a query, by `HEADS`.
Labels = Mapping[str, Prediction]


def classification(labels: Labels) -> Classification:
    """The contract's message."""
    domain, dynamism, question_type = (labels[head] for head in HEADS)
    return Classification.model_validate(
        {
            **{head: prediction.label for head, prediction in labels.items()},
            **{f"{head}_certainty": _unit(prediction.certainty) for head, prediction in labels.items()},
            "dynamic_probability": _unit(dynamism.of(DYNAMIC)),
            "false_premise_probability": _unit(question_type.probabilities.get("false_premise", 0.0)),
            "domain_probabilities": tuple(
                LabelProbability(label=label, probability=_unit(probability))
                for label, probability in domain.probabilities.items()
            ),
        }
    )


def above(labels: Labels, certainty: float) -> Labels:
    """The labels, with the domain `open` unless it is more certain than this (WeKnow-RAG: 0.9)."""
    domain = labels["domain"]
    if domain.label == OPEN or domain.certainty > certainty:
        return labels
    return {**labels, "domain": replace(domain, chosen=OPEN)}


def _unit(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 4)
