"""What no calculator may do: every way out of the language is a typed error."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gateway.calculator.errors import (
    Ambiguous,
    CalculatorError,
    DivisionByZero,
    LimitExceeded,
    SyntaxFault,
    TooLarge,
    Undefined,
    UnknownName,
)
from services.gateway.calculator.evaluate import calculate

ATTACKS: dict[str, tuple[str, type[CalculatorError]]] = {
    "import": ('__import__("os").system("id")', SyntaxFault),
    "attribute": ("(1).__class__.__bases__[0].__subclasses__()", SyntaxFault),
    "attribute of a bracket": ("().__class__", SyntaxFault),
    "attribute of a number": ("1 .real", SyntaxFault),
    "dunder": ("__builtins__", UnknownName),
    "dunder call": ("__class__(1)", UnknownName),
    "subscript": ("[1, 2][0]", SyntaxFault),
    "getattr": ('getattr(1, "real")', UnknownName),
    "open": ('open("/etc/passwd")', UnknownName),
    "eval": ('eval("1")', UnknownName),
    "exec": ('exec("1")', UnknownName),
    "breakpoint": ("breakpoint()", UnknownName),
    "comprehension": ("[x for x in range(10)]", UnknownName),
    "comprehension bomb": ("sum([x for x in range(10**9) for y in range(10**9)])", UnknownName),
    "generator": ("sum(x for x in (1, 2))", UnknownName),
    "set": ("{1, 2}", SyntaxFault),
    "dict": ("{1: 2}", SyntaxFault),
    "lambda": ("lambda: 0", SyntaxFault),
    "lambda call": ("(lambda: 0)()", SyntaxFault),
    "walrus": ("(x := 1)", SyntaxFault),
    "assignment": ("x = 1", SyntaxFault),
    "conditional": ("1 if 1 else 2", SyntaxFault),
    "boolean": ("1 and 2", SyntaxFault),
    "not": ("not 1", UnknownName),
    "await": ("await 1", UnknownName),
    "yield": ("yield 1", UnknownName),
    "star": ("max(*[1, 2])", SyntaxFault),
    "keyword": ("round(1.5, ndigits=1)", SyntaxFault),
    "semicolon": ("1; 2", SyntaxFault),
    "comment": ("1 # 2", SyntaxFault),
    "newline": ("1\n2", SyntaxFault),
    "continuation": ("1 + \\\n2", SyntaxFault),
    "f-string": ('f"{1}"', UnknownName),
    "f-string with a call": ("f\"{__import__('os')}\"", UnknownName),
    "string": ('"a" * 10', SyntaxFault),
    "empty string": ('""', SyntaxFault),
    "triple quotes": ('"""a"""', SyntaxFault),
    "open string": ('"2024-01-01', SyntaxFault),
    "bytes": ('b"a" * 10', UnknownName),
    "format string": ('"%s" % 5', SyntaxFault),
    "string bomb": ('"a" * 10**10', SyntaxFault),
    "list bomb": ("[0, 0] * 10**10", SyntaxFault),
    "lambda without a colon": ("lambda x", UnknownName),
    "tower": ("9**9**9", TooLarge),
    "tower of tens": ("10**10**10", TooLarge),
    "long tower": ("2**2**2**2**2**2", TooLarge),
    "huge power": ("10**99999", TooLarge),
    "huge negative power": ("10**-99999", TooLarge),
    "power of a fraction": ("0.5**-1000", TooLarge),
    "power of a power": ("(10**30)**30", TooLarge),
    "digits": ("9" * 300, LimitExceeded),
    "decimals": ("0." + "9" * 300, LimitExceeded),
    "product": ("*".join(["99999999"] * 50), TooLarge),
    "factorial": ("*".join(map(str, range(1, 60))), TooLarge),
    "factorial by name": ("factorial(100000)", UnknownName),
    "left shift": ("1 << 99999999", SyntaxFault),
    "right shift": ("1 >> 1", SyntaxFault),
    "bit and": ("1 & 1", SyntaxFault),
    "bit or": ("1 | 1", SyntaxFault),
    "bit xor": ("2 ^ 3", SyntaxFault),
    "invert": ("~1", SyntaxFault),
    "matrix product": ("1 @ 1", SyntaxFault),
    "fullwidth digits": ("１２ + 1", SyntaxFault),
    "arabic digits": ("١٢ + 1", SyntaxFault),
    "superscript": ("2²", SyntaxFault),
    "vulgar fraction": ("½", SyntaxFault),
    "minus sign": ("5 − 3", SyntaxFault),
    "multiplication sign": ("5 × 3", SyntaxFault),
    "division slash": ("6 ∕ 3", SyntaxFault),
    "fullwidth bracket": ("（1）", SyntaxFault),
    "cyrillic name": ("mаx(1, 2)", SyntaxFault),
    "fullwidth name": ("ｍａｘ(1, 2)", SyntaxFault),
    "zero width": ("1\u200b2", SyntaxFault),
    "direction mark": ("1\u202e2", SyntaxFault),
    "no-break space": ("1\u00a0+ 2", SyntaxFault),
    "null": ("1\x002", SyntaxFault),
    "escape": ("\x1b[0m1", SyntaxFault),
    "surrogate": ("1\udc80", SyntaxFault),
    "hundred thousand characters": ("1+" * 50_000 + "1", LimitExceeded),
    "hundred thousand blanks": (" " * 100_000, LimitExceeded),
    "hundred thousand digits": ("7" * 100_000, LimitExceeded),
    "deep brackets": ("(" * 290 + "1" + ")" * 290, LimitExceeded),
    "deep mixed brackets": ("([" * 140 + "1" + "])" * 140, LimitExceeded),
    "deep lists": ("sum(" + "[" * 280 + "1", LimitExceeded),
    "deep calls": ("abs(" * 100 + "1" + ")" * 100, LimitExceeded),
    "deep signs": ("-" * 500 + "1", LimitExceeded),
    "deep powers": ("1**" * 190 + "1", LimitExceeded),
    "open brackets": ("(" * 590, LimitExceeded),
    "long sum": ("1+" * 290 + "1", LimitExceeded),
    "long comparison": ("1<" * 290 + "1", LimitExceeded),
    "long list": (f"sum({', '.join(['1'] * 150)})", LimitExceeded),
    "list over its limit": (f"sum({', '.join(['1'] * 50)})", LimitExceeded),
    "nan": ("nan", UnknownName),
    "nan in a minimum": ("min(nan, 1)", UnknownName),
    "infinity": ("inf", UnknownName),
    "minus infinity": ("-Infinity", UnknownName),
    "float of nan": ('float("nan")', UnknownName),
    "overflow": ("1e999", SyntaxFault),
    "exponent": ("1e5", SyntaxFault),
    "infinity by a product": ("999999999999 trillion * 999999999999 trillion", TooLarge),
    "zero over zero": ("0 / 0", DivisionByZero),
    "division by zero": ("1 / 0", DivisionByZero),
    "zero to a negative power": ("0**-1", DivisionByZero),
    "zero to a negative fraction": ("0**-0.5", DivisionByZero),
    "remainder by zero": ("5 % (1 - 1)", DivisionByZero),
    "zero to zero": ("0**0", Undefined),
    "complex": ("(-1)**0.5", Undefined),
    "complex literal": ("1j", SyntaxFault),
    "complex by name": ("complex(1, 2)", UnknownName),
    "hexadecimal": ("0x10", SyntaxFault),
    "octal": ("0o17", SyntaxFault),
    "binary": ("0b11", SyntaxFault),
    "underscores": ("1_000", SyntaxFault),
    "true": ("True", UnknownName),
    "none": ("None", UnknownName),
    "ellipsis": ("...", SyntaxFault),
    "decimal": ('Decimal("1")', UnknownName),
    "two numbers or one": ("sum(1,234,567)", Ambiguous),
    "template": ("${7*7}", SyntaxFault),
    "jinja": ("{{7*7}}", SyntaxFault),
    "backtick": ("`id`", SyntaxFault),
    "sql": ("1; DROP TABLE x --", SyntaxFault),
    "empty": ("", SyntaxFault),
    "only an operator": ("*", SyntaxFault),
    "only a comma": (",", SyntaxFault),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_every_way_out_is_a_typed_error(name: str) -> None:
    text, error = ATTACKS[name]
    with pytest.raises(error) as raised:
        calculate(text)
    assert len(str(raised.value)) < 200
    assert "\n" not in str(raised.value)


alphabet = st.sampled_from(
    [
        *"0123456789.,()[]+-*/%<>=!\"'$€ \n_ae",
        *(
            "sum(",
            "mean(",
            "days(",
            '"2024-02-28"',
            "**",
            "//",
            "1,234",
            " million",
            "999999999",
            "lambda ",
            "__",
            "１",
        ),
    ]
)


@given(st.lists(alphabet, max_size=60).map("".join) | st.text(max_size=80))
@settings(max_examples=600, deadline=None)
def test_any_text_has_a_value_or_a_typed_error(text: str) -> None:
    try:
        found = calculate(text)
    except CalculatorError:
        return
    assert found.text
    assert found.inputs
