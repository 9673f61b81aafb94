"""The pace finds the generator's speed from whole requests."""

import random

import pytest

from services.gateway.pace import Pace


def test_the_first_guess_is_what_was_told() -> None:
    pace = Pace(1 / 600, 1 / 25)
    assert pace.seconds(600, 25) == pytest.approx(2)
    assert pace.affordable_prompt(2, 25) == pytest.approx(600, abs=1)
    assert pace.affordable_prompt(0.1, 25) == 0


@pytest.mark.parametrize(("prefill", "decode"), [(1 / 5_000, 1 / 40), (1 / 200, 1 / 60)])
def test_it_learns_both_rates(prefill: float, decode: float) -> None:
    pace, draw = Pace(1 / 600, 1 / 25), random.Random(1)
    for _ in range(40):
        prompt, completion = draw.randint(50, 4_000), draw.randint(1, 75)
        pace.observe(prompt, completion, (prompt * prefill + completion * decode) * draw.uniform(0.9, 1.1))
    assert pace.prefill_s == pytest.approx(prefill, rel=0.3)
    assert pace.seconds(2_000, 50) == pytest.approx(2_000 * prefill + 50 * decode, rel=0.2)


def test_a_generator_that_slows_down_is_believed_within_ten_requests() -> None:
    pace = Pace(1 / 1_000, 1 / 50)
    for _ in range(30):
        pace.observe(1_000, 20, 1.4)
    for _ in range(10):
        pace.observe(1_000, 20, 5.6)
    assert pace.seconds(1_000, 20) > 3


def test_rates_stay_positive_whatever_is_observed() -> None:
    pace, draw = Pace(1 / 600, 1 / 25), random.Random(2)
    for _ in range(200):
        pace.observe(draw.randint(1, 5_000), draw.randint(0, 75), draw.uniform(0.001, 30))
        assert pace.prefill_s > 0
        assert pace.decode_s > 0


def test_requests_too_short_to_tell_are_not_learnt_from() -> None:
    pace = Pace(1 / 1_000, 1 / 50)
    for _ in range(20):
        pace.observe(1, 1, 2.5)
    assert pace.seconds(1_000, 25) == pytest.approx(1.5)


def test_an_engine_that_was_slow_is_asked_again() -> None:
    pace = Pace(1 / 1_000, 1 / 50)
    for _ in range(20):
        pace.observe(1_000, 20, 60)
    assert pace.affordable_prompt(10, 25) < 64
    refused = 0
    while pace.affordable_prompt(10, 25) < 64:
        pace.doubt()
        refused += 1
    assert 1 <= refused <= 20


def test_requests_in_flight_share_the_engine_fairly() -> None:
    pace = Pace(1 / 1_000, 1 / 50)
    alone = pace.affordable_prompt(4, 25)
    with pace.request(), pace.request(), pace.request(), pace.request():
        assert pace.affordable_prompt(4, 25) == pytest.approx(alone / 4, abs=1)
        # Four at a time, each four times as slow: the engine is as fast as ever.
        for _ in range(20):
            pace.observe(1_000, 20, 4.4)
    assert pace.seconds(1_000, 20) == pytest.approx(1.4, rel=0.2)
