"""Signals of an answer, and the decision of a fitted model."""

import pytest

from proto.classify import Classification
from proto.read import ReadCandidate, ReadResponse
from services.gateway import confidence
from services.gateway.confidence import SIGNALS, Head, Observation, signals
from services.gateway.evidence import Evidence
from services.kit.caution import COSTS, Caution, line
from services.kit.llm import Sample

PAGE = Evidence("The Harbour Light was built in 1864 by Marta Lindqvist for 1,200,000 crowns.", page=0)


def signals_of(answer: str, **change: object) -> dict[str, float]:
    values: dict[str, object] = {
        "query": "who built the harbour light?",
        "kind": "answer",
        "answer": answer,
        "sample": Sample(answer, "stop", -0.2, (-0.1, -0.3)),
        "evidence": [PAGE],
        "classification": Classification(),
    }
    return signals(Observation(**(values | change)))  # type: ignore[arg-type]


def reading(*spans: tuple[str, float], nothing: float = 0.2) -> ReadResponse:
    candidates = tuple(
        ReadCandidate(passage=0, text=text, start=0, end=len(text), probability=probability)
        for text, probability in spans
    )
    return ReadResponse(model="reader/fp32", candidates=candidates, nothing=nothing, threshold=0.5)


@pytest.mark.parametrize(
    ("answer", "change", "expected"),
    [
        ("Marta Lindqvist", {}, {"support": 1, "echo": 0}),
        ("Jonas Berg", {}, {"support": 0}),
        ("the harbour light", {}, {"echo": 1}),
        # Separators of thousands say nothing.
        ("1200000 crowns", {}, {"numbers_supported": 1}),
        ("1864 or 1865", {}, {"numbers_supported": 0.5}),
        ("1864", {}, {"rare_covered": 1}),
        ("1864", {"query": "when was the grand observatory of lyon opened?"}, {"rare_covered": 0}),
    ],
)
def test_what_an_answer_shows(answer: str, change: dict[str, object], expected: dict[str, float]) -> None:
    values = signals_of(answer, **change)
    assert {name: values[name] for name in expected} == expected


def test_every_signal_is_named_and_explained() -> None:
    values = signals_of(
        "Marta Lindqvist",
        ranks=dict.fromkeys(confidence.RANKS, 0.5),
        reading=reading(("Marta", 0.5)),
    )
    assert set(values) == set(SIGNALS)


def test_what_was_not_asked_or_not_offered_is_no_signal() -> None:
    missing = set(SIGNALS) - set(signals_of("Marta Lindqvist", sample=Sample("Marta Lindqvist", "stop")))
    assert missing == {"reader_same", "reader_span", "reader_says", *confidence.LOGPROBS, *confidence.RANKS}


def test_nothing_shown_and_nothing_said_are_numbers_too() -> None:
    empty = signals_of("", evidence=[], sample=Sample("", "stop"))
    assert all(value == value for value in empty.values())


def head(**change: object) -> Head:
    values: dict[str, object] = {
        "names": ("support", "echo"), "means": (0.5, 0.5), "scales": (0.5, 0.5), "weights": (2.0, -1.0),
        "intercept": 0.0, "thresholds": {caution: line(cost) for caution, cost in COSTS.items()},
    }  # fmt: skip
    return Head.model_validate(values | change)


def test_a_head_adds_what_its_signals_weigh() -> None:
    assert head().probability({"support": 0.5, "echo": 0.5}) == pytest.approx(0.5)
    assert head().probability({"support": 1.0, "echo": 0.0}) == pytest.approx(0.9526, abs=1e-3)
    assert head().probability({}) == pytest.approx(0.5)
    assert head(weights=(1e9, 0.0)).probability({"support": 1.0, "echo": 0.5}) <= 1


def test_shipped_models_know_only_signals_that_there_are() -> None:
    for model in confidence.load().values():
        assert model.names <= SIGNALS.keys()


def weighed(signal: str) -> Head:
    return head(names=(signal,), means=(0.5,), scales=(0.5,), weights=(4.0,))


@pytest.mark.parametrize(
    ("kind", "support", "no_record", "reply"),
    [
        ("answer", 1.0, 0.0, "answer"),
        ("answer", 0.0, 0.0, "unknown"),
        ("answer", 0.0, 1.0, "invalid_question"),
        ("unknown", 1.0, 0.0, "unknown"),
        ("unknown", 1.0, 1.0, "invalid_question"),
        ("invalid_question", 1.0, 0.0, "unknown"),
    ],
)
def test_the_reply_that_gains_most_is_chosen(kind: str, support: float, no_record: float, reply: str) -> None:
    model = confidence.Confidence(answer=weighed("support"), invalid=weighed("no_record"))
    values = signals_of("Marta Lindqvist", kind=kind) | {"support": support, "no_record": no_record}
    assert model.decide(values).kind == reply


@pytest.mark.parametrize(
    ("text", "empty", "no_record"),
    [
        ("The Harbour Light was built in 1864.", 0, 0),
        ("the awards are []", 1, 0),
        ("born: None", 1, 0),
        ("The band has 0 members.", 1, 0),
        ("The growth is 0.4 percent.", 0, 0),
        ("There is no match record for that day.", 1, 1),
        ("No such game was values on 2024-01-02.", 0, 1),
        ("The match was not played.", 0, 1),
    ],
)
def test_emptiness_is_seen(text: str, empty: int, no_record: int) -> None:
    values = signals_of("x", evidence=[Evidence(text, page=0)])
    assert (values["empty"], values["no_record"]) == (empty, no_record)


@pytest.mark.parametrize(
    ("caution", "reply"),
    # Right with 0.62: worth it where a wrong answer costs what a right one earns, not where it costs twice that.
    [("low", "answer"), ("balanced", "answer"), ("high", "unknown")],
)
def test_caution_moves_the_line(caution: Caution, reply: str) -> None:
    model = confidence.Confidence(answer=head(intercept=0.5))
    values = {"said_unknown": 0.0, "said_invalid": 0.0, "support": 0.5}
    assert model.decide(values, caution).kind == reply


def test_the_generic_signals_are_signals_and_none_is_a_bare_log_probability() -> None:
    assert set(SIGNALS) > confidence.GENERIC_SIGNALS
    assert not set(confidence.LOGPROBS) & confidence.GENERIC_SIGNALS


@pytest.mark.parametrize(
    ("answer", "same", "span"),
    [
        ("Marta Lindqvist", 1.0, 0.6),
        ("Marta", 2 / 3, 0.6),
        ("it was Marta Lindqvist of Lund", 0.8, 0.6),
        ("1864", 0.0, 0.1),
        ("Jonas Berg", 0.0, 0.0),
    ],
)
def test_the_extractive_reader_is_asked_whether_it_says_the_same(answer: str, same: float, span: float) -> None:
    values = signals_of(answer, reading=reading(("Marta Lindqvist", 0.6), ("in 1864", 0.1)))
    assert values["reader_same"] == pytest.approx(same)
    assert values["reader_span"] == pytest.approx(span)
    assert values["reader_says"] == pytest.approx(0.8)


def test_a_reader_that_finds_nothing_says_so() -> None:
    nothing = signals_of("Marta Lindqvist", reading=reading(nothing=1.0))
    assert (nothing["reader_same"], nothing["reader_span"], nothing["reader_says"]) == (0.0, 0.0, 0.0)
