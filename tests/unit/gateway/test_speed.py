"""The generator's speed is estimated from whole requests."""

import random

import pytest

from services.gateway.speed import MARGIN, GeneratorSpeed


def test_the_prior_is_what_is_configured() -> None:
    speed = GeneratorSpeed(1 / 600, 1 / 25)
    assert speed.seconds(600, 25) == pytest.approx(2)
    assert speed.affordable_prompt(2 * MARGIN, 25) == pytest.approx(600, abs=1)
    assert speed.affordable_prompt(0.1, 25) == 0


@pytest.mark.parametrize(("prefill", "decode"), [(1 / 5_000, 1 / 40), (1 / 200, 1 / 60)])
def test_it_learns_both_rates(prefill: float, decode: float) -> None:
    speed, draw = GeneratorSpeed(1 / 600, 1 / 25), random.Random(1)
    for _ in range(40):
        prompt, completion = draw.randint(50, 4_000), draw.randint(1, 75)
        speed.observe(prompt, completion, (prompt * prefill + completion * decode) * draw.uniform(0.9, 1.1))
    assert speed.prefill_s == pytest.approx(prefill, rel=0.3)
    assert speed.seconds(2_000, 50) == pytest.approx(2_000 * prefill + 50 * decode, rel=0.2)


def test_a_generator_that_slows_down_is_believed_within_ten_requests() -> None:
    speed = GeneratorSpeed(1 / 1_000, 1 / 50)
    for _ in range(30):
        speed.observe(1_000, 20, 1.4)
    for _ in range(10):
        speed.observe(1_000, 20, 5.6)
    assert speed.seconds(1_000, 20) > 3


def test_rates_stay_positive_whatever_is_observed() -> None:
    speed, draw = GeneratorSpeed(1 / 600, 1 / 25), random.Random(2)
    for _ in range(200):
        speed.observe(draw.randint(1, 5_000), draw.randint(0, 75), draw.uniform(0.001, 30))
        assert speed.prefill_s > 0
        assert speed.decode_s > 0


def test_requests_too_short_to_tell_are_not_learnt_from() -> None:
    speed = GeneratorSpeed(1 / 1_000, 1 / 50)
    for _ in range(20):
        speed.observe(1, 1, 2.5)
    assert speed.seconds(1_000, 25) == pytest.approx(1.5)


def test_an_engine_that_was_slow_is_asked_again() -> None:
    speed = GeneratorSpeed(1 / 1_000, 1 / 50)
    for _ in range(20):
        speed.observe(1_000, 20, 60)
    assert speed.affordable_prompt(10, 25) < 64
    refused = 0
    while speed.affordable_prompt(10, 25) < 64:
        speed.regress()
        refused += 1
    assert 1 <= refused <= 20


def test_requests_in_flight_share_the_engine_fairly() -> None:
    speed = GeneratorSpeed(1 / 1_000, 1 / 50)
    alone = speed.affordable_prompt(4, 25)
    with speed.request(), speed.request(), speed.request(), speed.request():
        assert speed.affordable_prompt(4, 25) == pytest.approx(alone / 4, abs=1)
        # Four at a time, each four times as slow: the engine is as fast as ever.
        for _ in range(20):
            speed.observe(1_000, 20, 4.4)
    assert speed.seconds(1_000, 20) == pytest.approx(1.4, rel=0.2)
