"""Errors of an expression, as one tree:

CalculatorError
├── ExpressionError      the text is not in the language, is too long, or could be read in two ways
└── EvaluationError      the text is in the language and has no value, or none that questions have
"""


class CalculatorError(Exception):
    """Base of all; the message fits on a line and repeats little of the text."""


class ExpressionError(CalculatorError):
    def __init__(self, message: str, *, position: int = 0) -> None:
        super().__init__(f"{message}, at character {position + 1}")


class EvaluationError(CalculatorError):
    pass
