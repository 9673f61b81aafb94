"""Signals of an answer, and the probability that a fitted head makes of them."""

from dataclasses import replace

import pytest

from proto.classify import Classification
from proto.read import ReadCandidate, ReadResponse
from services.gateway import confidence
from services.gateway.confidence import SIGNALS, Head, Seen, signals
from services.gateway.evidence import Evidence
from services.gateway.normalize import Normalized
from services.kit.caution import Caution
from services.kit.llm import Sample

PAGE = Evidence("The Harbour Light was built in 1864 by Marta Lindqvist for 1,200,000 crowns.", page=0)


def seen(answer: str, **change: object) -> Seen:
    values: dict[str, object] = {
        "query": "who built the harbour light?",
        "kind": "answer",
        "answer": answer,
        "sample": Sample(answer, "stop", -0.2, (-0.1, -0.3)),
        "evidence": [PAGE],
        "classification": Classification(),
    }
    return Seen(**(values | change))  # type: ignore[arg-type]


def reading(*spans: tuple[str, float], nothing: float = 0.2) -> ReadResponse:
    candidates = tuple(
        ReadCandidate(passage=0, text=text, start=0, end=len(text), probability=probability)
        for text, probability in spans
    )
    return ReadResponse(model="reader/fp32", candidates=candidates, nothing=nothing, threshold=0.5)


def test_every_signal_is_named_and_explained() -> None:
    told = (Normalized("Jonas Berg", "answer"),)
    ranks = dict.fromkeys(confidence.RANKS, 0.5)
    read = reading(("Marta", 0.5))
    more = seen("Marta Lindqvist", others=told, sources=told, check=0.5, unaided=(-1.0,), ranks=ranks, reading=read)
    found = signals(more)
    assert set(found) == set(SIGNALS)


def test_support_and_echo_tell_an_answer_from_a_guess() -> None:
    grounded, guess, parrot = (signals(seen(text)) for text in ("Marta Lindqvist", "Jonas Berg", "the harbour light"))
    assert grounded["support"] == 1 > guess["support"] == 0
    assert parrot["echo"] == 1 > grounded["echo"] == 0


def test_numbers_are_compared_without_their_separators() -> None:
    assert signals(seen("1200000 crowns"))["numbers_supported"] == 1
    assert signals(seen("1864 or 1865"))["numbers_supported"] == 0.5


def test_the_question_about_another_thing_is_not_covered() -> None:
    other = signals(seen("1864", query="when was the grand observatory of lyon opened?"))
    assert other["rare_covered"] == 0 < signals(seen("1864"))["rare_covered"]


def test_samples_and_checks_count() -> None:
    others = (
        Normalized("marta lindqvist", "answer"),
        Normalized("Jonas Berg", "answer"),
        Normalized("", "unknown"),
        Normalized("", "invalid_question"),
    )
    found = signals(seen("Marta Lindqvist", others=others, check=0.8))
    assert (found["agreement"], found["abstain"], found["invalid"], found["check"]) == (0.25, 0.25, 0.25, 0.8)
    assert signals(seen("Marta Lindqvist", sources=others[:2]))["sources"] == 0.5


def test_what_was_not_asked_or_not_offered_is_no_signal() -> None:
    missing = set(SIGNALS) - set(signals(seen("Marta Lindqvist", sample=Sample("Marta Lindqvist", "stop"))))
    asked_for = {"agreement", "abstain", "invalid", "check", "sources", "gain_mean"}
    asked_for |= {"reader_same", "reader_span", "reader_says"}
    assert missing == asked_for | {"logprob_mean", "logprob_min", "logprob_first"} | confidence.RANKS


@pytest.mark.parametrize(
    ("aided", "unaided", "gain"),
    [
        ((-0.1, -0.3), (-2.0, -4.0), 2.8),
        # The reply's end is scored, and is no part of the text.
        ((-0.1, -0.3, -5.0), (-2.0, -4.0), 2.8),
        # The text is cut into other tokens than it was written with.
        ((-0.2,), (-1.0, -3.0), 1.8),
        ((-3.0, -3.0), (-1.0, -1.0), -2.0),
        ((-0.1,), (-9999.0,), 10.0),
    ],
)
def test_what_the_evidence_adds_to_an_answers_probability(
    aided: tuple[float, ...], unaided: tuple[float, ...], gain: float
) -> None:
    sample = Sample("Marta Lindqvist", "stop", None, aided)
    assert signals(seen("Marta Lindqvist", sample=sample, unaided=unaided))["gain_mean"] == pytest.approx(gain)


def test_without_log_probabilities_no_gain_is_told() -> None:
    bare = seen("Marta Lindqvist", sample=Sample("Marta Lindqvist", "stop"), unaided=(-1.0,))
    assert "gain_mean" not in signals(bare)


@pytest.mark.parametrize(
    ("query", "unsaid"),
    [
        ("Who built the Harbour Light?", 0.0),
        ("Did Marta Lindqvist build the Harbour Tower?", 0.25),
        ("Who built the Northern Pier in March 1864?", 1.0),
        # A month is none, and a planet is no month.
        ("Was the Harbour Light on Mars in May?", 1 / 3),
        # The first word begins the question, whatever it is; other names are not told in small letters.
        ("Lindqvist built what with Osvaldo?", 1.0),
        ("who built the harbour light?", 0.0),
        ("who built the harbour tower?", 1 / 3),
        ("who is it?", 0.0),
    ],
)
def test_names_of_the_question_that_the_passage_lacks(query: str, unsaid: float) -> None:
    assert signals(seen("Marta Lindqvist", query=query))["names_unsaid"] == pytest.approx(unsaid)


def test_what_is_unsaid_is_told_of_the_passage_with_the_answer() -> None:
    other = Evidence("The Northern Pier opened in 1902.", page=1)
    query = "Who built the Northern Pier in 1902?"
    found = signals(seen("Marta Lindqvist", query=query, evidence=[other, PAGE]))
    assert (found["names_unsaid"], found["numbers_unsaid"]) == (1.0, 1.0)
    titled = replace(PAGE, page_name="Northern Pier", text=PAGE.text + " It opened in 1,902 days.")
    found = signals(seen("Marta Lindqvist", query=query, evidence=[other, titled]))
    assert (found["names_unsaid"], found["numbers_unsaid"]) == (0.0, 0.0)
    # An answer that stands nowhere is looked for where the question is.
    assert signals(seen("Jonas Berg", query=query, evidence=[PAGE, other]))["names_unsaid"] == 0.0
    calculated = Evidence("1902 Marta Lindqvist", page=2, source="calculator")
    assert signals(seen("Marta Lindqvist", query=query, evidence=[calculated, PAGE]))["numbers_unsaid"] == 1.0


@pytest.mark.parametrize(
    ("query", "text", "unsaid"),
    [
        ("what was sold on march 5, 2021?", "2021-03-05: 14 lamps", 0.0),
        ("what was sold on 5th of march 2021?", "On Mar. 5, 2021 they sold lamps.", 0.0),
        ("what was sold on march 5, 2021?", "On April 5, 2021 they sold lamps.", 1 / 3),
        ("what may be sold in 2021?", "In 2021 lamps are sold.", 0.0),
        ("what cost 1,200 crowns?", "A lamp costs 1200 crowns.", 0.0),
        ("what cost 1,200 crowns?", "A lamp costs 12 crowns.", 1.0),
        ("what is sold?", "Nothing.", 0.0),
    ],
)
def test_numbers_and_months_are_the_same_however_they_are_written(query: str, text: str, unsaid: float) -> None:
    found = signals(seen("lamps", query=query, evidence=[Evidence(text, page=0)]))
    assert found["numbers_unsaid"] == pytest.approx(unsaid)


def test_an_answer_of_another_kind_than_asked_for_is_told() -> None:
    assert signals(seen("1864"))["kind_misfit"] == 1.0
    assert signals(seen("Marta Lindqvist"))["kind_misfit"] == 0.0
    assert signals(seen("1864", kind="unknown"))["kind_misfit"] == 0.0


def test_a_gain_may_change_more_than_a_share() -> None:
    model = confidence.Confidence(answer=head(names=("support", "gain_mean"), weights=(3.0, 0.5)))
    known = {"said_unknown": 0.0, "said_invalid": 0.0, "support": 0.0}
    assert model.may_change(known, confidence.GAINED)
    assert model.decide(known | {"gain_mean": 1.0}).kind == "unknown"
    assert model.decide(known | {"gain_mean": confidence.MAX_GAIN}).kind == "answer"


def test_how_relevant_the_passages_are() -> None:
    ranked = [replace(PAGE, score=score) for score in (0.25, 0.75, 0.5)]
    found = signals(seen("Marta Lindqvist", evidence=ranked))
    assert (found["score_best"], found["score_gap"]) == (0.75, 0.25)


def test_nothing_shown_and_nothing_said_are_numbers_too() -> None:
    empty = signals(seen("", evidence=[], sample=Sample("", "stop")))
    assert all(value == value for value in empty.values())


def head(**change: object) -> Head:
    values: dict[str, object] = {
        "names": ("support", "echo"),
        "means": (0.5, 0.5),
        "scales": (0.5, 0.5),
        "weights": (2.0, -1.0),
        "intercept": 0.0,
        "threshold": 0.5,
    }
    return Head.model_validate(values | change)


def test_a_head_adds_what_its_signals_weigh() -> None:
    assert head().probability({"support": 0.5, "echo": 0.5}) == pytest.approx(0.5)
    assert head().probability({"support": 1.0, "echo": 0.0}) == pytest.approx(0.9526, abs=1e-3)
    assert head().probability({}) == pytest.approx(0.5)
    assert head(weights=(1e9, 0.0)).probability({"support": 1.0, "echo": 0.5}) <= 1


@pytest.mark.parametrize(
    ("weight", "support", "change"), [(0.1, 1.0, False), (0.1, 0.5, True), (9.0, 1.0, True), (-9.0, 1.0, True)]
)
def test_a_call_is_of_use_only_where_its_signal_could_change_what_is_said(
    weight: float, support: float, change: bool
) -> None:
    model = confidence.Confidence(answer=head(names=("support", "check"), weights=(2.0, weight)))
    known = {"said_unknown": 0.0, "said_invalid": 0.0, "support": support}
    assert model.may_change(known, {"check", "agreement"}) == change
    assert not model.may_change(known, {"agreement"})


def test_shipped_models_know_only_signals_that_there_are() -> None:
    for model in confidence.load().values():
        for fitted in (model.answer, model.invalid):
            if fitted is not None:
                assert set(fitted.names) <= set(SIGNALS)
                assert len(fitted.names) == len(fitted.means) == len(fitted.scales) == len(fitted.weights)


def weighed(signal: str, *, threshold: float = 0.5) -> Head:
    return head(names=(signal,), means=(0.5,), scales=(0.5,), weights=(4.0,), threshold=threshold)


@pytest.mark.parametrize(
    ("kind", "support", "no_record", "said"),
    [
        ("answer", 1.0, 0.0, "answer"),
        ("answer", 0.0, 0.0, "unknown"),
        ("answer", 0.0, 1.0, "invalid_question"),
        ("unknown", 1.0, 0.0, "unknown"),
        ("unknown", 1.0, 1.0, "invalid_question"),
        ("invalid_question", 1.0, 0.0, "unknown"),
    ],
)
def test_the_reply_that_gains_most_is_chosen(kind: str, support: float, no_record: float, said: str) -> None:
    model = confidence.Confidence(answer=weighed("support"), invalid=weighed("no_record"))
    found = signals(seen("Marta Lindqvist", kind=kind)) | {"support": support, "no_record": no_record}
    assert model.decide(found).kind == said


def test_a_model_knows_which_calls_it_needs() -> None:
    model = confidence.Confidence(answer=weighed("support"), invalid=weighed("check"))
    assert model.uses(confidence.CHECKED)
    assert not model.uses(confidence.SAMPLED)


@pytest.mark.parametrize(
    ("text", "empty", "no_record"),
    [
        ("The Harbour Light was built in 1864.", 0, 0),
        ("the awards are []", 1, 0),
        ("born: None", 1, 0),
        ("The band has 0 members.", 1, 0),
        ("The growth is 0.4 percent.", 0, 0),
        ("There is no match record for that day.", 1, 1),
        ("No such game was found on 2024-01-02.", 0, 1),
        ("The match was not played.", 0, 1),
    ],
)
def test_emptiness_is_seen(text: str, empty: int, no_record: int) -> None:
    found = signals(seen("x", evidence=[Evidence(text, page=0)]))
    assert (found["empty"], found["no_record"]) == (empty, no_record)


def test_one_threshold_of_an_earlier_file_is_the_balanced_one() -> None:
    lines = head(threshold=0.5).thresholds
    assert (lines["low"], lines["balanced"], lines["high"]) == pytest.approx((1 / 3, 0.5, 2 / 3))
    assert set(head(threshold=1.0).thresholds.values()) == {1.0}
    assert set(head(threshold=0.0).thresholds.values()) == {0.0}


@pytest.mark.parametrize(("caution", "said"), [("low", "answer"), ("balanced", "answer"), ("high", "unknown")])
def test_caution_moves_the_line(caution: Caution, said: str) -> None:
    # Right with 0.62: worth it where a wrong answer costs as much as a right one earns, not where it costs twice that.
    model = confidence.Confidence(answer=head(intercept=0.5))
    found = {"said_unknown": 0.0, "said_invalid": 0.0, "support": 0.5, "echo": 0.5}
    assert model.decide(found, caution).kind == said
    assert not model.may_change(found, {"check"}, caution)


def test_a_call_is_of_use_by_the_line_of_the_caution() -> None:
    model = confidence.Confidence(answer=head(names=("support", "check"), weights=(0.1, 1.0)))
    known = {"said_unknown": 0.0, "said_invalid": 0.0, "support": 0.5}
    assert model.may_change(known, {"check"}, "balanced")
    near = confidence.Confidence(answer=head(names=("support", "check"), weights=(0.1, 0.5)))
    assert near.may_change(known, {"check"}, "balanced")
    assert not near.may_change(known, {"check"}, "high")


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
    found = signals(seen(answer, reading=reading(("Marta Lindqvist", 0.6), ("in 1864", 0.1))))
    assert found["reader_same"] == pytest.approx(same)
    assert found["reader_span"] == pytest.approx(span)
    assert found["reader_says"] == pytest.approx(0.8)


def test_without_a_reader_its_signals_are_missing() -> None:
    assert not {name for name in signals(seen("Marta Lindqvist")) if name.startswith("reader_")}
    nothing = signals(seen("Marta Lindqvist", reading=reading(nothing=1.0)))
    assert (nothing["reader_same"], nothing["reader_span"], nothing["reader_says"]) == (0.0, 0.0, 0.0)
