"""Precision and recall of "invalid question" on FreshQA, whose makers marked the questions with a false premise.

    python -m tests.bench.premise [--strategies electric-sheep,adaptive] [--sample 100] [--concurrency 2]

A running gateway is asked each question with the Wikipedia pages that its source names (some name none); half of a
sample has a false premise, so chance has a precision of a half there. Beside the strategies the classifier's own
probability is shown over a range of lines. Data are found through CRAGMESH_EVAL_DATA, the gateway through
CRAGMESH_GATEWAY_URL. Writes `out/premise.json`.
"""

import asyncio
import hashlib
import json
import pathlib
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape

from rich.console import Console
from rich.table import Table

from lab.evaluator.mesh import MeshClient, NoAnswer
from proto.answer import AnswerResponse
from services.cli.progress import Advance, counted
from services.kit.settings import MeshUrls
from tests.bench import common
from tests.bench.answers import pages as wikipedia

QUESTIONS = "freshqa.jsonl"
# FreshQA's answers are those of late 2023.
ASKED_AT = "2023-12-01T12:00:00Z"
LINES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MAX_PAGE_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    question: str
    false_premise: bool
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    strategy: str
    id: str
    false_premise: bool
    kind: str
    classifier: float


def load(folder: pathlib.Path) -> tuple[list[Case], dict[str, str]]:
    """Questions, and pages by the name that the questions know them by."""
    texts = {title.replace(" ", "_"): text for title, text in wikipedia(folder).items()}
    cases = []
    for row in common.read_rows(folder / QUESTIONS):
        pages = tuple(name for name in row.get("wiki_docs") or () if name in texts)
        cases.append(Case(str(row["id"]), row["question"], bool(row["false_premise"]), pages))
    return cases, texts


def sample(cases: Sequence[Case], size: int) -> list[Case]:
    """As many with a false premise as without, the same ones for a size; all of them for 0."""
    if not size:
        return list(cases)
    ranked = sorted(cases, key=lambda case: hashlib.sha256(case.id.encode()).digest())
    false = [case for case in ranked if case.false_premise][: size // 2]
    return false + [case for case in ranked if not case.false_premise][: size - len(false)]


def body(case: Case, texts: dict[str, str], strategy: str) -> bytes:
    pages = [
        {"page_name": name.replace("_", " "), "page_result": _html(texts[name][:MAX_PAGE_CHARS])} for name in case.pages
    ]
    question = {"query": case.question, "query_time": ASKED_AT, "search_results": pages, "strategy": strategy}
    return json.dumps(question).encode()


def _html(text: str) -> str:
    paragraphs = "".join(f"<p>{escape(part)}</p>" for part in text.split("\n") if part.strip())
    return f"<html><body><main>{paragraphs}</main></body></html>"


async def ask(
    cases: Sequence[Case], texts: dict[str, str], strategies: Sequence[str], concurrency: int, console: Console
) -> list[Outcome]:
    gate = asyncio.Semaphore(concurrency)
    outcomes: list[Outcome] = []
    async with MeshClient(str(MeshUrls().gateway_url)) as mesh:

        async def one(strategy: str, case: Case, advance: Advance) -> None:
            async with gate:
                try:
                    reply, _, _ = await mesh.ask(body(case, texts, strategy), budget_s=30.0)
                except NoAnswer as error:
                    console.print(f"{case.id}: {error}", style="yellow", markup=False)
                    return
                outcomes.append(outcome(strategy, case, reply))
                advance(1)

        for strategy in strategies:
            with counted(strategy, len(cases)) as advance:
                async with asyncio.TaskGroup() as group:
                    for case in cases:
                        group.create_task(one(strategy, case, advance))
    return outcomes


def outcome(strategy: str, case: Case, reply: AnswerResponse) -> Outcome:
    labels = reply.classification
    return Outcome(
        strategy, case.id, case.false_premise, reply.kind, labels.false_premise_probability if labels else 0.0
    )


def measured(refused: Sequence[bool], false: Sequence[bool]) -> dict[str, float]:
    """Precision, recall and F1 of the answer "invalid question"."""
    hits = sum(one and other for one, other in zip(refused, false, strict=True))
    precision = hits / sum(refused) if any(refused) else 0.0
    recall = hits / sum(false) if any(false) else 0.0
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return {"said": float(sum(refused)), "precision": precision, "recall": recall, "f1": f1}


def report(outcomes: Sequence[Outcome], console: Console) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for strategy in dict.fromkeys(item.strategy for item in outcomes):
        chosen = [item for item in outcomes if item.strategy == strategy]
        false = [item.false_premise for item in chosen]
        rows[strategy] = measured([item.kind == "invalid_question" for item in chosen], false)
        rows[strategy] |= {
            f"{kind} of false ones": sum(item.kind == kind and item.false_premise for item in chosen) / sum(false)
            for kind in ("answer", "unknown")
        }
    first = [item for item in outcomes if item.strategy == outcomes[0].strategy]
    for line in LINES:
        refused = [item.classifier >= line for item in first]
        rows[f"classifier from {line:.1f} on"] = measured(refused, [item.false_premise for item in first])
    table = Table('"invalid question" on FreshQA', "said", "precision", "recall", "F1")
    for name, row in rows.items():
        table.add_row(name, f"{row['said']:.0f}", *(f"{row[key]:.2f}" for key in ("precision", "recall", "f1")))
    console.print(table)
    console.print(f"{len(first)} questions, {sum(item.false_premise for item in first)} with a false premise")
    return rows


def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--strategies", default="electric-sheep,adaptive")
    parser.add_argument("--sample", type=int, default=0, help="so many questions, half of them false; 0 takes all")
    parser.add_argument("--concurrency", type=int, default=2)
    options = parser.parse_args()
    console = Console()
    folder = common.evaluation_data("eval-premise", "there are no questions", status=2)
    if not (folder / QUESTIONS).is_file():
        console.print(f"CRAGMESH_EVAL_DATA names no folder with {QUESTIONS}", style="red")
        return 2
    cases, texts = load(folder)
    cases, strategies = sample(cases, options.sample), common.names(options.strategies)
    outcomes = asyncio.run(ask(cases, texts, strategies, options.concurrency, console))
    if not outcomes:
        return 1
    rows = report(outcomes, console)
    common.write_json(common.OUT / "premise.json", {"rows": rows, "outcomes": [asdict(item) for item in outcomes]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
