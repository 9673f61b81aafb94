"""Step `read`: the extractive reader's spans of the passages, beside the generator or in its place."""

from collections.abc import Sequence
from dataclasses import replace

from proto.answer import MAX_CANDIDATES, MAX_EXCERPT_CHARS, AnswerSource, Candidate
from proto.base import MAX_PASSAGE_CHARS
from proto.read import (
    MAX_READ_PASSAGES,
    MAX_READ_TITLE_CHARS,
    PassageReading,
    ReadCandidate,
    ReadPassage,
    ReadRequest,
    ReadResponse,
    ReadSpan,
)
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.normalize import normalize
from services.gateway.question import asks_whether
from services.gateway.run import Draft, Run
from services.kit.errors import BadReply, ServiceFailure

# Of all passages: signals use more of them than an abstention shows.
SPANS = 8
# A slow reader must not delay the generator's answer.
RESERVE_S = 0.5
# An abstention shows no passage whose score is less than this share of the best one's: it only looks like an answer.
NEAR = 0.05
_UNREAD = PassageReading(nothing=1.0)


async def read(context: Context, query: str, evidence: Sequence[Evidence]) -> ReadResponse | None:
    """The reader's spans, their passages numbered as in `evidence`; None without passages, or where it failed.

    Args:
        query: the question without politeness.
        evidence: in the prompt's order; calculations are not read.
    """
    run, cap_s = context.run, context.settings.read_cap_s
    indexes = [index for index, item in enumerate(evidence) if item.source != "calculator" and item.text.strip()]
    indexes = indexes[:MAX_READ_PASSAGES]
    if not indexes or cap_s <= 0:
        return None
    request = ReadRequest(query=query, passages=tuple(_passage(evidence[index]) for index in indexes), spans=SPANS)
    try:
        async with run.stage("read") as stage:
            allow_s = run.budget.allow(cap_s, reserve_s=RESERVE_S)
            response = await context.mesh.read(request, allow_s=allow_s)
            if not _spans_stand_in_passages(response, request):
                raise BadReply("reader", "spans that do not stand in their passages")
            stage.add(response.timing)
            stage.detail = f"{len(response.candidates)} spans of {len(indexes)} passages"
    except ServiceFailure:
        return None
    run.degrade_all(response.degraded, stage="read")
    numbered = (item.model_copy(update={"passage": indexes[item.passage]}) for item in response.candidates)
    readings = dict(zip(indexes, response.passages, strict=False))
    passages = tuple(readings.get(index, _UNREAD) for index in range(len(evidence)))
    return response.model_copy(update={"candidates": tuple(numbered), "passages": passages})


def _passage(item: Evidence) -> ReadPassage:
    title = "" if item.source == "kg" else item.page_name[:MAX_READ_TITLE_CHARS]
    return ReadPassage(text=item.text[:MAX_PASSAGE_CHARS], title=title)


def _spans_stand_in_passages(response: ReadResponse, request: ReadRequest) -> bool:
    texts = [passage.text for passage in request.passages]
    spans: list[tuple[int, ReadSpan | ReadCandidate]]
    spans = [(index, span) for index, reading in enumerate(response.passages) for span in reading.spans]
    spans += [(candidate.passage, candidate) for candidate in response.candidates]
    return all(
        index < len(texts) and span.text and texts[index][span.start : span.end] == span.text for index, span in spans
    )


def extract(
    run: Run,
    query: str,
    reading: ReadResponse,
    evidence: Sequence[Evidence],
    source: AnswerSource,
    *,
    threshold: float | None,
) -> Draft:
    """The answer without a generator: the best span if it is likely enough, else an abstention with the nearest spans.

    Args:
        source: of the passages.
        threshold: the least probability of an answer; the one fitted with the reader's weights when None.
    """
    candidates = tuple(_candidate(item, evidence) for item in _nearest(reading, evidence)[:MAX_CANDIDATES])
    abstention = Draft(evidence=tuple(evidence), candidates=candidates)
    threshold = reading.threshold if threshold is None else threshold
    best = reading.candidates[0] if reading.candidates else None
    # No span of a passage answers a question for yes or no.
    if best is None or best.probability < threshold or asks_whether(query):
        likely = f"{best.probability:.2f}" if best else "none"
        run.decide(
            "read", f"best span {likely}, alone given from {threshold:.2f} on; nothing said {reading.nothing:.2f}"
        )
        return abstention
    normalized = normalize(best.text)
    # A page may hold the words of an abstention, or of a refusal.
    if normalized.kind != "answer":
        return abstention
    run.decide("read", f"a span with {best.probability:.2f} stands in for the generator, should it not answer")
    return replace(
        abstention, answer=normalized.answer, kind="answer", confidence=round(best.probability, 4), source=source
    )


def _nearest(reading: ReadResponse, evidence: Sequence[Evidence]) -> list[ReadCandidate]:
    """The spans of those passages that ranking finds near, by their probabilities times their passages' scores."""
    best = max((item.score for item in evidence), default=0.0)
    weights = [item.score / best if best > 0 and item.source == "web" else 1.0 for item in evidence]
    spans = [
        # As in `reading.candidates`: the odds against nothing, shared among all passages.
        ReadCandidate(
            passage=index,
            text=span.text,
            start=span.start,
            end=span.end,
            probability=min(1.0, span.probability / max(passage.nothing, 1e-9) * reading.nothing),
        )
        for index, passage in enumerate(reading.passages)
        if weights[index] >= NEAR
        for span in passage.spans
    ]
    return sorted(spans, key=lambda span: -span.probability * weights[span.passage])


def behind(candidates: Sequence[Candidate], count: int) -> tuple[Candidate, ...]:
    """Candidates whose evidence has got `count` more items in front."""
    return tuple(item.model_copy(update={"citation": item.citation + count}) for item in candidates)


def _candidate(span: ReadCandidate, evidence: Sequence[Evidence]) -> Candidate:
    text = evidence[span.passage].text
    room = max(0, MAX_EXCERPT_CHARS - (span.end - span.start))
    first = max(0, min(span.start - room // 2, len(text) - MAX_EXCERPT_CHARS))
    return Candidate(
        span=span.text,
        passage=text[first : first + MAX_EXCERPT_CHARS],
        start=span.start - first,
        end=span.end - first,
        citation=span.passage,
        probability=span.probability,
    )
