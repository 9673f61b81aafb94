"""Agreement of two quantities.

Exact decimal arithmetic throughout. Two numbers agree when they are equal, or when one is the other rounded to the
places that it was written with and enough of it is left. "Right to within some percent" does not exist.
"""

from dataclasses import replace
from decimal import Decimal

from services.kit.text.quantities import ROUND_ZEROS, Quantity

# A rounded number keeps this many significant digits, or stays this near when its scale is a word ("10 million").
SIGNIFICANT = 3
NEAR = Decimal("0.005")
# Two roundings and a conversion between units.
NEAR_CONVERTED = Decimal("0.01")
# Smaller whole numbers are counts, years and places: never rounded.
ROUNDABLE_FROM = 10_000


def agree(gold: Quantity, other: Quantity, *, percent_asked: bool = False) -> bool:
    """Whether a quantity states what the gold answer's does, up to rounding."""
    if "date" in (gold.kind, other.kind):
        return _dates_agree(gold, other)
    if "clock" in (gold.kind, other.kind):
        return gold.kind == other.kind and _clocks_agree(gold, other)
    if "decade" in (gold.kind, other.kind):
        return gold.kind == other.kind and gold.value == other.value
    return any(_numbers_agree(one, two, percent_asked) for one in _readings(gold) for two in _readings(other))


def _readings(quantity: Quantity) -> list[Quantity]:
    """Itself, and what else it may mean: `5m` is five million or five metres."""
    if quantity.other is None:
        return [quantity]
    dimension, factor, scale = quantity.other
    value, step = quantity.value / scale, quantity.step / scale
    plain = replace(
        quantity, value=value, step=step, dimension=dimension, factor=factor, worded_scale=False, other=None
    )
    return [quantity, plain]


def _numbers_agree(one: Quantity, two: Quantity, percent_asked: bool) -> bool:
    if (one.value < 0) != (two.value < 0) and one.value != two.value:
        return False
    if one.dimension == two.dimension or not one.dimension or not two.dimension:
        if "percent" in (one.dimension, two.dimension) and one.dimension != two.dimension and not percent_asked:
            return False
        if one.factor != two.factor and one.dimension == two.dimension:
            return _converted_agree(one, two)
        return _same_unit_agree(one, two)
    return False


def _same_unit_agree(one: Quantity, two: Quantity) -> bool:
    if one.value == two.value:
        return True
    if one.year and two.year:
        return False
    coarse, fine = (one, two) if one.step >= two.step else (two, one)
    if coarse.step == fine.step or abs(coarse.value - fine.value) > coarse.step / 2:
        return False
    whole = coarse.step >= 1 and not coarse.worded_scale
    if fine.value == fine.value.to_integral_value() and abs(fine.value) < ROUNDABLE_FROM and not coarse.worded_scale:
        return False
    if whole and (coarse is one or fine.step >= 1):
        # `one` is the gold answer's: without a word like "million" or "about" a whole number is meant exactly.
        return False
    if not coarse.value or not fine.value:
        return False
    if coarse.value.adjusted() - coarse.step.adjusted() + 1 >= SIGNIFICANT:
        return True
    if coarse is one and not coarse.approximate:
        return False
    rounded = coarse.worded_scale or coarse.step >= 10**ROUND_ZEROS
    return rounded and abs(coarse.value - fine.value) <= NEAR * abs(fine.value)


def _converted_agree(one: Quantity, two: Quantity) -> bool:
    first, second = one.value * one.factor, two.value * two.factor
    if first == second:
        return True
    slack = (one.step * one.factor + two.step * two.factor) / 2
    return abs(first - second) <= min(slack, NEAR_CONVERTED * max(abs(first), abs(second)))


def _dates_agree(gold: Quantity, other: Quantity) -> bool:
    """Whether the other date has every part of the gold date; it may have more parts."""
    if other.kind != "date":
        return False
    if gold.kind != "date":
        return bool(gold.year) and gold.year == other.date[0]
    for index, (expected, part) in enumerate(zip(gold.date, other.date, strict=True)):
        if not expected or expected == part:
            continue
        two_digits = (gold.short_year or other.short_year) and {expected // 100, part // 100} <= {19, 20}
        if index or not part or not two_digits or expected % 100 != part % 100:
            return False
    return True


def _clocks_agree(one: Quantity, two: Quantity) -> bool:
    if one.value == two.value:
        return True
    return (one.half_day or two.half_day) and one.value % 720 == two.value % 720
