"""Signals of an answer, and the probability that a fitted head makes of them."""

import pytest

from proto.classify import Classification
from services.gateway import confidence
from services.gateway.confidence import SIGNALS, Head, Seen, signals
from services.gateway.evidence import Evidence
from services.kit.llm import Sample

PAGE = Evidence("The Harbour Light was built in 1864 by Marta Lindqvist for 1,200,000 crowns.", page=0)


def seen(answer: str, **change: object) -> Seen:
    values: dict[str, object] = {
        "query": "who built the harbour light?",
        "answer": answer,
        "sample": Sample(answer, "stop", -0.2, (-0.1, -0.3)),
        "evidence": [PAGE],
        "classification": Classification(),
    }
    return Seen(**(values | change))  # type: ignore[arg-type]


def test_every_signal_is_named_and_explained() -> None:
    assert set(signals(seen("Marta Lindqvist"))) == set(SIGNALS)


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
    others = (("answer", "marta lindqvist"), ("answer", "Jonas Berg"), ("unknown", ""), ("invalid_question", ""))
    found = signals(seen("Marta Lindqvist", others=others, check=0.8))
    assert (found["agreement"], found["abstain"], found["invalid"], found["check"]) == (0.25, 0.25, 0.25, 0.8)
    assert signals(seen("Marta Lindqvist"))["agreement"] == -1


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


def test_shipped_models_know_only_signals_that_there_are() -> None:
    for model in confidence.load().values():
        for fitted in (model.answer, model.invalid):
            if fitted is not None:
                assert set(fitted.names) <= set(SIGNALS)
                assert len(fitted.names) == len(fitted.means) == len(fitted.scales) == len(fitted.weights)


def test_a_generator_has_its_own_model_or_the_default() -> None:
    own, default = (confidence.Confidence(answer=head(threshold=line)) for line in (0.2, 0.8))
    models = {"some-model": own, "default": default}
    assert confidence.choose(models, "org/some-model") is own
    assert confidence.choose(models, "another") is default
    assert confidence.choose({}, "another") is None
