"""Every way out of the language, and every expression without a value, is a typed error."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gateway.calculator.errors import CalculatorError, EvaluationError, ExpressionError
from services.gateway.calculator.evaluate import evaluate
from services.gateway.calculator.parse import parse

REFUSALS: dict[type[CalculatorError], tuple[str, ...]] = {
    ExpressionError: (
        '__import__("os").system("id")', "(1).__class__.__bases__[0].__subclasses__()", "().__class__", "1 .real",
        "[1, 2][0]", "{1, 2}", "{1: 2}", "lambda: 0", "(lambda: 0)()", "(x := 1)", "x = 1", "1 if 1 else 2", "1 and 2",
        "7 // 2", "7 % 3",
        "max(*[1, 2])", "round(1.5, ndigits=1)", "1; 2", "1 # 2", "1\n2", "1 + \\\n2", '"a" * 10', '""', '"""a"""',
        '"2024-01-01', '"%s" % 5', '"a" * 10**10', "[0, 0] * 10**10", "1 << 99999999", "1 >> 1", "1 & 1", "1 | 1",
        "2 ^ 3", "~1", "1 @ 1", "１２ + 1", "١٢ + 1", "2²", "½", "5 − 3", "5 × 3", "6 ∕ 3", "（1）", "mаx(1, 2)",
        "ｍａｘ(1, 2)", "1\u200b2", "1\u202e2", "1\u00a0+ 2", "1\x002", "\x1b[0m1", "1\udc80", "1e999", "1e5", "1j",
        "0x10", "0o17", "0b11", "1_000", "...", "${7*7}", "{{7*7}}", "`id`", "1; DROP TABLE x --", "", "*", ",",
        "2 apples", "abs(1, 2)", "mean()", "mean([])", "(1, 2)", "(1 < 2)", "1 < 2 < 3", "1 2", "1 +", "(1]", "$5%",
        'days_between("2024-02-01", "2024-02-30")', 'days_between("yesterday", "2024-02-01")', "days_between(1, 2)",
        'sum("2024-02-28", 1)', 'days_between("2024-02-28", 1)', '"2024-02-28" + 1',
        # Of two readings.
        "sum(1,234)", "sum(1,234,567)", "max(1.5,234,567)", "round(1,234)", "min([5,1,234])",
        "sum(1,2,345)",
        # No name that the language has.
        "__builtins__", "__class__(1)", 'getattr(1, "real")', 'open("/etc/passwd")', 'eval("1")', 'exec("1")',
        "breakpoint()", "[x for x in range(10)]", "sum([x for x in range(10**9) for y in range(10**9)])",
        "sum(x for x in (1, 2))", "not 1", "await 1", "yield 1", 'f"{1}"', "f\"{__import__('os')}\"", 'b"a" * 10',
        "lambda x", "factorial(100000)", "nan", "min(nan, 1)", "inf", "-Infinity", 'float("nan")', "complex(1, 2)",
        "True", "None", 'Decimal("1")', "sqrt(4)",
        # Too long.
        "9" * 300, "0." + "9" * 300, "1+" * 50_000 + "1", " " * 100_000, "7" * 100_000, "(" * 290 + "1" + ")" * 290,
        "([" * 140 + "1" + "])" * 140, "sum(" + "[" * 280 + "1", "abs(" * 100 + "1" + ")" * 100, "-" * 500 + "1",
        "1**" * 190 + "1", "(" * 590, "1+" * 290 + "1", "1<" * 290 + "1", f"sum({', '.join(['1'] * 150)})",
        f"sum({', '.join(['1'] * 50)})",
    ),
    EvaluationError: (
        # A number or a power beyond what questions have.
        "9**9**9", "10**10**10", "2**2**2**2**2**2", "10**99999", "10**-99999", "0.5**-1000", "(10**30)**30",
        "10 ** 30 * 10", "9" * 24 + " * " + "9" * 24,
        "*".join(["99999999"] * 50), "*".join(map(str, range(1, 60))), "999999999999 trillion * 999999999999 trillion",
        # A division by zero.
        "0 / 0", "1 / 0", "1 / (2 - 2)", "0 ** -1", "0**-0.5", "pct_change(0, 5)",
        # No value.
        "pct_change(-10, 10)",
        "0 ** 0", "(-8) ** 0.5", "round(5, 100)", "round(5, 0.5)",
        'years_between("2024-01-01", "2000-01-01")',
        # Units that do not go together.
        "$5 + €3", "100 + 5%", "50% > 0.4", "$3 < €4", "7 % -3",
        'mean(days_between("2024-01-01", "2024-01-02"), $3)',
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"),
    [
        # A name of its own, since some are 100,000 characters.
        pytest.param(text, error, id=f"{error.__name__}-{text[:20]!a}")
        for error, texts in REFUSALS.items()
        for text in texts
    ],
)
def test_every_way_out_is_a_typed_error(text: str, error: type[CalculatorError]) -> None:
    with pytest.raises(error) as raised:
        evaluate(parse(text))
    assert len(str(raised.value)) < 200
    assert "\n" not in str(raised.value)


WORDS = 'sum( mean( days( "2024-02-28" ** // 1,234 million 999999999 lambda __ １'
alphabet = st.sampled_from([*"0123456789.,()[]+-*/%<>=!\"'$€ \n_ae", *WORDS.split()])


@given(st.lists(alphabet, max_size=60).map("".join) | st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_any_text_has_a_value_or_a_typed_error(text: str) -> None:
    try:
        assert evaluate(parse(text)).text
    except CalculatorError:
        return
