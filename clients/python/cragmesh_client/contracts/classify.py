# Generated from proto/classify.py by `make contracts`: edits are lost.
"""Contract of the classifier: domain, dynamism and question type of a query, each with a certainty."""

from typing import Literal

from pydantic import Field

from cragmesh_client.contracts.base import Contract, Degradation, Query, QueryTime, Score, StageTiming

Domain = Literal["finance", "sports", "music", "movie", "open"]
Dynamism = Literal["unknown", "static", "slow-changing", "fast-changing", "real-time"]
QuestionType = Literal[
    "unknown",
    "simple",
    "simple_w_condition",
    "set",
    "comparison",
    "aggregation",
    "multi-hop",
    "post-processing",
    "false_premise",
]
ClassifyMode = Literal["default", "svm", "in-context", "auto"]


class LabelProbability(Contract):
    label: str = Field(description="The label.")
    probability: Score = Field(description="How probable it is.")


class Classification(Contract):
    """The labels of CRAG (section 2) with calibrated certainties."""

    domain: Domain = Field("open", description="CRAG's domain; open when nothing more certain.")
    domain_certainty: Score = Field(0, description="Probability of the domain.")
    dynamism: Dynamism = Field("unknown", description="How fast the answer changes.")
    dynamism_certainty: Score = Field(0, description="Probability of the dynamism.")
    question_type: QuestionType = Field("unknown", description="CRAG's question type.")
    question_type_certainty: Score = Field(0, description="Probability of the question type.")
    dynamic_probability: Score = Field(
        0, description="Probability that the answer changes within a year: fast-changing or real-time."
    )
    false_premise_probability: Score = Field(0, description="Probability that the question's premise is false.")
    domain_probabilities: tuple[LabelProbability, ...] = Field((), description="All domains, for a strategy's rules.")


class ClassifyRequest(Contract):
    query: Query = Field(description="The question.")
    query_time: QueryTime | None = Field(None, description="When it was asked; now by default.")
    mode: ClassifyMode = Field("default", description="Which classifier; the service's own default when not given.")
    min_domain_certainty: Score = Field(
        0, description="The domain is `open` unless it is more certain than this, as in WeKnow-RAG with 0.9."
    )


class ClassifyResponse(Contract):
    classification: Classification = Field(description="The labels.")
    timing: StageTiming = Field(default_factory=StageTiming, description="Where the time went.")
    mode: str = Field("", description="Who said so: `svm`, `in-context`, or a head's name with each where they differ.")
    degraded: tuple[Degradation, ...] = Field((), description="What was missing, such as the generator.")
