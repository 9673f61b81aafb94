"""Reading passages for an answer: from a request to the reader and back."""

import math
from dataclasses import dataclass
from pathlib import Path

from proto.base import Degradation, StageTiming
from proto.read import PassageReading, ReadCandidate, ReadRequest, ReadResponse, ReadSpan
from services.kit import reader as kit
from services.kit.precision import DtypeSetting, choose_precision
from services.kit.reader import Reader, Text
from services.reranker.settings import RerankerSettings

SHIPPED = Path(__file__).parent / "reader"
# Reserved of the caller's time for the reply: a partial reading is of use, a 504 is not.
RESERVE_S = 0.15


@dataclass(frozen=True, slots=True)
class Question:
    """A request to the reader, with its end on the monotonic clock."""

    request: ReadRequest
    until: float = math.inf

    @property
    def chars(self) -> int:
        request = self.request
        return sum(len(request.query) + len(passage.title) + len(passage.text) for passage in request.passages)


def load(settings: RerankerSettings) -> Reader:
    """The reader of the settings.

    Raises:
        NoReader: its weights are missing, damaged, or for another encoder.
    """
    # It runs on ONNX Runtime only, unlike the scorers.
    dtype: DtypeSetting = settings.precision if settings.precision in ("fp32", "int8") else "auto"
    precision = choose_precision(dtype, device="cpu", threads=settings.threads, limit=settings.cpu_isa)
    return Reader(settings.reader_weights or SHIPPED, precision)


def run_reader(reader: Reader | None, question: Question) -> list[kit.Reading]:
    """The readings of a request's passages, of as many as there is time for."""
    if reader is None:
        raise RuntimeError("there is no reader")
    request = question.request
    texts = [Text(passage.text, passage.title) for passage in request.passages]
    return reader.read(request.query, texts, spans=request.spans, until=question.until)


def response_of(request: ReadRequest, readings: list[kit.Reading], reader: Reader, timing: StageTiming) -> ReadResponse:
    """The reply: spans of each passage, and those of all as candidates."""
    probabilities, nothing = kit.shares(readings)
    ranked = sorted(
        (-probability, index, place)
        for index, spans in enumerate(probabilities)
        for place, probability in enumerate(spans)
    )
    candidates = []
    for negative, index, place in ranked[: request.spans]:
        span = readings[index].spans[place]
        text = request.passages[index].text[span.start : span.end]
        candidates.append(
            ReadCandidate(passage=index, text=text, start=span.start, end=span.end, probability=-negative)
        )
    unread = sum(not reading.complete for reading in readings)
    detail = f"{unread} of {len(readings)} passages were not read to their end"
    return ReadResponse(
        model=f"reader/{reader.precision.dtype}",
        passages=tuple(
            _passage(passage.text, reading) for passage, reading in zip(request.passages, readings, strict=True)
        ),
        candidates=tuple(candidates),
        nothing=nothing,
        threshold=reader.card.threshold,
        timing=timing,
        degraded=(Degradation(stage="read", reason="timeout", detail=detail),) if unread else (),
    )


def _passage(text: str, reading: kit.Reading) -> PassageReading:
    ((probabilities,), nothing) = kit.shares([reading])
    return PassageReading(
        spans=tuple(
            ReadSpan(text=text[span.start : span.end], start=span.start, end=span.end, probability=probability)
            for span, probability in zip(reading.spans, probabilities, strict=True)
        ),
        nothing=nothing,
        complete=reading.complete,
    )
