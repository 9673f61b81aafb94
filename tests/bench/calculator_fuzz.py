"""Fuzzing of the calculator: whatever the text, it has a value or a typed error, soon and without taking memory.

    python -m tests.bench.calculator_fuzz [--minutes 10] [--seed 1]

Texts are mutated from a pool that grows by those that reached a result or an error not seen before. Everything that
reads a model's reply is tried: `calculate`, `read` of a whole reply, and the grounds of the text itself. Reported are
exceptions outside the tree of `CalculatorError`, the slowest inputs, and how memory grew. Ends with 1 when any
exception escaped or anything took longer than `SLOW_MS`.
"""

import argparse
import gc
import random
import resource
import sys
import time
import traceback
from collections import Counter
from heapq import heappush, heappushpop

from rich.console import Console

from services.gateway.calculator.decoding import read
from services.gateway.calculator.errors import CalculatorError
from services.gateway.calculator.evaluate import calculate, evaluate
from services.gateway.calculator.grounding import Grounds
from tests.unit.gateway.test_calculator_escape import ATTACKS

# A refusal is due in 5 ms. Processor time is measured, since a busy machine takes slices from a process meanwhile.
SLOW_MS = 5.0
MAX_POOL = 4_000
REPORT_S = 30.0
SEEDS = (
    "(259.2 - 133.7) / 133.7",
    "pct_change(1,452.4, 1,146.2)",
    "mean(3.9, 3.4, 7.0) - 12% * $5 million",
    'years_between("1979-05-25", "2024-02-28") > 44',
    'days("2024-02-28") + 30',
    "round(median([1, 2, 3]) ** (1 / 3), 4)",
    "((1 + 5%) ** 10 - 1) * 100",
    "growth = 3 / 2\nshare = 5% / 10%",
    "7 % 3 // 2 <= sum(1,234, 2bn)",
)
PIECES = (
    *"0123456789.,()[]+-*/%<>=!\"'$€£ \n\t_xe",
    *("**", "//", "<=", "==", "!=", "<<", ":=", "->", "...", "__class__", "lambda x: x", "f'{1}'", "import os", "1e9"),
    *("sum(", "mean(", "median(", "round(", "abs(", "min(", "max(", "pct_change(", "days(", "days_between("),
    *(
        "years_between(",
        '"2024-02-28"',
        '"0001-01-01"',
        '"9999-12-31"',
        '"2023-02-29"',
        " million",
        "bn",
        "trillion",
        "%",
    ),
    *(
        "9" * 20,
        "0." + "0" * 20 + "1",
        "1,234",
        "1,234,567.89",
        "100",
        "-1",
        "0",
        "**-1",
        "**0.5",
        "**99",
        "((((",
        "))))",
    ),
    *("１", "٣", "а", "−", "\u200b", "\x00", "\udc80", "😀", "nan", "inf", "1j", "0x1F", "1_000"),
)


class Fuzzer:
    """Mutates, tries and keeps account."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._pool = [*SEEDS, *(text[:2_000] for text, _ in ATTACKS.values())]
        self._seen: set[str] = set()
        self.outcomes: Counter[str] = Counter()
        self.escapes: list[tuple[str, str]] = []
        self.slowest: list[tuple[float, str]] = []
        self.over = 0
        self.tried = 0

    def step(self) -> None:
        text = self._mutated()
        began = time.thread_time()
        outcome = self._try(text)
        milliseconds = (time.thread_time() - began) * 1_000
        if milliseconds > SLOW_MS:
            # A collection of garbage may have fallen into it.
            milliseconds = min(milliseconds, *(self._again(text) for _ in range(5)))
            self.over += milliseconds > SLOW_MS
        self.tried += 1
        self.outcomes[outcome.partition(":")[0]] += 1
        entry = (milliseconds, text)
        (heappush if len(self.slowest) < 5 else heappushpop)(self.slowest, entry)
        if outcome not in self._seen and len(self._pool) < MAX_POOL:
            self._seen.add(outcome)
            self._pool.append(text)

    def _again(self, text: str) -> float:
        began = time.thread_time()
        self._try(text)
        return (time.thread_time() - began) * 1_000

    def _try(self, text: str) -> str:
        """What came of it, in so many words that inputs that reach something new are told apart."""
        try:
            proposals, _ = read(text)
            if proposals:
                grounds = Grounds.of([text])
                for proposal in proposals:
                    grounds.lacks(proposal.expression)
                    try:
                        evaluate(proposal.expression)
                    except CalculatorError:
                        continue
            found = calculate(text)
        except CalculatorError as error:
            return f"{type(error).__name__}:{str(error).rpartition(', at')[0] or error}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            self.escapes.append((text, traceback.format_exc(limit=3)))
            return f"ESCAPE {type(error).__name__}"
        # Shapes, not numbers: which functions, operators and units a value came through.
        shape = "".join(sorted({char for char in found.expression if not char.isdigit()}))
        return f"value:{shape}{found.unit}"

    def _mutated(self) -> str:
        draw = self._draw
        text = draw.choice(self._pool)
        for _ in range(draw.choice((1, 1, 1, 2, 3, 5, 9))):
            at, to = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
            match draw.randrange(8):
                case 0 | 1:
                    text = text[:at] + draw.choice(PIECES) + text[at:]
                case 2:
                    text = text[:at] + text[to:]
                case 3:
                    text = text[:at] + text[at:to] * draw.choice((2, 2, 3, 10, 40)) + text[to:]
                case 4:
                    other = draw.choice(self._pool)
                    text = text[:at] + other[draw.randint(0, len(other)) :]
                case 5:
                    text = f"({text}) {draw.choice(('+', '-', '*', '/', '**', '%', '//'))} {draw.choice(self._pool)}"
                case 6:
                    text = f"{draw.choice(('sum', 'mean', 'abs', 'round', 'max', 'pct_change'))}({text})"
                case _:
                    text = text[:at] + chr(draw.choice((draw.randrange(32, 127), draw.randrange(0x250)))) + text[to:]
            text = text[:5_000]
        return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(width=200)
    fuzzer = Fuzzer(arguments.seed)
    for _ in range(5_000):
        fuzzer.step()
    gc.collect()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = told = time.monotonic()
    while (elapsed := time.monotonic() - began) < arguments.minutes * 60:
        for _ in range(200):
            fuzzer.step()
        if time.monotonic() - told > REPORT_S:
            told = time.monotonic()
            left = arguments.minutes * 60 - elapsed
            console.print(
                f"{fuzzer.tried:,} texts, {len(fuzzer.escapes)} escapes, slowest {max(fuzzer.slowest)[0]:.2f} ms, "
                f"{left:.0f} s left"
            )
        if len(fuzzer.escapes) >= 20:
            break
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    console.print(f"{fuzzer.tried:,} texts in {elapsed / 60:.1f} minutes; peak memory grew by {grown / 1024:.1f} MiB")
    console.print(", ".join(f"{name} {count:,}" for name, count in fuzzer.outcomes.most_common()))
    console.print(f"over {SLOW_MS} ms in the best of six: {fuzzer.over}")
    for milliseconds, text in sorted(fuzzer.slowest, reverse=True):
        console.print(f"{milliseconds:8.3f} ms  {text[:120]!r}", markup=False)
    for text, trace in fuzzer.escapes:
        console.print(f"escaped: {text[:200]!r}\n{trace}", markup=False)
    sys.exit(1 if fuzzer.escapes or fuzzer.over else 0)


if __name__ == "__main__":
    main()
