"""The typed tree of an expression, and its printer.

(259.2 - 133.7) / 133.7
pct_change($1,036.9 million, $1,146.2 million)
mean(3.9, 3.4, 7.0) > 12% * 40
years_between("1979-05-25", "2024-02-28")
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, TypeAlias

Operator = Literal["+", "-", "*", "/", "**"]
Comparison = Literal["<", "<=", ">", ">="]
# Of a number as it is written; results have more units, see `evaluate.Unit`.
Mark = Literal["", "%", "$", "€", "£"]
Scale = Literal[0, 3, 6, 9, 12]

SUM, PRODUCT, SIGN, POWER, ATOM = range(5)
LEVEL: dict[Operator, int] = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written: `mantissa` with `scale` zeros behind it; in hundredths where its mark is `%`."""

    mantissa: Decimal
    mark: Mark = ""
    scale: Scale = 0

    @property
    def value(self) -> Decimal:
        return self.mantissa.scaleb(self.scale - 2 * (self.mark == "%"))


@dataclass(frozen=True, slots=True)
class Day:
    value: date


@dataclass(frozen=True, slots=True)
class Minus:
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Binary:
    operator: Operator
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison, which only a whole expression can be."""

    left: "Node"
    operator: Comparison
    right: "Node"


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple["Node | Day", ...]


Node: TypeAlias = Number | Minus | Binary | Call
Expression: TypeAlias = Node | Compare

SCALE_NAMES: dict[Scale, str] = {0: "", 3: " thousand", 6: " million", 9: " billion", 12: " trillion"}


def render(expression: Expression) -> str:
    """The expression in canonical form; parsing it gives the same tree."""
    if isinstance(expression, Compare):
        return f"{_render(expression.left, SUM)} {expression.operator} {_render(expression.right, SUM)}"
    return _render(expression, SUM)


def spelled(number: Number) -> str:
    """A number with its mark and its scale."""
    before, after = (number.mark, "") if number.mark != "%" else ("", "%")
    return f"{before}{number.mantissa:,f}{after}{SCALE_NAMES[number.scale]}"


def _render(node: Node | Day, level: int) -> str:
    """As text that stands where at least `level` binds."""
    match node:
        case Number():
            return spelled(node)
        case Day():
            return f'"{node.value.isoformat()}"'
        case Call():
            inner = ", ".join(_render(argument, SUM) for argument in node.arguments)
            # A single argument with thousands would be read as two.
            return (
                f"{node.function}(({inner}))"
                if len(node.arguments) == 1 and "," in inner
                else f"{node.function}({inner})"
            )
        case Minus():
            own, text = SIGN, f"-{_render(node.operand, SIGN)}"
        case Binary("**"):
            # The base binds tighter than a sign, and the exponent takes one: 2 ** -3 ** 2.
            own, text = POWER, f"{_render(node.left, ATOM)} ** {_render(node.right, SIGN)}"
        case Binary():
            own = LEVEL[node.operator]
            text = f"{_render(node.left, own)} {node.operator} {_render(node.right, own + 1)}"
    return f"({text})" if own < level else text
