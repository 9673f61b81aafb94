"""Questions of our own with answers that are right in other words, and answers that are wrong in likely ways.

A line of `pairs.txt` is `+` (right) or `-` (wrong), the kind of change, `|`, the prediction; a block begins with
`? question` and `= gold`. Kinds on the right: same, round, format, unit, order, words, alias, more, part. Kinds on the
wrong: number, name, negation, part, further, swap, unit, polarity, hedge, echo.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TEXT = Path(__file__).with_name("pairs.txt")

# Decimal texts and what their roundings look like; the wrong ones differ in a digit, in place or by a factor of ten.
FIGURES = ("17.284", "305.61", "8421.75", "0.0537", "642.19", "93.482", "12750.4", "2.9183", "481.06", "77.735")


@dataclass(frozen=True, slots=True)
class Pair:
    question: str
    gold: str
    prediction: str
    right: bool
    kind: str


def pairs() -> list[Pair]:
    """All pairs, from the text and from the figures."""
    return [*_written(), *_figures()]


def _written() -> Iterator[Pair]:
    question = gold = ""
    for line in TEXT.read_text("utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "?":
            question = rest
        elif mark == "=":
            gold = rest
        elif mark in "+-" and mark:
            kind, _, prediction = rest.partition(" | ")
            yield Pair(question, gold, prediction, mark == "+", kind.strip())


def _figures() -> Iterator[Pair]:
    question = "what was the average price of the metal that year?"
    for figure in FIGURES:
        gold = f"${figure}"
        whole, _, decimals = figure.partition(".")
        rounded = f"{float(figure):.{max(len(decimals) - 1, 0)}f}"
        yield Pair(question, gold, f"${rounded}", right=True, kind="round")
        yield Pair(question, gold, f"The average price was ${figure} that year.", right=True, kind="words")
        yield Pair(question, gold, f"{figure} US dollars", right=True, kind="format")
        first = str(int(figure[-1]) - 1 if figure[-1] != "0" else 1)
        yield Pair(question, gold, f"${figure[:-1]}{first}", right=False, kind="number")
        yield Pair(question, gold, f"${float(figure) * 10:g}", right=False, kind="number")
        yield Pair(question, gold, f"${float(figure) * 1.05:.2f}", right=False, kind="number")
        if len(decimals) > 1 and decimals[0] != decimals[1]:
            swapped = f"{whole}.{decimals[1]}{decimals[0]}{decimals[2:]}"
            yield Pair(question, gold, f"${swapped}", right=False, kind="number")
