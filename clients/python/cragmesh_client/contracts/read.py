# Generated from proto/read.py by `make contracts`: edits are lost.
"""Contract of the reranker's `POST /read`: where passages answer a question, word for word."""

from pydantic import Field

from cragmesh_client.contracts.base import Contract, Count, Degradation, Passage, Query, Score, StageTiming

MAX_READ_PASSAGES = 50
MAX_SPANS = 10
MAX_SPAN_CHARS = 500
MAX_READ_TITLE_CHARS = 2_000


class ReadPassage(Contract):
    text: Passage = Field(description="The passage.")
    title: str = Field(
        "", max_length=MAX_READ_TITLE_CHARS, description="What it is about, where it has a title; no span lies in it."
    )


class ReadRequest(Contract):
    query: Query = Field(description="The question.")
    passages: tuple[ReadPassage, ...] = Field(
        min_length=1, max_length=MAX_READ_PASSAGES, description="The passages, best first: time may not be for all."
    )
    spans: int = Field(5, ge=1, le=MAX_SPANS, description="Spans of a passage, and candidates in all, at most.")


class ReadSpan(Contract):
    """Words of a passage that may answer the question; overlapping spans count as one."""

    text: str = Field(max_length=MAX_SPAN_CHARS, description="The words.")
    start: Count = Field(description="First character in the passage.")
    end: Count = Field(description="One past the last character.")
    probability: Score = Field(description="That the answer stands there, among all spans of the passage and none.")


class PassageReading(Contract):
    spans: tuple[ReadSpan, ...] = Field((), description="Best first.")
    nothing: Score = Field(description="Probability that the passage does not say.")
    complete: bool = Field(True, description="Whether all of it was read.")


class ReadCandidate(Contract):
    """A span, ranked among those of all passages."""

    passage: Count = Field(description="Position of its passage in the request.")
    text: str = Field(max_length=MAX_SPAN_CHARS, description="The words.")
    start: Count = Field(description="First character in the passage.")
    end: Count = Field(description="One past the last character.")
    probability: Score = Field(description="That the answer stands there, among all spans of all passages and none.")


class ReadResponse(Contract):
    model: str = Field(description="The reader and its number format.")
    passages: tuple[PassageReading, ...] = Field((), description="In the order of the request.")
    candidates: tuple[ReadCandidate, ...] = Field((), description="Best first.")
    nothing: Score = Field(description="Probability that none of the passages says it.")
    threshold: Score = Field(
        description="The probability from which on a candidate was worth an answer, where a wrong one costs what a "
        "right one earns, on passages that the reader was not taught on."
    )
    timing: StageTiming = Field(default_factory=StageTiming, description="Where the time went.")
    degraded: tuple[Degradation, ...] = Field((), description="What was not read, and why.")
