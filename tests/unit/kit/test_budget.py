"""The budget: what is left, what a stage may take."""

from hypothesis import given
from hypothesis import strategies as st

from services.kit.budget import Budget
from tests.unit.conftest import Clock

seconds = st.floats(0, 100)


def test_left_counts_down_to_zero_and_no_further() -> None:
    clock = Clock()
    budget = Budget(2, clock=clock)
    clock.now += 1.5
    assert budget.left() == 0.5
    assert budget.elapsed_ms() == 1500
    clock.now += 5
    assert budget.left() == 0


@given(total=seconds, cap=seconds, reserve=seconds, passed=seconds)
def test_allow_never_touches_the_reserve(total: float, cap: float, reserve: float, passed: float) -> None:
    clock = Clock()
    budget = Budget(total, clock=clock)
    clock.now += passed
    allowed = budget.allow(cap, reserve_s=reserve)
    assert 0 <= allowed <= cap
    assert allowed == 0 or allowed <= budget.left() - reserve + 1e-9


def test_within_counts_from_the_same_start_and_never_ends_later() -> None:
    clock = Clock()
    outer = Budget(10, clock=clock)
    clock.now += 2
    inner = outer.within(5)
    assert inner.left() == 3
    assert inner.elapsed_ms() == 2000
    assert outer.within(60).left() == 8
