"""The calculator on TAT-QA: gold derivations, and questions end to end.

    python -m tests.bench.calculator [--generator http://127.0.0.1:8000 --limit 200 --seed 1 --concurrency 1]

Derivations: the share of the gold arithmetic derivations (tables and texts of annual reports, worked out by people)
whose value the calculator finds within the rounding of the gold answer; the others are printed.

Questions, with a generator: the share whose first expression has the gold value, question -> expression -> value, and
beside it what the same model answers directly from the same documents. Data: CRAGMESH_EVAL_DATA. Writes
`out/calculator.json`, and each question as it is answered to `out/calculator_questions.jsonl`.
"""

import argparse
import asyncio
import json
import pathlib
import random
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from rich.console import Console

from services.cli.progress import counted
from services.gateway import prompts
from services.gateway.calculator.decoding import GRAMMAR
from services.gateway.calculator.errors import CalculatorError
from services.gateway.calculator.evaluate import Calculation, evaluate
from services.gateway.calculator.grounding import Grounds
from services.gateway.calculator.parse import parse
from services.gateway.evidence import Evidence, render
from services.gateway.steps.ask import asked_on
from services.gateway.steps.calculate import MAX_TOKENS, results
from services.kit.client import ServiceClient, http_client
from services.kit.errors import ServiceFailure
from services.kit.llm import LLM, Constraint, Message
from tests.bench import common

DATA = "tatqa_dev_test_full.jsonl.gz"
# Gold answers are rounded to two decimals.
ROUNDING = Decimal("0.0051")
SCALES = {"thousand": 3, "million": 6, "billion": 9}
ASKED_AT = datetime(2020, 1, 1, tzinfo=UTC)
MAX_TABLE_CHARS = 4_000
_FIGURE = re.compile(
    r"(?P<minus>[-−(]?)\s?[$€£]?\s?(?P<digits>\d[\d,]*(?:\.\d+)?)\s*(?P<scale>thousand|million|billion)?"
)


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    question: str
    answer: Decimal
    scale: str
    derivation: str
    documents: tuple[Evidence, ...]


# A question's outcome, a line of `calculator_questions.jsonl`.
Outcome = dict[str, Any]


def load(folder: pathlib.Path) -> list[Case]:
    """Arithmetic questions."""
    cases = []
    for row in common.read_rows(folder / DATA):
        if row["answer_type"] != "arithmetic":
            continue
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in row["table"])[:MAX_TABLE_CHARS]
        text = "\n".join(part["text"] for part in row["paragraphs"])[:MAX_TABLE_CHARS]
        evidence = (Evidence(table, 0, page_name="table", kind="table"), Evidence(text, 0, page_name="text"))
        answer = Decimal(str(row["answer"]))
        cases.append(Case(row["id"], row["question"], answer, row["scale"], row["derivation"], evidence))
    return cases


def equals(value: Decimal, gold: Decimal, scale: str, *, tolerance: Decimal = ROUNDING) -> bool:
    """Whether a value is the gold one in its scale; a percentage may be given as a share."""
    candidates = [value]
    if scale == "percent":
        candidates.append(value * 100)
    elif scale:
        candidates.append(value.scaleb(-SCALES[scale]))
    return any(abs(candidate - gold) <= tolerance for candidate in candidates)


def number_of(calculation: Calculation) -> Decimal | None:
    return calculation.value if isinstance(calculation.value, Decimal) else None


# Gold derivations


def is_right(case: Case) -> bool:
    """Whether the derivation has the value of the gold answer."""
    try:
        value = number_of(evaluate(parse(case.derivation)))
    except CalculatorError:
        return False
    return value is not None and equals(value, case.answer, case.scale)


def derivations(cases: Sequence[Case], console: Console) -> dict[str, int]:
    wrong = [case for case in cases if not is_right(case)]
    right = len(cases) - len(wrong)
    console.print(f"derivations: {right} of {len(cases)} right, {right / len(cases):.1%}")
    for case in wrong:
        console.print(f"  {case.derivation!r} -> {case.answer} {case.scale}", markup=False)
    return {"cases": len(cases), "right": right}


# Questions


def number_in(text: str) -> tuple[Decimal, int] | None:
    """The number of a direct answer by its own scale, and its decimals; None where there is no number."""
    match = _FIGURE.search(text)
    if match is None:
        return None
    digits = match["digits"].rstrip(",").replace(",", "")
    try:
        value = Decimal(digits)
    except InvalidOperation:
        return None
    value = value.scaleb(SCALES.get(match["scale"] or "", 0))
    return (-value if match["minus"] else value), len(digits.partition(".")[2])


def direct_right(text: str, case: Case) -> bool:
    """As lenient as the calculator's judge, and more: a number may be rounded to the decimals that it has."""
    number = number_in(text)
    if number is None:
        return False
    value, decimals = number
    tolerance = max(ROUNDING, Decimal("0.501").scaleb(-decimals)) if decimals else ROUNDING
    return equals(value, case.answer, case.scale, tolerance=tolerance)


async def one(case: Case, llm: LLM, seconds: float) -> Outcome:
    fields = {"documents": render(case.documents), "query": case.question, "query_time": asked_on(ASKED_AT)}
    began = time.monotonic()
    reply = await _reply(
        llm, prompts.load("calculate").fill(**fields), MAX_TOKENS, seconds, Constraint(grammar=GRAMMAR)
    )
    middle = time.monotonic()
    direct = await _reply(llm, prompts.load("basic").fill(**fields), 75, seconds, None)
    ended = time.monotonic()
    texts = [case.question, *(document.text for document in case.documents)]
    calculated, why = results(reply, Grounds.of(texts))
    values = [value for value in (number_of(result) for result in calculated) if value is not None]
    hits = [equals(value, case.answer, case.scale) for value in values]
    return {
        "id": case.id,
        "question": case.question,
        "gold": str(case.answer),
        "scale": case.scale,
        "reply": reply,
        "values": [result.text for result in calculated],
        "why": why,
        "first": any(hits[:1]),
        "any": any(hits),
        "unsigned": any(equals(abs(value), abs(case.answer), case.scale) for value in values[:1]),
        "direct": direct,
        "direct_right": direct_right(direct, case),
        "seconds": middle - began,
        "direct_seconds": ended - middle,
    }


async def _reply(llm: LLM, messages: list[Message], max_tokens: int, seconds: float, form: Constraint | None) -> str:
    try:
        return (await llm.chat(messages, max_tokens=max_tokens, allow_s=seconds, constraint=form)).text
    except ServiceFailure as failure:
        return f"# {failure.reason}: {failure.detail}"[:200]


async def questions(cases: Sequence[Case], arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    chosen = random.Random(arguments.seed).sample(list(cases), min(arguments.limit, len(cases)))
    gate = asyncio.Semaphore(arguments.concurrency)
    async with http_client() as http:
        llm = LLM(ServiceClient("generator", arguments.generator, http))
        path = common.OUT / "calculator_questions.jsonl"
        with counted("questions", len(chosen), line_every=10) as advance, path.open("w", encoding="utf-8") as file:

            async def ask(case: Case) -> Outcome:
                async with gate:
                    outcome = await one(case, llm, arguments.seconds)
                file.write(json.dumps(outcome, ensure_ascii=False) + "\n")
                file.flush()
                advance(1)
                return outcome

            outcomes = await asyncio.gather(*(ask(case) for case in chosen))
    total = len(outcomes)
    summary = {
        "questions": total,
        "right": sum(outcome["first"] for outcome in outcomes) / total,
        "right_up_to_sign": sum(outcome["unsigned"] for outcome in outcomes) / total,
        "right_in_any_line": sum(outcome["any"] for outcome in outcomes) / total,
        "no_value": sum(not outcome["values"] for outcome in outcomes) / total,
        "ungrounded": sum(any("ungrounded" in why for why in outcome["why"]) for outcome in outcomes) / total,
        "failed": sum(outcome["reply"].startswith("#") for outcome in outcomes) / total,
        "direct": sum(outcome["direct_right"] for outcome in outcomes) / total,
        "median_s": statistics.median(outcome["seconds"] for outcome in outcomes),
        "direct_median_s": statistics.median(outcome["direct_seconds"] for outcome in outcomes),
    }
    for name, value in summary.items():
        console.print(f"  {name}: {value:.3f}" if isinstance(value, float) else f"  {name}: {value}")
    return {**summary, "outcomes": outcomes}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--generator", default="", help="root of an OpenAI-compatible server; without it no questions")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0, help="for one reply")
    arguments = parser.parse_args()
    cases = load(common.evaluation_data("eval-calculator", "there are no questions", status=1))
    console = Console(width=160)
    common.OUT.mkdir(exist_ok=True)
    report: dict[str, Any] = {"derivations": derivations(cases, console)}
    if arguments.generator:
        report["questions"] = asyncio.run(questions(cases, arguments, console))
    common.write_json(common.OUT / "calculator.json", report)
    console.print(f"written: {common.OUT}/calculator.json")


if __name__ == "__main__":
    main()
