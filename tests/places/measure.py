"""How many of the questions the graph answers: `python -m tests.places.measure --half held-out`.

By rules, or with `--generator URL` by a model under the grammar.
"""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from services.kg.entities import NameIndex
from services.kg.execute import Executor
from services.kg.generate import build_writers
from services.kg.outcome import Outcome
from services.kg.store.engine import open_store
from services.kit.budget import Budget
from services.kit.client import ServiceClient, http_client
from services.kit.encoder import Encoder
from services.kit.llm import LLM
from services.kit.precision import choose_precision
from tests.bench import common
from tests.places.judging import Verdict, judge
from tests.places.questions import Half, Question, gold_rows, open_tables, questions
from tests.places.store import fill, places

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Result:
    question: Question
    program: str
    verdict: Verdict
    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def right(self) -> bool:
        """Answered right, or not answered where there is no answer."""
        return self.verdict == ("silent" if self.question.kind == "unknown" else "right")


async def measure(folder: Path, half: Half, generator: str = "", *, seconds: float = SECONDS) -> list[Result]:
    """The results of the questions over a graph that `fill` made.

    Args:
        generator: root of an OpenAI-compatible server whose model writes under the grammar; rules write without one.
        seconds: for writing one program.
    """
    catalogue = places()
    engine = open_store(f"sqlite:///{folder / 'kg.sqlite'}")
    names = NameIndex(engine, catalogue)
    executor = Executor(engine, names, catalogue)
    encoder = Encoder(precision=choose_precision()) if generator else None
    if encoder is not None:
        encoder.load()
    results: list[Result] = []
    async with http_client() as http:
        llm = LLM(ServiceClient("generator", generator or "http://nobody", http))
        writer = build_writers(llm, catalogue, names, encoder, adapter="")["program" if generator else "rules"]
        with open_tables(folder / "csv") as tables:
            for question in questions(half):
                begin = time.perf_counter()
                draft = await writer.write(question.text, query_time=NOW, domain="places", budget=Budget(seconds))
                outcomes = await asyncio.to_thread(
                    executor.execute, draft.program, domain="places", query_time=NOW, seconds=SECONDS
                )
                verdict = judge(question, gold_rows(question, tables), outcomes)
                elapsed_s = time.perf_counter() - begin
                results.append(Result(question, draft.program, verdict, tuple(outcomes), elapsed_s))
    engine.dispose()
    return results


def report(results: Sequence[Result], *, failures: bool) -> None:
    """Print the right results by kind; with `failures` also each question that is not right."""
    kinds = Counter(one.question.kind for one in results)
    right = Counter(one.question.kind for one in results if one.right)
    for kind, count in kinds.items():
        print(f"{kind:12} {right[kind]:2} of {count}")
    wrong = sum(one.verdict == "wrong" for one in results)
    median_s = sorted(one.seconds for one in results)[len(results) // 2]
    print(f"{'all':12} {sum(right.values())} of {len(results)}, {wrong} wrong, median {1000 * median_s:.0f} ms")
    for one in results if failures else ():
        if not one.right:
            print(f"{one.verdict:6} {one.question.text}\n       {one.program}")


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--half", choices=("work", "held-out"), default="work")
    parser.add_argument("--generator", default="", help="root of an OpenAI-compatible server; rules without one")
    parser.add_argument("--seconds", type=float, default=120.0, help="for writing one program by a model")
    parser.add_argument("--show", action="store_true", help="print what was not right")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fill(folder)
        results = asyncio.run(measure(folder, arguments.half, arguments.generator, seconds=arguments.seconds))
    report(results, failures=arguments.show)


if __name__ == "__main__":
    main()
