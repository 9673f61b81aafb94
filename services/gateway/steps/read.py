"""Step `read`: what the extractive reader finds in the passages, beside the generator or where there is none."""

import re
from collections.abc import Sequence

from proto.answer import MAX_CANDIDATES, MAX_EXCERPT_CHARS, AnswerSource, Candidate
from proto.base import MAX_PASSAGE_CHARS
from proto.read import MAX_READ_PASSAGES, MAX_READ_TITLE_CHARS, ReadCandidate, ReadPassage, ReadRequest, ReadResponse
from services.gateway.context import Context
from services.gateway.evidence import Evidence
from services.gateway.normalize import normalize
from services.gateway.run import Draft, Run
from services.kit.errors import BadReply, ServiceFailure

# Spans ranked over all passages: the signals look further than an abstention shows.
SPANS = 8
# A reader that is late must not cost the answer that the generator has given meanwhile.
RESERVE_S = 0.5
# A question for yes or no is answered by no words of a passage.
_YES_OR_NO = re.compile(
    r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)\b(?!.*\bor\b)",
    re.IGNORECASE | re.DOTALL,
)


async def read(context: Context, query: str, evidence: Sequence[Evidence]) -> ReadResponse | None:
    """The reader's spans, their passages numbered as in `evidence`; None where it was not asked or failed.

    Args:
        query: the question, in plain words.
        evidence: in the prompt's order; calculations are not read.
    """
    run, cap_s = context.run, context.settings.read_cap_s
    places = [place for place, item in enumerate(evidence) if item.source != "calculator" and item.text.strip()]
    places = places[:MAX_READ_PASSAGES]
    if not places or cap_s <= 0:
        return None
    request = ReadRequest(query=query, passages=tuple(_passage(evidence[place]) for place in places), spans=SPANS)
    try:
        async with run.stage("read") as stage:
            allow_s = run.budget.allow(cap_s, reserve_s=RESERVE_S)
            response = await context.mesh.read(request, allow_s=allow_s)
            if not all(_stands(candidate, request) for candidate in response.candidates):
                raise BadReply("reader", "spans that do not stand in their passages")
            stage.of(response.timing)
            stage.detail = f"{len(response.candidates)} spans of {len(places)} passages"
    except ServiceFailure:
        return None
    for degradation in response.degraded:
        run.degrade("read", degradation.reason, degradation.detail)
    numbered = (item.model_copy(update={"passage": places[item.passage]}) for item in response.candidates)
    return response.model_copy(update={"candidates": tuple(numbered)})


def _passage(item: Evidence) -> ReadPassage:
    title = "" if item.source == "kg" else item.page_name[:MAX_READ_TITLE_CHARS]
    return ReadPassage(text=item.text[:MAX_PASSAGE_CHARS], title=title)


def _stands(candidate: ReadCandidate, request: ReadRequest) -> bool:
    if candidate.passage >= len(request.passages) or not candidate.text:
        return False
    return request.passages[candidate.passage].text[candidate.start : candidate.end] == candidate.text


def extract(
    run: Run,
    query: str,
    reading: ReadResponse,
    evidence: Sequence[Evidence],
    source: AnswerSource,
    *,
    threshold: float | None,
) -> Draft:
    """What stands where no generator answers: the best span if it is likely enough, else an abstention that shows it.

    Args:
        source: of the passages.
        threshold: the least probability of an answer; what was fitted with the reader's weights when None.
    """
    shown = tuple(evidence)
    candidates = tuple(_candidate(item, shown) for item in reading.candidates[:MAX_CANDIDATES])
    silent = Draft(evidence=shown, candidates=candidates)
    least = reading.threshold if threshold is None else threshold
    best = reading.candidates[0] if reading.candidates else None
    if best is None or best.probability < least or _YES_OR_NO.match(query):
        likely = f"{best.probability:.2f}" if best else "none"
        run.decide("read", f"best span {likely}, alone given from {least:.2f} on; nothing said {reading.nothing:.2f}")
        return silent
    said = normalize(best.text)
    # A page may hold the words of an abstention, or of a refusal.
    if said.kind != "answer":
        return silent
    run.decide("read", f"a span with {best.probability:.2f} stands in for the generator, should it not answer")
    return Draft(said.answer, "answer", round(best.probability, 4), source, shown, candidates)


def behind(candidates: Sequence[Candidate], count: int) -> tuple[Candidate, ...]:
    """Candidates of evidence that has got so many more items in front of it."""
    return tuple(item.model_copy(update={"citation": item.citation + count}) for item in candidates)


def _candidate(found: ReadCandidate, evidence: Sequence[Evidence]) -> Candidate:
    text = evidence[found.passage].text
    room = max(0, MAX_EXCERPT_CHARS - (found.end - found.start))
    left = max(0, min(found.start - room // 2, len(text) - MAX_EXCERPT_CHARS))
    excerpt = text[left : left + MAX_EXCERPT_CHARS]
    return Candidate(
        span=found.text,
        passage=excerpt,
        start=found.start - left,
        end=found.end - left,
        citation=found.passage,
        probability=found.probability,
    )
