"""Contract of the classifier: domain, dynamism and question type of a query, each with a certainty."""

from typing import Literal

from pydantic import Field

from proto.base import Contract, Query, QueryTime, Score, StageTiming

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


class Classification(Contract):
    """The labels of CRAG (section 2) with calibrated certainties."""

    domain: Domain = Field("open", description="CRAG's domain; open when nothing more certain.")
    domain_certainty: Score = Field(0, description="Probability of the domain.")
    dynamism: Dynamism = Field("unknown", description="How fast the answer changes.")
    dynamism_certainty: Score = Field(0, description="Probability of the dynamism.")
    question_type: QuestionType = Field("unknown", description="CRAG's question type.")
    question_type_certainty: Score = Field(0, description="Probability of the question type.")


class ClassifyRequest(Contract):
    query: Query = Field(description="The question.")
    query_time: QueryTime | None = Field(None, description="When it was asked; now by default.")


class ClassifyResponse(Contract):
    classification: Classification = Field(description="The labels.")
    timing: StageTiming = Field(default_factory=StageTiming, description="Where the time went.")
