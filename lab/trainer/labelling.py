"""Training data of `cragmesh train labels`: from answers of an evaluation run, or from questions with answers."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from lab.evaluator import runs
from lab.evaluator.data import Item, Skip, Source
from lab.evaluator.store import Prediction, RunFolder
from lab.trainer.dataset import Example, Kind, turns
from lab.trainer.errors import BadLabels
from lab.trainer.relevance import holds
from proto.base import parse_query_time
from proto.kg import KgExecuteRequest, KgResponse
from services.gateway import prompts
from services.gateway.evidence import Evidence
from services.gateway.normalize import INVALID, UNKNOWN
from services.gateway.steps.generate import TAUGHT_PROMPT, chat
from services.kg.domains import CATALOGUE
from services.kg.generate.examples import load_library
from services.kg.generate.program import MAX_TOKENS, ProgramWriter, adapter_messages
from services.kg.language.decoding import decoding_grammar
from services.kit.client import ServiceClient
from services.kit.errors import ServiceRejected
from services.kit.llm import LLM, Constraint

ADAPTER = "kg-api"
SAMPLE_S, EXECUTE_S = 60.0, 10.0
# Programs of one temperature repeat each other below it, and leave the question above it.
TEMPERATURE = 0.8

Rule = Literal["false premise", "nothing to find", "right", "wrong but in the context", "wrong and not in the context"]
# Questions by the rule that labelled them, or by the reason for leaving them out; lines that are none by the latter.
Tally = Counter[str]


def allowed(paths: Sequence[Path], evaluation: Path | None) -> None:
    """Refuse questions that are kept for measuring.

    Raises:
        BadLabels: a file lies in the folder of the evaluation data.
    """
    for path in paths:
        if evaluation is not None and path.resolve().is_relative_to(evaluation.resolve()):
            raise BadLabels(f"{path} is evaluation data: what is learnt from it can no longer be measured by it")


def label(item: Item, outcome: str, contexts: Sequence[str]) -> tuple[str, Kind, Rule]:
    """The reply to teach, its kind, and the rule of db3's (section 2.4) that chose it.

    A false premise is refused; a right answer stays the gold one; of the wrong ones those that the context would have
    shown are corrected, and those that it would not become an abstention. An abstention counts as wrong: a context with
    the answer asks for the answer.

    Args:
        outcome: the judge's: right, missing or wrong.
        contexts: the model's evidence.

    Raises:
        BadLabels: the question has no gold answer or an outcome that is none.
    """
    if outcome not in ("right", "missing", "wrong"):
        raise BadLabels(f"{item.id}: outcome: {outcome!r} is none of right, missing, wrong")
    if item.label_kind == "invalid":
        return INVALID, "invalid_question", "false premise"
    if item.label_kind == "idk":
        return UNKNOWN, "unknown", "nothing to find"
    gold = next((answer.strip() for answer in item.gold if answer.strip()), "")
    if not gold:
        raise BadLabels(f"{item.id}: gold: there is no answer to teach")
    if outcome == "right":
        return gold, "answer", "right"
    if any(holds(contexts, answer, item.query) for answer in item.gold):
        return gold, "answer", "wrong but in the context"
    return UNKNOWN, "unknown", "wrong and not in the context"


def from_run(folder: Path, sources: Sequence[Path], judge: str, tally: Tally) -> Iterator[Example]:
    """Examples of the task `answer` from a run: of contexts that came with the questions, or that the run kept.

    Args:
        sources: the files that the run asked.

    Raises:
        EvaluatorError: the run or a file cannot be read.
        BadLabels: the files are not those of the run, or a line of the run is damaged.
    """
    target = RunFolder(folder)

    def damaged(problem: str) -> None:
        raise BadLabels(f"{folder}: {problem}")

    lines = runs.read(target, damaged).predictions
    verdicts = runs.verdicts(target, lines, judge)
    predictions = {line.id: line for line in lines}
    prompt = prompts.load(TAUGHT_PROMPT)
    matches = 0
    for item in _source(sources, tally).items():
        prediction = predictions.get(item.id)
        if prediction is None:
            tally["left out: not in the run"] += 1
            continue
        matches += 1
        if prediction.query != item.query:
            raise BadLabels(f"{item.place}: query: not what the run asked under the id {item.id}")
        evidence = _evidence(item, prediction)
        if not evidence:
            tally["left out: no contexts were given, and the run kept none (--keep-contexts)"] += 1
            continue
        if prediction.error:
            tally["left out: the mesh did not answer"] += 1
            continue
        completion, kind, rule = label(item, verdicts[item.id].outcome, [one.text for one in evidence])
        tally[rule] += 1
        yield Example(
            id=f"{target.name}:{item.id}"[:200],
            task="answer",
            messages=turns(chat(prompt, item.query, _moment(item), evidence)),
            completion=completion,
            domain=item.domain[:32],
            kind=kind,
            question_type=item.question_type[:32],
            source=f"labels:{target.name}"[:200],
            query=item.query,
        )
    if not matches:
        raise BadLabels(f"{folder}: none of its {len(predictions)} questions is in {', '.join(map(str, sources))}")


def _source(paths: Sequence[Path], tally: Tally) -> Source:
    """The questions of files, which tells the tally of lines that are none."""

    def skipped(skip: Skip) -> None:
        # Where in a line its JSON ends is another place each time.
        tally[f"left out: {skip.why.partition(': line ')[0]}"] += 1

    return Source(paths, on_skip=skipped)


def _evidence(item: Item, prediction: Prediction) -> list[Evidence]:
    """The generator's evidence: the question's own contexts, else the passages of the mesh."""
    contexts: list[str] = item.body.get("evidence") or []
    if contexts:
        return [Evidence(text, page) for page, text in enumerate(contexts) if text.strip()]
    shown = enumerate(prediction.shown)
    return [Evidence(one.text, page, page_name=one.page_name, source=one.source) for page, one in shown]


@dataclass(frozen=True, slots=True)
class Trying:
    """The writer of programs, the graph that runs them, and how many are tried for a question."""

    llm: LLM
    kg: ServiceClient
    count: int


async def from_trying(
    sources: Sequence[Path], trying: Trying, tally: Tally, on_question: Callable[[], None] = lambda: None
) -> list[Example]:
    """Examples of the task `kg-api`: for each question the shortest sampled program whose facts hold its answer.

    Raises:
        EvaluatorError: a file cannot be read.
        ServiceFailure: the generator or the knowledge graph is not reachable.
    """
    writer = ProgramWriter(trying.llm, CATALOGUE, load_library(CATALOGUE), adapter=ADAPTER)
    examples: list[Example] = []
    items = await asyncio.to_thread(lambda: list(_source(sources, tally).items()))
    for item in items:
        on_question()
        if item.label_kind != "answer":
            tally["left out: no program finds that there is nothing"] += 1
            continue
        # Questions of other domains are looked up in the open one.
        domain = item.domain if item.domain in CATALOGUE.domains else "open"
        programs = await _sample(writer, trying, item, domain)
        best = await best_program(item, programs, partial(_execute, trying, item, domain))
        tally["kept" if best else "no program found the answer"] += 1
        if best:
            messages = adapter_messages(item.query, query_time=_moment(item), domain=CATALOGUE.domains[domain])
            examples.append(
                Example(
                    id=f"tried:{item.id}"[:200],
                    task="kg-api",
                    messages=turns(messages),
                    completion=best,
                    domain=domain,
                    kind="answer",
                    question_type=item.question_type[:32],
                    source="labels:programs",
                    query=item.query,
                )
            )
    return examples


async def best_program(item: Item, programs: Iterable[str], execute: Callable[[str], Awaitable[str]]) -> str:
    """The shortest program whose facts hold the gold answer; empty when no program's do.

    Of two correct programs the longer one has asked for more than was needed.

    Args:
        programs: sampled for the question, repetitions included.
        execute: the facts of a program as text; empty where it found none.
    """
    correct = []
    for program in dict.fromkeys(program.strip() for program in programs if program.strip()):
        facts = await execute(program)
        if facts and any(holds([facts], answer, item.query) for answer in item.gold):
            correct.append(program)
    return min(correct, key=lambda program: (len(program), program), default="")


async def _sample(writer: ProgramWriter, trying: Trying, item: Item, domain: str) -> list[str]:
    moment = _moment(item)
    if await trying.llm.serves(ADAPTER, allow_s=SAMPLE_S):
        messages = adapter_messages(item.query, query_time=moment, domain=CATALOGUE.domains[domain])
    else:
        examples = await writer.library.nearest(item.query, domain=domain, k=writer.k)
        messages = writer.messages(item.query, examples, query_time=moment, domain=domain)
    completion = await trying.llm.chat(
        messages,
        max_tokens=MAX_TOKENS,
        allow_s=SAMPLE_S,
        temperature=TEMPERATURE,
        n=trying.count,
        adapter=ADAPTER,
        constraint=Constraint(grammar=await asyncio.to_thread(decoding_grammar, CATALOGUE, domain)),
    )
    # A program that was cut at the limit may run, and say something else than was meant.
    return [sample.text for sample in completion.samples if sample.finish_reason != "length"]


async def _execute(trying: Trying, item: Item, domain: str, program: str) -> str:
    request = KgExecuteRequest.model_validate(
        {"program": program, "query_time": _moment(item), "domain": domain, "max_tokens": 4_000}
    )
    try:
        response = await trying.kg.call("/kg/execute", request, KgResponse, allow_s=EXECUTE_S)
    except ServiceRejected:
        return ""
    return response.text if response.status in ("ok", "stale") else ""


def _moment(item: Item) -> datetime:
    return parse_query_time(item.query_time) if item.query_time else datetime.now(UTC)
