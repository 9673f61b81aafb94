"""Tree to value, with its unit, its inputs and a sentence that says all of it.

Units come from the inputs: what is added must be of one, and a quotient of like things is a ratio. A unit that the
inputs do not settle is left open rather than guessed.
"""

import decimal
import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, DivisionUndefined, InvalidOperation, Overflow
from typing import Literal

from services.gateway.calculator.errors import DivisionByZero, TooLarge, Undefined, UnitMismatch
from services.gateway.calculator.parse import parse
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
    leaves,
    render,
    spelled,
)
from services.kit.text.dates import whole_years
from services.kit.text.writing import number_text

PRECISION = 40
# Beyond a trillion squared nothing is a quantity that people ask about.
MAX_MAGNITUDE = Decimal("1e30")
MAX_EXPONENT = 100
MAX_ROUNDING = 10
HUNDRED = Decimal(100)

# "date" is the number of a day, counted from the first day of year 1; "points" are hundredths that no sign marks.
Unit = Literal["", "%", "$", "€", "£", "ratio", "points", "days", "years", "date"]
MEASURES = ("$", "€", "£", "days", "years")
SPANS = ("days", "years")
# Days of a week, a month and a year, months and weeks of a year: a span times or over one of them is counted in others.
CALENDAR = frozenset(map(Decimal, (7, 12, 30, 52, 365)))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value and its unit; a percentage is a share of one here, and `bare` is an integer that was written as it is."""

    value: Decimal
    unit: Unit = ""
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Calculation:
    """An expression and what came of it.

    Args:
        expression: in canonical form.
        value: the number in its unit (12 for 12 %), a truth value of a comparison, or a day.
        unit: %, $, €, £, days, years, or empty where the inputs do not settle it.
        inputs: the numbers and days that it was made of, as they were written.
        text: all of it in words, to be read as a reference: `(259.2 - 133.7) / 133.7 = 0.9387 (93.87 %)`.
    """

    expression: str
    value: Decimal | bool | date
    unit: str
    inputs: tuple[str, ...]
    text: str


def calculate(text: str) -> Calculation:
    """The value of an expression.

    Raises:
        ExpressionError: the text is not in the language or exceeds its limits.
        EvaluationError: it has no value, or none that is a plausible quantity.
    """
    return evaluate(parse(text))


def evaluate(expression: Expression) -> Calculation:
    """As `calculate`, for what is parsed already.

    Raises:
        EvaluationError: it has no value, or none that is a plausible quantity.
    """
    shown = render(expression)
    inputs = tuple(spelled(leaf) if isinstance(leaf, Number) else leaf.value.isoformat() for leaf in leaves(expression))
    try:
        if isinstance(expression, Compare):
            return _compared(expression, shown, inputs)
        found = _Evaluator().quantity(expression)
    except (decimal.DivisionByZero, DivisionUndefined):
        raise DivisionByZero("a division by zero") from None
    except Overflow:
        raise TooLarge("a number is too large") from None
    except InvalidOperation:
        raise Undefined("an operation has no value") from None
    value, unit, words = _result(found)
    return Calculation(shown, value, unit, inputs, f"{shown} = {words}")


def _compared(expression: Compare, shown: str, inputs: tuple[str, ...]) -> Calculation:
    evaluator = _Evaluator()
    operands = [evaluator.quantity(operand) for operand in expression.operands]
    for left, right in itertools.pairwise(operands):
        evaluator.shared([left, right])
    held = all(
        COMPARED[sign](left.value, right.value)
        for sign, (left, right) in zip(expression.operators, itertools.pairwise(operands), strict=True)
    )
    words = [
        _result(operand)[2] for node, operand in zip(expression.operands, operands, strict=True) if _is_computed(node)
    ]
    values = f", with {' and '.join(words)}" if words else ""
    return Calculation(shown, held, "", inputs, f"{shown} is {'true' if held else 'false'}{values}")


def _is_computed(node: Node) -> bool:
    return not isinstance(node, Number | Day)


COMPARED: dict[Comparison, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


class _Evaluator:
    """Visits every node once; nothing in it takes longer for a larger number."""

    def __init__(self) -> None:
        traps = [decimal.DivisionByZero, InvalidOperation, Overflow]
        self._context = Context(prec=PRECISION, Emin=-999, Emax=999, rounding=ROUND_HALF_UP, traps=traps)

    def quantity(self, node: Node) -> Quantity:
        match node:
            case Number():
                bare = not node.mark and not node.scale and node.mantissa == node.mantissa.to_integral_value()
                return self._checked(Quantity(node.value, node.mark, bare))
            case Day():
                return Quantity(Decimal(node.value.toordinal()), "date")
            case Unary():
                operand = self.quantity(node.operand)
                if operand.unit == "date":
                    raise UnitMismatch("a day has no sign")
                value = operand.value.copy_negate() if node.sign == "-" else operand.value
                return Quantity(value, operand.unit, operand.bare)
            case Call():
                return self._checked(self._call(node, [self.quantity(argument) for argument in node.arguments]))
            case Binary():
                return self._checked(self._binary(node, self.quantity(node.left), self.quantity(node.right)))

    def shared(self, quantities: Sequence[Quantity]) -> Unit:
        """The unit of things that are added or compared.

        Raises:
            UnitMismatch: they have several.
        """
        units = {quantity.unit for quantity in quantities} - {""}
        plain = [quantity for quantity in quantities if not quantity.unit]
        if len(units) > 1 and units == {"%", "ratio"}:
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

    def _checked(self, quantity: Quantity) -> Quantity:
        if abs(quantity.value) > MAX_MAGNITUDE:
            raise TooLarge("a number is too large")
        if quantity.unit == "date" and not 1 <= quantity.value <= date.max.toordinal():
            raise Undefined("a day that no calendar has")
        return quantity

    def _binary(self, node: Binary, left: Quantity, right: Quantity) -> Quantity:
        context, a, b = self._context, left.value, right.value
        if "date" in (left.unit, right.unit):
            return self._with_days(node, left, right)
        match node.operator:
            case "+" | "-":
                value = context.add(a, b) if node.operator == "+" else context.subtract(a, b)
                return Quantity(value, self.shared([left, right]))
            case "*":
                return Quantity(context.multiply(a, b), _of_product(left, right))
            case "/":
                return Quantity(context.divide(a, self._divisor(b)), _of_quotient(left, right))
            case "**":
                return Quantity(self._power(a, b), "ratio" if left.unit in ("ratio", "%") else "")
        whole = context.divide(a, self._divisor(b)).to_integral_value(ROUND_FLOOR, context)
        if node.operator == "//":
            return Quantity(whole, "" if left.unit == right.unit else left.unit)
        return Quantity(context.subtract(a, context.multiply(b, whole)), self.shared([left, right]))

    def _with_days(self, node: Binary, left: Quantity, right: Quantity) -> Quantity:
        """Days between two days, and the day so many days after or before one."""
        if node.operator == "-" and left.unit == right.unit:
            return Quantity(left.value - right.value, "days")
        if (node.operator == "-" and right.unit != "date") or node.operator == "+":
            day, more = (left, right) if left.unit == "date" else (right, left)
            if more.unit in ("", "days") and more.value == more.value.to_integral_value():
                value = self._context.add(day.value, -more.value if node.operator == "-" else more.value)
                return Quantity(value, "date")
        raise UnitMismatch("of days there is a difference, and the day so many whole days before or after")

    def _divisor(self, value: Decimal) -> Decimal:
        if not value:
            raise DivisionByZero("a division by zero")
        return value

    def _power(self, base: Decimal, exponent: Decimal) -> Decimal:
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
        return self._context.power(base, exponent)

    def _call(self, node: Call, arguments: list[Quantity]) -> Quantity:
        context = self._context
        values = [argument.value for argument in arguments]
        match node.function:
            case "abs":
                return Quantity(abs(values[0]), self._measure(arguments))
            case "round":
                return self._rounded(arguments)
            case "min" | "max":
                return Quantity(min(values) if node.function == "min" else max(values), self.shared(arguments))
            case "sum":
                return Quantity(self._sum(values), self._measure(arguments))
            case "mean":
                return Quantity(context.divide(self._sum(values), Decimal(len(values))), self._measure(arguments))
            case "median":
                middle = sorted(values)[(len(values) - 1) // 2 : len(values) // 2 + 1]
                return Quantity(context.divide(self._sum(middle), Decimal(len(middle))), self._measure(arguments))
            case "pct_change":
                self._measure(arguments)
                old, new = values
                return Quantity(context.divide(context.subtract(new, old), self._divisor(old)), "%")
            case "days":
                return Quantity(values[0], "date")
            case "days_between":
                return Quantity(values[1] - values[0], "days")
            case _:
                return Quantity(Decimal(_years(*values)), "years")

    def _measure(self, arguments: Sequence[Quantity]) -> Unit:
        """The shared unit of things that are not days."""
        unit = self.shared(arguments)
        if unit == "date":
            raise UnitMismatch("days do not add up")
        return unit

    def _sum(self, values: Sequence[Decimal]) -> Decimal:
        return functools.reduce(self._context.add, values, Decimal(0))

    def _rounded(self, arguments: Sequence[Quantity]) -> Quantity:
        unit = self._measure(arguments[:1])
        places = arguments[1] if len(arguments) > 1 else Quantity(Decimal(0), bare=True)
        if not places.bare or abs(places.value) > MAX_ROUNDING:
            raise Undefined(f"round takes whole places, at most {MAX_ROUNDING}")
        # Half goes up, as people round; a percentage is rounded as it is written.
        digits = int(places.value) + 2 * (unit == "%")
        value = arguments[0].value
        if digits < MAX_ROUNDING + PRECISION // 2 and value.adjusted() + digits < PRECISION:
            value = value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, self._context)
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


def _years(birth: Decimal, day: Decimal) -> int:
    """Whole years from one day to another, as ages are counted."""
    first, last = date.fromordinal(int(birth)), date.fromordinal(int(day))
    if last < first:
        raise Undefined("the second day is before the first")
    return whole_years(first, last)


def _result(found: Quantity) -> tuple[Decimal | date, str, str]:
    """Value, unit, and both in words."""
    match found.unit:
        case "date":
            day = date.min + timedelta(days=int(found.value) - 1)
            return day, "", day.isoformat()
        case "%":
            value = found.value.scaleb(2)
            return value, "%", f"{number_text(value)} %"
        case "points":
            return found.value, "%", f"{number_text(found.value)} (per cent)"
        case "ratio":
            percent = f" ({number_text(found.value.scaleb(2))} %)" if abs(found.value) < 10 else ""
            return found.value, "", f"{number_text(found.value)}{percent}"
        case "days" | "years":
            return found.value, found.unit, f"{number_text(found.value)} {found.unit}"
        case "":
            return found.value, "", number_text(found.value)
        case currency:
            sign = "-" if found.value < 0 else ""
            return found.value, currency, f"{sign}{currency}{number_text(abs(found.value))}"
