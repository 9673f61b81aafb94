"""Text to tree: a scanner of one regular expression, and precedence climbing over its tokens.

Inputs are as pages write them: `1,452.4`, `$ 5`, `12%`, `3.5 million`, `20bn`. `sum(1,234)`, which has two readings, is
refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, TypeVar, cast

from services.gateway.calculator.errors import ExpressionError
from services.gateway.calculator.tree import (
    LEVEL,
    PRODUCT,
    SUM,
    Binary,
    Call,
    Compare,
    Comparison,
    Day,
    Expression,
    Mark,
    Minus,
    Node,
    Number,
    Operator,
    Scale,
)

MAX_CHARS = 600
MAX_NODES = 120
MAX_DEPTH = 24
MAX_DIGITS = 24
MAX_ARGUMENTS = 40

# Least and most arguments.
FUNCTIONS = {
    "abs": (1, 1), "round": (1, 2), **dict.fromkeys(("min", "max", "sum", "mean", "median"), (1, MAX_ARGUMENTS)),
    "pct_change": (2, 2), "days_between": (2, 2), "years_between": (2, 2),
}  # fmt: skip
OF_DAYS = frozenset({"days_between", "years_between"})
SCALES: dict[str, Scale] = {
    **dict.fromkeys(("k", "thousand"), 3),
    **dict.fromkeys(("m", "mn", "million"), 6),
    **dict.fromkeys(("b", "bn", "billion"), 9),
    **dict.fromkeys(("tn", "trillion"), 12),
}

T = TypeVar("T")
TokenKind = Literal["number", "day", "name", "operator", "open", "close", "comma", "end"]
# Every alternative begins with characters of its own, and no repetition stands inside another that could share them.
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[$€£]?\ {0,3}(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?!,?[0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+))
    | (?P<day>"[^"]{0,40}"|'[^']{0,40}')
    | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<operator>\*\*|<=|>=|[-+*/%<>])
    | (?P<open>[$€£]?[(\[])
    | (?P<close>[)\]])
    | (?P<comma>,)
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.ASCII,
)
_UNGROUPED = re.compile(r"(?<![0-9.,])[0-9]{4,}(?:,[0-9]+)+", re.ASCII)
_FOREIGN = re.compile(r"[^\t\n -~€£]")
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
COMPARISONS = frozenset({"<", "<=", ">", ">="})
CLOSING = {"(": ")", "[": "]"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    start: int
    end: int


def parse(text: str) -> Expression:
    """The tree of an expression.

    Raises:
        ExpressionError: the text is not in the language or exceeds its limits.
    """
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"an expression has at most {MAX_CHARS} characters", position=MAX_CHARS)
    if foreign := _FOREIGN.search(text):
        raise ExpressionError("a character that no expression has", position=foreign.start())
    return _Parser(_scan(text)).whole()


def _scan(text: str) -> list[Token]:
    # A number of four digits has no separators, nor have those beside it: sum(1500,250).
    text = _UNGROUPED.sub(lambda match: match[0].replace(",", ", "), text)
    tokens: list[Token] = []
    position = 0
    while not tokens or tokens[-1].kind != "end":
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError("no number, function or operator begins so", position=position)
        kind, position = cast(TokenKind, match.lastgroup), match.end()
        tokens.append(Token(kind, match[kind], *match.span(kind)))
    return tokens


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._nodes = 0
        self._depth = 0
        # Numbers with separators of thousands that stand in the innermost argument list, outside its brackets.
        self._grouped = 0

    def whole(self) -> Expression:
        left = self._binary(SUM)
        expression: Expression = left
        if self._next.text in COMPARISONS:
            sign = cast(Comparison, self._take().text)
            expression = self._node(Compare(left, sign, self._binary(SUM)))
        if self._next.kind != "end":
            raise ExpressionError("an operator or the end was expected", position=self._next.start)
        return expression

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _node(self, node: T) -> T:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ExpressionError(f"an expression has at most {MAX_NODES} parts", position=self._next.start)
        return node

    def _binary(self, level: int) -> Node:
        """Sums and products, from left to right."""
        if level > PRODUCT:
            return self._signed()
        left = self._binary(level + 1)
        while LEVEL.get(cast(Operator, self._next.text)) == level:
            operator = cast(Operator, self._take().text)
            left = self._node(Binary(operator, left, self._binary(level + 1)))
        return left

    def _signed(self) -> Node:
        if self._next.text not in ("-", "+"):
            return self._power()
        sign = self._take().text
        operand = self._deeper(self._signed)
        return self._node(Minus(operand)) if sign == "-" else operand

    def _power(self) -> Node:
        base = self._atom()
        if self._next.text != "**":
            return base
        self._take()
        return self._node(Binary("**", base, self._deeper(self._signed)))

    def _deeper(self, read: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(f"an expression has at most {MAX_DEPTH} levels", position=self._next.start)
        part = read()
        self._depth -= 1
        return part

    def _atom(self) -> Node:
        token = self._take()
        match token.kind:
            case "number":
                return self._number(token)
            case "name":
                return self._call(token)
            case "open":
                # Brackets of its own hold no list of arguments; a currency before them adds nothing to those of the
                # numbers in them.
                outer, self._grouped = self._grouped, 0
                inner = self._deeper(lambda: self._binary(SUM))
                self._grouped = outer
                self._close(token)
                return inner
        raise ExpressionError("a number or a function was expected", position=token.start)

    def _close(self, opened: Token) -> None:
        closing = CLOSING[opened.text[-1]]
        if self._next.text != closing:
            raise ExpressionError(f"{closing} was expected", position=self._next.start)
        self._take()

    def _number(self, token: Token) -> Number:
        digits = token.text.lstrip("$€£ ").replace(",", "")
        if len(digits) > MAX_DIGITS:
            raise ExpressionError(f"a number has at most {MAX_DIGITS} digits", position=token.start)
        self._grouped += "," in token.text
        mark = cast(Mark, token.text[0] if token.text[0] in "$€£" else "")
        scale: Scale = 0
        if self._next.text.lower() in SCALES and self._next.kind == "name":
            scale = SCALES[self._take().text.lower()]
        elif not mark and self._next.text == "%":
            self._take()
            mark = "%"
        return self._node(Number(Decimal(digits), mark, scale))

    def _call(self, name: Token) -> Call:
        function = name.text
        if function not in FUNCTIONS:
            raise ExpressionError(f"the functions are {', '.join(FUNCTIONS)}", position=name.start)
        opened = self._take()
        if opened.text != "(":
            raise ExpressionError(f"( was expected behind {function}", position=opened.start)
        read: Callable[[], Node | Day] = self._day if function in OF_DAYS else lambda: self._binary(SUM)
        arguments = self._deeper(lambda: self._arguments(opened, read, single=FUNCTIONS[function][1] == 1))
        least, most = FUNCTIONS[function]
        if not least <= len(arguments) <= most:
            raise ExpressionError(f"{function} takes {least} to {most} arguments", position=name.start)
        return self._node(Call(function, arguments))

    def _day(self) -> Day:
        token = self._take()
        if token.kind != "day" or not _ISO_DAY.fullmatch(token.text[1:-1]):
            raise ExpressionError('a day such as "2024-02-28" was expected', position=token.start)
        try:
            return self._node(Day(date.fromisoformat(token.text[1:-1])))
        except ValueError:
            raise ExpressionError("no calendar has this day", position=token.start) from None

    def _arguments(self, opened: Token, read: Callable[[], Node | Day], *, single: bool) -> tuple[Node | Day, ...]:
        """Arguments up to the closing bracket; one list stands for its items."""
        outer, self._grouped = self._grouped, 0
        arguments: list[Node | Day] = []
        spaced = True
        if self._next.text == "[":
            arguments += self._deeper(lambda: self._arguments(self._take(), read, single=False))
        else:
            arguments.append(read())
        while self._next.kind == "comma":
            comma = self._take()
            spaced &= self._next.start > comma.end
            arguments.append(read())
        if self._grouped and not single and not (spaced and len(arguments) > 1):
            raise ExpressionError("one number with thousands, or several? Put a space between", position=opened.end)
        self._grouped = outer
        self._close(opened)
        return tuple(arguments)
