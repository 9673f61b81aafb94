"""The breaker's three states."""

from services.kit.breaker import Breaker
from tests.unit.conftest import Clock


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(threshold=2, first_open_s=1, max_open_s=3, clock=clock)
    for _ in range(2):
        assert breaker.admit()
        breaker.failed()
    return breaker


def test_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker(threshold=2, clock=Clock())
    breaker.failed()
    breaker.succeeded()
    breaker.failed()
    assert breaker.state == "closed"
    breaker.failed()
    assert breaker.state == "open"
    assert not breaker.admit()


def test_half_open_lets_one_probe_through_and_success_closes_it() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 1
    assert breaker.admit()
    assert not breaker.admit()
    breaker.succeeded()
    assert breaker.admit()
    assert breaker.state == "closed"


def test_a_failed_probe_opens_it_for_longer_up_to_the_cap() -> None:
    clock = Clock()
    breaker = opened(clock)
    for open_s in (1, 2, 3, 3):
        clock.now += open_s - 0.01
        assert not breaker.admit()
        clock.now += 0.01
        assert breaker.admit()
        breaker.failed()


def test_an_abandoned_probe_leaves_room_for_the_next() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 1
    assert breaker.admit()
    breaker.abandoned()
    assert breaker.admit()
