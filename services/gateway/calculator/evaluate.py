"""Tree to value, with its unit, its inputs and a sentence that says all of it.

Units come from the inputs: terms of a sum share one, and a quotient of like quantities is a ratio. A unit that the
inputs do not settle stays open rather than guessed.
"""

import decimal
import itertools
import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, DivisionUndefined, InvalidOperation, Overflow
from typing import Literal

from services.gateway.calculator.errors import DivisionByZero, TooLarge, Undefined, UnitMismatch
from services.gateway.calculator.tree import (
    Binary,
    Call,
    Compare,
    Comparison,
    Day,
    Expression,
    Node,
    Number,
    Unary,
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

# "date" is the number of a day, counted from the first day of year 1; "points" are hundredths that no sign marks.
Unit = Literal["", "%", "$", "€", "£", "ratio", "points", "days", "years", "date"]
MEASURES = ("$", "€", "£", "days", "years")
SPANS = ("days", "years")
# Days of a week, a month and a year, months and weeks of a year: times or over one of them, a span changes its unit.
CALENDAR = frozenset(map(Decimal, (7, 12, 30, 52, 365)))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value and its unit; a percentage is a share of one here, and `bare` is an integer that was written as it is."""

    value: Decimal
    unit: Unit = ""
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Calculation:
    """The value of an expression: a number (12 for 12 %), a truth value of a comparison, or a day.

    `text` has expression and value, to be read as a reference: `(259.2 - 133.7) / 133.7 = 0.9387 (93.87 %)`.
    """

    value: Decimal | bool | date
    text: str


def evaluate(expression: Expression) -> Calculation:
    """The value of an expression.

    Raises:
        EvaluationError: it has no value, or none that is a plausible quantity.
    """
    text = render(expression)
    nodes = expression.operands if isinstance(expression, Compare) else (expression,)
    try:
        with decimal.localcontext(ARITHMETIC):
            quantities = [_quantity(node) for node in nodes]
    except (decimal.DivisionByZero, DivisionUndefined):
        raise DivisionByZero("a division by zero") from None
    except Overflow:
        raise TooLarge("a number is too large") from None
    except InvalidOperation:
        raise Undefined("an operation has no value") from None
    if not isinstance(expression, Compare):
        value, words = _result(quantities[0])
        return Calculation(value, f"{text} = {words}")
    pairs = list(itertools.pairwise(quantities))
    for pair in pairs:
        _shared_unit(pair)
    holds = all(
        COMPARATORS[sign](left.value, right.value)
        for sign, (left, right) in zip(expression.operators, pairs, strict=True)
    )
    computed = [
        _result(quantity)[1]
        for node, quantity in zip(nodes, quantities, strict=True)
        if not isinstance(node, Number | Day)
    ]
    values = f", with {' and '.join(computed)}" if computed else ""
    return Calculation(holds, f"{text} is {'true' if holds else 'false'}{values}")


COMPARATORS: dict[Comparison, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
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
        case Day():
            return Quantity(Decimal(node.value.toordinal()), "date")
        case Unary():
            operand = _quantity(node.operand)
            if operand.unit == "date":
                raise UnitMismatch("a day has no sign")
            value = operand.value.copy_negate() if node.sign == "-" else operand.value
            return Quantity(value, operand.unit, operand.bare)
        case Call():
            quantity = _call(node, [_quantity(argument) for argument in node.arguments])
        case Binary():
            quantity = _binary(node, _quantity(node.left), _quantity(node.right))
    if abs(quantity.value) > MAX_MAGNITUDE:
        raise TooLarge("a number is too large")
    if quantity.unit == "date" and not 1 <= quantity.value <= date.max.toordinal():
        raise Undefined("a day that no calendar has")
    return quantity


def _shared_unit(quantities: Sequence[Quantity]) -> Unit:
    """The unit of quantities that are added or compared.

    Raises:
        UnitMismatch: they have several.
    """
    units = {quantity.unit for quantity in quantities} - {""}
    plain = [quantity for quantity in quantities if not quantity.unit]
    if units == {"%", "ratio"}:
        return "ratio"
    if len(units) > 1:
        raise UnitMismatch(f"{' and '.join(sorted(units))} do not add up")
    unit: Unit = next(iter(units), "")
    if plain and unit in ("%", "ratio"):
        # Of 1 + 5 % and a ratio less 1 the meaning is plain; 100 + 5 % means two things.
        if all(quantity.bare and abs(quantity.value) <= 1 for quantity in plain):
            return "ratio"
        if unit == "%":
            raise UnitMismatch("a percentage and a plain number do not add up: write both with %")
        return ""
    if plain and unit == "date":
        raise UnitMismatch("a day and a number do not compare")
    return unit


def _measure(quantities: Sequence[Quantity]) -> Unit:
    """The shared unit of quantities that are no days."""
    unit = _shared_unit(quantities)
    if unit == "date":
        raise UnitMismatch("days do not add up")
    return unit


def _binary(node: Binary, left: Quantity, right: Quantity) -> Quantity:
    if "date" in (left.unit, right.unit):
        return _with_days(node, left, right)
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
    whole = (a / _divisor(b)).to_integral_value(ROUND_FLOOR)
    if node.operator == "//":
        return Quantity(whole, "" if left.unit == right.unit else left.unit)
    return Quantity(a - b * whole, _shared_unit([left, right]))


def _with_days(node: Binary, left: Quantity, right: Quantity) -> Quantity:
    """Days between two days, and the day so many days after or before one."""
    if node.operator == "-" and left.unit == right.unit:
        return Quantity(left.value - right.value, "days")
    if (node.operator == "-" and right.unit != "date") or node.operator == "+":
        day, span = (left, right) if left.unit == "date" else (right, left)
        if span.unit in ("", "days") and span.value == span.value.to_integral_value():
            return Quantity(day.value - span.value if node.operator == "-" else day.value + span.value, "date")
    raise UnitMismatch("of days there is a difference, and the day so many whole days before or after")


def _divisor(value: Decimal) -> Decimal:
    if not value:
        raise DivisionByZero("a division by zero")
    return value


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    """A power whose size is known to be bounded before it is computed."""
    if abs(exponent) > MAX_EXPONENT:
        raise TooLarge(f"an exponent is at most {MAX_EXPONENT}")
    if not base:
        if exponent < 0:
            raise DivisionByZero("zero to a negative power")
        if not exponent:
            raise Undefined("zero to the power of zero")
        return Decimal(0)
    if base < 0 and exponent != exponent.to_integral_value():
        raise Undefined("a root of a negative number")
    if abs(base.adjusted()) * abs(exponent) > MAX_MAGNITUDE.adjusted() + MAX_EXPONENT:
        raise TooLarge("a power is too large")
    return base**exponent


def _call(node: Call, arguments: list[Quantity]) -> Quantity:
    values = [argument.value for argument in arguments]
    match node.function:
        case "abs":
            return Quantity(abs(values[0]), _measure(arguments))
        case "round":
            return _rounded(*arguments)
        case "min" | "max":
            return Quantity(min(values) if node.function == "min" else max(values), _shared_unit(arguments))
        case "sum":
            return Quantity(sum(values, Decimal(0)), _measure(arguments))
        case "mean":
            return Quantity(sum(values, Decimal(0)) / len(values), _measure(arguments))
        case "median":
            return Quantity(statistics.median(values), _measure(arguments))
        case "pct_change":
            _measure(arguments)
            old, new = values
            if old < 0:
                raise Undefined("a change in percent of a negative number")
            return Quantity((new - old) / _divisor(old), "%")
        case "days":
            return Quantity(values[0], "date")
        case "days_between":
            return Quantity(values[1] - values[0], "days")
        case _:
            first, last = (date.fromordinal(int(value)) for value in values)
            if last < first:
                raise Undefined("the second day is before the first")
            return Quantity(Decimal(whole_years(first, last)), "years")


def _rounded(quantity: Quantity, places: Quantity = Quantity(Decimal(0), bare=True)) -> Quantity:
    unit = _measure([quantity])
    if not places.bare or abs(places.value) > MAX_ROUNDING:
        raise Undefined(f"round takes whole places, at most {MAX_ROUNDING}")
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


def _result(quantity: Quantity) -> tuple[Decimal | date, str]:
    """The value in its unit, and both in words."""
    value = quantity.value
    match quantity.unit:
        case "date":
            day = date.fromordinal(int(value))
            return day, day.isoformat()
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
