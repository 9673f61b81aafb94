"""Whether the inputs of an expression stand in the texts that it was made from.

A model that lacks a number makes one up; the arithmetic upon it is right and the result is not. Only constants of the
calculation itself may come from nowhere: the 2 of an average, the 100 of a percentage, the 12 of a year's months.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from services.gateway.calculator.tree import Binary, Call, Compare, Day, Expression, Minus, Number, spelled
from services.kit.text.dates import dates
from services.kit.text.numbers import numbers

# A term is added or compared, a factor multiplies, a divisor may count what is averaged, a free number counts places.
Role = Literal["term", "factor", "divisor", "free"]
MAX_COUNT = 31
CONVERSIONS = frozenset(map(Decimal, (1, 2, 7, 12, 24, 52, 60, 100, 365, 1_000, 10**6, 10**9)))
ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Grounds:
    """Numbers and days that stand in texts; numbers with and without the scale that is written behind them."""

    numbers: frozenset[Decimal]
    days: frozenset[date]

    @classmethod
    def of(cls, texts: Iterable[str], *days: date) -> "Grounds":
        """Numbers and days of the texts, and further days, as that of the question."""
        values = {Decimal(day.year) for day in days}
        grounded = set(days)
        for text in map(str.lower, texts):
            for number in numbers(text, inside_words=True):
                values |= {abs(number.mantissa), abs(number.value)}
            grounded.update(day for written in dates(text) for day in written.days())
        return cls(frozenset(values), frozenset(grounded))

    def lacks(self, expression: Expression) -> tuple[str, ...]:
        """Inputs, as they were written, that stand in none of the texts."""
        return tuple(dict.fromkeys(self._lacking(expression, "term")))

    def _lacking(self, node: Expression | Day, role: Role) -> Iterator[str]:
        match node:
            case Number():
                if not self._has(node) and not _belongs(node, role):
                    yield spelled(node)
            case Day():
                if node.value not in self.days:
                    yield node.value.isoformat()
            case Minus():
                yield from self._lacking(node.operand, role)
            case Call():
                for index, argument in enumerate(node.arguments):
                    yield from self._lacking(argument, "free" if node.function == "round" and index else "term")
            case Binary("**"):
                yield from self._lacking(node.left, "term")
                yield from self._lacking(node.right, "free")
            case Binary("+" | "-") | Compare():
                yield from self._lacking(node.left, "term")
                yield from self._lacking(node.right, "term")
            case Binary():
                # Factors and divisors inside a free part are free: the 1 and the 4 of 2 ** (1 / 4).
                left: Role = "factor" if node.operator == "*" else "term"
                right: Role = "factor" if node.operator == "*" else "divisor"
                yield from self._lacking(node.left, "free" if role == "free" else left)
                yield from self._lacking(node.right, "free" if role == "free" else right)

    def _has(self, number: Number) -> bool:
        return number.mantissa in self.numbers or number.mantissa.scaleb(number.scale) in self.numbers


def _belongs(number: Number, role: Role) -> bool:
    """Whether the number is a constant of the calculation itself."""
    value = number.mantissa
    if number.mark or number.scale:
        return False
    match role:
        case "term":
            return value == ONE
        case "factor":
            return value in CONVERSIONS
        case _:
            return value in CONVERSIONS or (value == value.to_integral_value() and value <= MAX_COUNT)
