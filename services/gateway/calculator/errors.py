"""Errors of an expression, as one tree:

CalculatorError
├── ExpressionError      the text is not in the language
│   ├── LimitExceeded    too many characters, digits, nodes, arguments or levels
│   ├── SyntaxFault      not an expression
│   ├── Ambiguous        could be read in two ways, as `sum(1,234)`
│   └── UnknownName      a function that the language does not have
└── EvaluationError      the text is in the language and has no value
    ├── TooLarge         a number beyond the magnitudes that questions have
    ├── DivisionByZero   also as zero to a negative power
    ├── Undefined        a root of a negative number, zero to the power of zero, a day that no calendar has
    └── UnitMismatch     dollars plus euros, a percentage plus a plain number
"""


class CalculatorError(Exception):
    """Base of all; the message fits on a line and repeats little of the text."""


class ExpressionError(CalculatorError):
    def __init__(self, message: str, *, position: int = 0) -> None:
        super().__init__(f"{message}, at character {position + 1}")


class LimitExceeded(ExpressionError):
    pass


class SyntaxFault(ExpressionError):
    pass


class Ambiguous(ExpressionError):
    pass


class UnknownName(ExpressionError):
    pass


class EvaluationError(CalculatorError):
    pass


class TooLarge(EvaluationError):
    pass


class DivisionByZero(EvaluationError):
    pass


class Undefined(EvaluationError):
    pass


class UnitMismatch(EvaluationError):
    pass
