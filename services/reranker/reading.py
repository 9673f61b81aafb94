"""Reading passages for an answer: from a request to the reader and back."""

import math
from dataclasses import dataclass
from typing import Any

from proto.base import Degradation, StageTiming
from proto.read import PassageReading, ReadCandidate, ReadRequest, ReadResponse, ReadSpan
from services.kit import reader as kit
from services.kit.reader import Reader, Text

# Reserved of the caller's time for the reply: a partial reading is of use, a 504 is not.
RESERVE_S = 0.15


@dataclass(frozen=True, slots=True)
class Question:
    """A request to the reader, with its end on the monotonic clock."""

    reader: Reader
    request: ReadRequest
    until: float = math.inf

    @property
    def chars(self) -> int:
        request = self.request
        return sum(len(request.query) + len(passage.title) + len(passage.text) for passage in request.passages)

    def read(self) -> list[kit.Reading]:
        """The readings of the passages, of as many as there is time for."""
        texts = [Text(passage.text, passage.title) for passage in self.request.passages]
        return self.reader.read(self.request.query, texts, spans=self.request.spans, until=self.until)

    def response(self, readings: list[kit.Reading], timing: StageTiming) -> ReadResponse:
        """The reply: spans of each passage, and those of all as candidates."""
        texts = [passage.text for passage in self.request.passages]
        probabilities, nothing = kit.shares(readings)
        candidates = [
            ReadCandidate(passage=index, **_span(texts[index], span, probability))
            for index, reading in enumerate(readings)
            for span, probability in zip(reading.spans, probabilities[index], strict=True)
        ]
        candidates.sort(key=lambda candidate: -candidate.probability)
        unread = sum(not reading.complete for reading in readings)
        detail = f"{unread} of {len(readings)} passages were not read to their end"
        return ReadResponse(
            model=f"reader/{self.reader.precision.dtype}",
            passages=tuple(map(_passage, texts, readings)),
            candidates=tuple(candidates[: self.request.spans]),
            nothing=nothing,
            threshold=self.reader.card.threshold,
            timing=timing,
            degraded=(Degradation(stage="read", reason="timeout", detail=detail),) if unread else (),
        )


def _passage(text: str, reading: kit.Reading) -> PassageReading:
    ((probabilities,), nothing) = kit.shares([reading])
    spans = (
        ReadSpan(**_span(text, span, probability))
        for span, probability in zip(reading.spans, probabilities, strict=True)
    )
    return PassageReading(spans=tuple(spans), nothing=nothing, complete=reading.complete)


def _span(text: str, span: kit.Span, probability: float) -> dict[str, Any]:
    return {"text": text[span.start : span.end], "start": span.start, "end": span.end, "probability": probability}
