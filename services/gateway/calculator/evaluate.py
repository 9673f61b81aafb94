"""Tree to value, with its unit, its inputs and a sentence that says all of it.

Units come from the inputs: terms of a sum share one, and a quotient of like quantities is a ratio. A unit that the
inputs do not settle stays open rather than guessed.
"""

import decimal
import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionUndefined, InvalidOperation, Overflow
from typing import Literal

from services.gateway.calculator.errors import EvaluationError
from services.gateway.calculator.tree import (
    Binary,
    Call,
    Compare,
    Comparison,
    Day,
    Expression,
    Minus,
    Node,
    Number,
    render,
)
from services.kit.text.dates import whole_years
from services.kit.text.writing import number_text

PRECISION = 40
# Half goes up, as people round.
ARITHMETIC = Context(
    prec=PRECISION,
    Emin=-999,
    Emax=999,
    rounding=ROUND_HALF_UP,
    traps=[decimal.DivisionByZero, InvalidOperation, Overflow],
)
# Beyond a trillion squared nothing is a quantity that people ask about.
MAX_MAGNITUDE = Decimal("1e30")
MAX_EXPONENT = 100
MAX_ROUNDING = 10
HUNDRED = Decimal(100)

# "points" are hundredths that no sign marks.
Unit = Literal["", "%", "$", "€", "£", "ratio", "points", "days", "years"]
MEASURES = ("$", "€", "£", "days", "years")
SPANS = ("days", "years")
# Days of a week, a month and a year, months and weeks of a year, hours, minutes, and years of a decade, a century and a
# millennium: times or over one of them, a span changes its unit.
CALENDAR = frozenset(map(Decimal, (7, 10, 12, 24, 30, 52, 60, 100, 365, 1000)))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value and its unit; a percentage is a share of one here, and `bare` is an integer that was written as it is."""

    value: Decimal
    unit: Unit = ""
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Calculation:
    """The value of an expression: a number (12 for 12 %), or the truth value of a comparison.

    `text` has expression and value, to be read as a reference: `(259.2 - 133.7) / 133.7 = 0.9387 (93.87 %)`.
    """

    value: Decimal | bool
    text: str


def evaluate(expression: Expression) -> Calculation:
    """The value of an expression.

    Raises:
        EvaluationError: it has no value, or none that is a plausible quantity.
    """
    text = render(expression)
    nodes = (expression.left, expression.right) if isinstance(expression, Compare) else (expression,)
    try:
        with decimal.localcontext(ARITHMETIC):
            quantities = [_quantity(node) for node in nodes]
    except (decimal.DivisionByZero, DivisionUndefined):
        raise EvaluationError("a division by zero") from None
    except Overflow:
        raise EvaluationError("a number is too large") from None
    except InvalidOperation:
        raise EvaluationError("an operation has no value") from None
    if not isinstance(expression, Compare):
        value, words = _result(quantities[0])
        return Calculation(value, f"{text} = {words}")
    left, right = quantities
    _shared_unit(quantities)
    holds = COMPARATORS[expression.operator](left.value, right.value)
    computed = [
        _result(quantity)[1] for node, quantity in zip(nodes, quantities, strict=True) if not isinstance(node, Number)
    ]
    values = f", with {' and '.join(computed)}" if computed else ""
    return Calculation(holds, f"{text} is {'true' if holds else 'false'}{values}")


COMPARATORS: dict[Comparison, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _quantity(node: Node) -> Quantity:
    """A node's value in the context `ARITHMETIC`: each node is visited once, and a larger number takes no longer.

    Raises:
        EvaluationError: it has none.
        decimal.DecimalException: the same, as decimals have it.
    """
    match node:
        case Number():
            bare = not node.mark and not node.scale and node.mantissa == node.mantissa.to_integral_value()
            quantity = Quantity(node.value, node.mark, bare)
        case Minus():
            operand = _quantity(node.operand)
            return replace(operand, value=operand.value.copy_negate())
        case Call():
            quantity = _call(node)
        case Binary():
            quantity = _binary(node, _quantity(node.left), _quantity(node.right))
    if abs(quantity.value) > MAX_MAGNITUDE:
        raise EvaluationError("a number is too large")
    return quantity


def _shared_unit(quantities: Sequence[Quantity]) -> Unit:
    """The unit of quantities that are added or compared.

    Raises:
        EvaluationError: they have several.
    """
    units = {quantity.unit for quantity in quantities} - {""}
    plain = [quantity for quantity in quantities if not quantity.unit]
    if units == {"%", "ratio"}:
        return "ratio"
    if len(units) > 1:
        raise EvaluationError(f"{' and '.join(sorted(units))} do not add up")
    unit: Unit = next(iter(units), "")
    if plain and unit in ("%", "ratio"):
        # Of 1 + 5 % and a ratio less 1 the meaning is plain; 100 + 5 % means two things.
        if all(quantity.bare and abs(quantity.value) <= 1 for quantity in plain):
            return "ratio"
        if unit == "%":
            raise EvaluationError("a percentage and a plain number do not add up: write both with %")
        return ""
    return unit


def _binary(node: Binary, left: Quantity, right: Quantity) -> Quantity:
    a, b = left.value, right.value
    match node.operator:
        case "+" | "-":
            return Quantity(a + b if node.operator == "+" else a - b, _shared_unit([left, right]))
        case "*":
            return Quantity(a * b, _of_product(left, right))
        case "/":
            return Quantity(a / _divisor(b), _of_quotient(left, right))
        case "**":
            return Quantity(_power(a, b), "ratio" if left.unit in ("ratio", "%") else "")


def _divisor(value: Decimal) -> Decimal:
    if not value:
        raise EvaluationError("a division by zero")
    return value


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    """A power whose size is known to be bounded before it is computed."""
    if abs(exponent) > MAX_EXPONENT:
        raise EvaluationError(f"an exponent is at most {MAX_EXPONENT}")
    if not base:
        if exponent < 0:
            raise EvaluationError("zero to a negative power")
        if not exponent:
            raise EvaluationError("zero to the power of zero")
        return Decimal(0)
    if base < 0 and exponent != exponent.to_integral_value():
        raise EvaluationError("a root of a negative number")
    if abs(base.adjusted()) * abs(exponent) > MAX_MAGNITUDE.adjusted() + MAX_EXPONENT:
        raise EvaluationError("a power is too large")
    return base**exponent


def _call(node: Call) -> Quantity:
    if all(isinstance(argument, Day) for argument in node.arguments):
        return _between(node.function, *(argument.value for argument in node.arguments if isinstance(argument, Day)))
    arguments = [_quantity(argument) for argument in node.arguments if not isinstance(argument, Day)]
    values = [argument.value for argument in arguments]
    if node.function == "round":
        return _rounded(*arguments)
    unit = _shared_unit(arguments)
    match node.function:
        case "abs":
            return Quantity(abs(values[0]), unit)
        case "min":
            return Quantity(min(values), unit)
        case "max":
            return Quantity(max(values), unit)
        case "sum":
            return Quantity(sum(values, Decimal(0)), unit)
        case "mean":
            return Quantity(sum(values, Decimal(0)) / len(values), unit)
        case "median":
            return Quantity(statistics.median(values), unit)
        case _:
            old, new = values
            if old < 0:
                raise EvaluationError("a change in percent of a negative number")
            return Quantity((new - old) / _divisor(old), "%")


def _between(function: str, first: date, last: date) -> Quantity:
    if function == "days_between":
        return Quantity(Decimal((last - first).days), "days")
    if last < first:
        raise EvaluationError("the second day is before the first")
    return Quantity(Decimal(whole_years(first, last)), "years")


def _rounded(quantity: Quantity, places: Quantity = Quantity(Decimal(0), bare=True)) -> Quantity:
    unit = quantity.unit
    if not places.bare or abs(places.value) > MAX_ROUNDING:
        raise EvaluationError(f"round takes whole places, at most {MAX_ROUNDING}")
    # A percentage is rounded as it is written.
    digits = int(places.value) + 2 * (unit == "%")
    value = quantity.value
    if digits < MAX_ROUNDING + PRECISION // 2 and value.adjusted() + digits < PRECISION:
        value = value.quantize(Decimal(1).scaleb(-digits))
    return Quantity(value, unit)


def _of_product(left: Quantity, right: Quantity) -> Unit:
    for one, other in ((left, right), (right, left)):
        if one.unit == "ratio" and other.bare and other.value == HUNDRED:
            return "points"
        if one.unit in SPANS and other.bare and other.value in CALENDAR:
            return ""
        if one.unit in MEASURES and other.unit in ("", "%", "ratio"):
            return one.unit
    if left.unit == right.unit == "%":
        return "%"
    if {left.unit, right.unit} <= {"ratio", "%"}:
        return "ratio"
    return ""


def _of_quotient(left: Quantity, right: Quantity) -> Unit:
    if left.unit in SPANS and right.bare and right.value in CALENDAR:
        return ""
    if right.unit == "" and right.bare and abs(right.value) <= 31:
        # The number of things over which is averaged.
        return left.unit
    if left.unit == right.unit or {left.unit, right.unit} == {"ratio", "%"}:
        return "ratio"
    return left.unit if right.unit in ("ratio", "%", "") else ""


def _result(quantity: Quantity) -> tuple[Decimal, str]:
    """The value in its unit, and both in words."""
    value = quantity.value
    match quantity.unit:
        case "%":
            value = value.scaleb(2)
            return value, f"{number_text(value)} %"
        case "points":
            return value, f"{number_text(value)} (per cent)"
        case "ratio":
            percent = f" ({number_text(value.scaleb(2))} %)" if abs(value) < 10 else ""
            return value, f"{number_text(value)}{percent}"
        case "days" | "years" as span:
            return value, f"{number_text(value)} {span}"
        case "":
            return value, number_text(value)
        case currency:
            return value, f"{'-' if value < 0 else ''}{currency}{number_text(abs(value))}"
